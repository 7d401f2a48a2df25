package blob

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
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/ptr"
)

type getOptions struct {
	Blob       ref.Blob
	File       string
	Sending    flags.Sending
	Conditions optimistic.Conditions
}

func getVerb() cli.Verb[getOptions] {
	var snapshot string
	return cli.Verb[getOptions]{
		Use:   "get <container/blob>",
		Short: "Read a blob, all of it from one version",
		Long: `Read a blob, all of it from one version, to stdout or a file.

The content is all from one version, however long the read takes: if the blob changes meanwhile, a read into a file starts
over, and a read to stdout ends with exit code 4. The file appears under its name only when it is complete.`,
		Example: `  azconc blob get jobs/state.json
  azconc blob get backup/src.tar --file src.tar`,
		Flags: func(opts *getOptions, set *pflag.FlagSet) {
			set.StringVarP(&opts.File, "file", "f", "", "`file` for the content; - is stdout")
			flags.AddSnapshot(set, &snapshot, "")
			opts.Sending.Add(set)
			flags.ReadConditions(set, &opts.Conditions, flags.CondAll)
		},
		Parse: func(opts *getOptions, in cli.Input) (err error) {
			if opts.Blob, err = ref.ParseBlob(in.Args[0]); err != nil {
				return err
			}
			if opts.Blob, err = opts.Blob.At(snapshot); err != nil {
				return err
			}
			if in.Form != "" && (opts.File == "" || opts.File == "-") {
				return fail.WithHint(fail.Usagef("%s and the content cannot both go to stdout", in.Form), "--file writes the content elsewhere")
			}
			return nil
		},
		Run: getRun,
	}
}

type getResult struct {
	Outcome      string            `json:"outcome"`
	Resource     string            `json:"resource"`
	File         string            `json:"file"`
	ETag         string            `json:"etag"`
	LastModified time.Time         `json:"last_modified"`
	Size         int64             `json:"size"`
	ContentType  string            `json:"content_type"`
	Metadata     map[string]string `json:"metadata"`
	Restarts     int               `json:"restarts"`
	Requests     int               `json:"requests"`
	ElapsedMS    int64             `json:"elapsed_ms"`
}

func (r getResult) Text(w io.Writer) {
	fmt.Fprintf(w, "%s %s etag %s, %s in %s\n", r.Outcome, r.Resource, r.ETag, show.Bytes(r.Size), r.File)
}

func getRun(ctx context.Context, f *cli.Factory, opts *getOptions) error {
	client, err := f.Blob(opts.Blob)
	if err != nil {
		return err
	}
	p := f.Progress("get " + opts.Blob.String())
	var got blobs.DownloadResult
	stdout, err := f.Into(opts.File, p, func(to io.Writer, restart func() error) (err error) {
		got, err = blobs.Download(ctx, client, to, &blobs.DownloadOptions{SendOptions: opts.Sending.Sending(f.Monitor.Hooks()), Conditions: opts.Conditions, Progress: p.Show, Restart: restart})
		return err
	})
	if stdout || err != nil {
		return err
	}
	return f.Print(getResult{
		Outcome: "downloaded", Resource: opts.Blob.String(), File: opts.File, ETag: string(got.ETag), LastModified: got.LastModified.UTC(),
		Size: got.Size, ContentType: ptr.Value(got.Headers.BlobContentType), Metadata: got.Metadata,
		Restarts: got.Restarts, Requests: got.Requests, ElapsedMS: got.Elapsed.Milliseconds(),
	})
}
