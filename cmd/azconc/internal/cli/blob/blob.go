package blob

import (
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
)

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("blob", "Read, write and change blobs, with conditions on every write",
		putVerb().Command(f),
		getVerb().Command(f),
		listVerb().Command(f),
		showVerb().Command(f),
		updateVerb().Command(f),
		editVerb().Command(f),
		deleteVerb().Command(f),
		lease.NewCmd(f, "blob"),
		cli.NewGroupCmd("metadata", "Show and change a blob's metadata",
			metadataShowVerb().Command(f),
			metadataSetVerb().Command(f),
			metadataUpdateVerb().Command(f),
		),
		cli.NewGroupCmd("headers", "Show and change the HTTP headers that a blob is served with",
			headersShowVerb().Command(f),
			headersSetVerb().Command(f),
		),
		cli.NewGroupCmd("tags", "Show and change a blob's index tags",
			tagsShowVerb().Command(f),
			tagsSetVerb().Command(f),
			tagsUpdateVerb().Command(f),
		),
		cli.NewGroupCmd("tier", "Set a blob's access tier",
			tierSetVerb().Command(f),
		),
		snapshotVerb().Command(f),
		copyVerb().Command(f),
		abortCopyVerb().Command(f),
		appendVerb().Command(f),
		newBlockCmd(f),
		newPageCmd(f),
	)
}
