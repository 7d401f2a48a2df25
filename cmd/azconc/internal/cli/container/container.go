package container

import (
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
)

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("container", "Create, show and delete containers",
		createVerb().Command(f),
		showVerb().Command(f),
		deleteVerb().Command(f),
		listVerb().Command(f),
		newMetadataCmd(f),
		newACLCmd(f),
		lease.NewCmd(f, "container"),
	)
}
