package cli

import "github.com/spf13/cobra"

func newContainerCmd(f *Factory) *cobra.Command {
	return newGroupCmd("container", "Create, show and delete containers",
		newContainerCreateCmd(f, nil),
		newContainerShowCmd(f, nil),
		newContainerDeleteCmd(f, nil),
		newContainerListCmd(f, nil),
		newContainerMetadataCmd(f),
		newContainerACLCmd(f),
		newLeaseCmd(f, "container"),
	)
}
