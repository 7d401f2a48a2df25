package file

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic/files"
)

type getResult struct {
	Outcome      string    `json:"outcome"`
	Resource     string    `json:"resource"`
	File         string    `json:"file"`
	ETag         string    `json:"etag"`
	LastModified time.Time `json:"last_modified"`
	Size         int64     `json:"size"`
	Leased       bool      `json:"leased"` // otherwise another client may have been writing
	Restarts     int       `json:"restarts"`
	Requests     int       `json:"requests"`
	ElapsedMS    int64     `json:"elapsed_ms"`
}

func (r getResult) Text(w io.Writer) {
	fmt.Fprintf(w, "%s %s etag %s, %s in %s\n", r.Outcome, r.Resource, r.ETag, show.Bytes(r.Size), r.File)
}

func newGetCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get <share/path>",
		Short: "Read a file, all of it from one version",
		Long: `Read a file, all of it from one version, to stdout or a file.

If the file changes meanwhile, a read into a file starts over, and a read to stdout ends with exit code 4. One version need not
be a finished one: a writer that sends several requests, as SMB clients do, can be partway through. Only its lease (azconc file
lease acquire, then --lease-id) keeps all writers out.`,
		Example: "  azconc file get reports/q3.csv\n  azconc file get reports/q3.xlsx --file q3.xlsx --wait 1m",
	}
	var leaseID string
	var wait time.Duration
	name := cmd.Flags().StringP("file", "f", "", "`file` for the content; - is stdout")
	flags.LeaseID(cmd.Flags(), &leaseID, "`id` under which its lease is held")
	ignoreMetadata := cmd.Flags().Bool("ignore-metadata", false, "ignore changes of the metadata alone, such as a holder's heartbeat")
	flags.Duration(cmd.Flags(), &wait, "wait", true, "wait this long for SMB clients that prevent others from reading")
	parse := func(arg string) (ref.File, error) {
		on, err := ref.ParseFile(arg)
		return on, cmp.Or(err, f.CheckContentAlone(*name))
	}
	return cli.On(f, cmd, parse, f.File, func(ctx context.Context, on ref.File, client *file.Client) (cli.Result, error) {
		p := f.Progress("get " + on.String())
		var got files.DownloadResult
		stdout, err := f.Into(*name, p, func(to io.Writer, restart func() error) (err error) {
			counting := &counted{to: to, progress: p}
			download := &files.DownloadOptions{LeaseID: leaseID, IgnoreMetadata: *ignoreMetadata, Wait: waitingFor(f, wait)}
			if restart != nil {
				download.Restart = func() error {
					counting.done = 0
					return restart()
				}
			}
			got, err = files.Download(ctx, client, counting, download)
			return err
		})
		if stdout || err != nil {
			return nil, err
		}
		return getResult{
			Outcome: "downloaded", Resource: on.String(), File: *name, ETag: string(got.ETag), LastModified: got.Written.UTC(),
			Size: got.Size, Leased: got.Leased, Restarts: got.Restarts, Requests: got.Requests, ElapsedMS: time.Since(f.Began).Milliseconds(),
		}, nil
	})
}

// counted shows how much has gone through.
type counted struct {
	to       io.Writer
	from     io.Reader
	progress *cli.Progress
	done     int64
	total    int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.add(n)
	return n, err
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.add(n)
	return n, err
}

func (c *counted) add(n int) {
	c.done += int64(n)
	c.progress.Show(c.done, c.total)
}
