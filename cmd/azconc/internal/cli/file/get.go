package file

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic/files"
)

type getOptions struct {
	From           ref.File
	File           string
	LeaseID        string
	IgnoreMetadata bool
	Wait           time.Duration
}

func getVerb() cli.Verb[getOptions] {
	return cli.Verb[getOptions]{
		Use:   "get <share/path>",
		Short: "Read a file, all of it from one version",
		Long: `Read a file, all of it from one version, to stdout or a file.

If the file changes meanwhile, a read into a file starts over, and a read to stdout ends with exit code 4. One version need not
be a finished one: a writer that sends several requests, as SMB clients do, can be partway through. Only its lease (azconc file
lease acquire, then --lease-id) keeps all writers out.`,
		Example: "  azconc file get reports/q3.csv\n  azconc file get reports/q3.xlsx --file q3.xlsx --wait 1m",
		Flags: func(opts *getOptions, set *pflag.FlagSet) {
			set.StringVarP(&opts.File, "file", "f", "", "`file` for the content; - is stdout")
			flags.LeaseID(set, &opts.LeaseID, "`id` under which its lease is held")
			set.BoolVar(&opts.IgnoreMetadata, "ignore-metadata", false, "ignore changes of the metadata alone, such as a holder's heartbeat")
			flags.Duration(set, &opts.Wait, "wait", true, "wait this long for SMB clients that prevent others from reading")
		},
		Resource: func(opts *getOptions, arg string) (err error) { opts.From, err = ref.ParseFile(arg); return err },
		Parse: func(opts *getOptions, in cli.Input) error {
			if in.Form != "" && (opts.File == "" || opts.File == "-") {
				return fail.WithHint(fail.Usagef("%s and the content cannot both go to stdout", in.Form), "--file writes the content elsewhere")
			}
			return nil
		},
		Run: getRun,
	}
}

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

func getRun(ctx context.Context, f *cli.Factory, opts *getOptions) error {
	client, err := f.File(opts.From)
	if err != nil {
		return err
	}
	p := f.Progress("get " + opts.From.String())
	var got files.DownloadResult
	stdout, err := f.Into(opts.File, p, func(to io.Writer, restart func() error) (err error) {
		counting := &counted{to: to, progress: p}
		download := &files.DownloadOptions{LeaseID: opts.LeaseID, IgnoreMetadata: opts.IgnoreMetadata, Wait: waitingFor(f, opts.Wait)}
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
		return err
	}
	return f.Print(getResult{
		Outcome: "downloaded", Resource: opts.From.String(), File: opts.File, ETag: string(got.ETag), LastModified: got.Written.UTC(),
		Size: got.Size, Leased: got.Leased, Restarts: got.Restarts, Requests: got.Requests, ElapsedMS: time.Since(f.Began).Milliseconds(),
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
