package container

import (
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
)

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("container", "Create, show and delete containers",
		newCreateCmd(f, nil),
		newShowCmd(f, nil),
		newDeleteCmd(f, nil),
		newListCmd(f, nil),
		newMetadataCmd(f),
		newACLCmd(f),
		lease.NewCmd(f, "container"),
	)
}
