// Package blob has the verbs of azconc blob: content, metadata, headers, tags, blocks, pages, snapshots and copies.
package blob

import (
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
)

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("blob", "Read, write and change blobs, with conditions on every write",
		newPutCmd(f),
		newGetCmd(f),
		newListCmd(f),
		newShowCmd(f),
		newUpdateCmd(f),
		newEditCmd(f),
		newDeleteCmd(f),
		lease.NewCmd(f, "blob"),
		newMetadataCmd(f),
		cli.NewGroupCmd("headers", "Change the HTTP headers that a blob is served with", newHeadersSetCmd(f)),
		newTagsCmd(f),
		newSnapshotCmd(f),
		newCopyCmd(f),
		newAbortCopyCmd(f),
		newAppendCmd(f),
		newBlockCmd(f),
		newPageCmd(f),
	)
}
