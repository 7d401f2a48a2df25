package blob

import (
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
)

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("blob", "Read, write and change blobs, with conditions on every write",
		newPutCmd(f, nil),
		newGetCmd(f, nil),
		newListCmd(f, nil),
		newShowCmd(f, nil),
		newUpdateCmd(f, nil),
		newEditCmd(f, nil),
		newDeleteCmd(f, nil),
		lease.NewCmd(f, "blob"),
		cli.NewGroupCmd("metadata", "Show and change a blob's metadata",
			newMetadataShowCmd(f, nil),
			newMetadataSetCmd(f, nil),
			newMetadataUpdateCmd(f, nil),
		),
		cli.NewGroupCmd("headers", "Show and change the HTTP headers that a blob is served with",
			newHeadersShowCmd(f, nil),
			newHeadersSetCmd(f, nil),
		),
		cli.NewGroupCmd("tags", "Show and change a blob's index tags",
			newTagsShowCmd(f, nil),
			newTagsSetCmd(f, nil),
			newTagsUpdateCmd(f, nil),
		),
		newSnapshotCmd(f, nil),
		newCopyCmd(f, nil),
		newCopyAbortCmd(f, nil),
		newAppendCmd(f, nil),
		newBlockCmd(f),
		newPageCmd(f),
	)
}
