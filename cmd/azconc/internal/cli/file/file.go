package file

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
)

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("file", "Read and write Azure Files alongside SMB clients",
		putVerb().Command(f),
		getVerb().Command(f),
		showVerb().Command(f),
		listVerb().Command(f),
		updateVerb().Command(f),
		deleteVerb().Command(f),
		waitVerb().Command(f),
		explainVerb().Command(f),
		lease.NewCmd(f, "file"),
		cli.NewGroupCmd("handles", "List and close the handles of SMB clients",
			handlesListVerb().Command(f),
			handlesCloseVerb().Command(f),
		),
	)
}

func NewShareCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("share", "Create, delete, list and lease shares",
		shareCreateVerb().Command(f),
		shareShowVerb().Command(f),
		shareListVerb().Command(f),
		shareDeleteVerb().Command(f),
		lease.NewCmd(f, "share"),
	)
}

// result is the result of a verb that changes a file or share.
type result struct {
	Outcome   string `json:"outcome"`
	Resource  string `json:"resource"`
	ETag      string `json:"etag,omitempty"`
	WaitedMS  int64  `json:"waited_ms"`
	Ambiguous int    `json:"ambiguous"`
	cli.Cost
}

func (r result) Text(w io.Writer) { fmt.Fprintln(w, r.Outcome, r.Resource) }

func printFile(f *cli.Factory, r result) error {
	r.Requests, r.ElapsedMS = f.Requests.Load(), time.Since(f.Began).Milliseconds()
	return f.Print(r)
}
