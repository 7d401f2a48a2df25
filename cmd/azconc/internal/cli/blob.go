package cli

import "github.com/spf13/cobra"

func newBlobCmd(f *Factory) *cobra.Command {
	return newGroupCmd("blob", "Read, write and change blobs, with conditions on every write",
		newBlobPutCmd(f, nil),
		newBlobGetCmd(f, nil),
		newBlobListCmd(f, nil),
		newBlobShowCmd(f, nil),
		newBlobUpdateCmd(f, nil),
		newBlobEditCmd(f, nil),
		newBlobDeleteCmd(f, nil),
		newLeaseCmd(f, "blob"),
		newGroupCmd("metadata", "Show and change a blob's metadata",
			newBlobMetadataShowCmd(f, nil),
			newBlobMetadataSetCmd(f, nil),
			newBlobMetadataUpdateCmd(f, nil),
		),
		newGroupCmd("headers", "Show and change the HTTP headers that a blob is served with",
			newBlobHeadersShowCmd(f, nil),
			newBlobHeadersSetCmd(f, nil),
		),
		newGroupCmd("tags", "Show and change a blob's index tags",
			newBlobTagsShowCmd(f, nil),
			newBlobTagsSetCmd(f, nil),
			newBlobTagsUpdateCmd(f, nil),
		),
		newBlobSnapshotCmd(f, nil),
		newBlobCopyCmd(f, nil),
		newBlobCopyAbortCmd(f, nil),
		newBlobAppendCmd(f, nil),
		newBlobBlockCmd(f),
		newBlobPageCmd(f),
	)
}
