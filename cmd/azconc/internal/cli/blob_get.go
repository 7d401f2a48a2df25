package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

type blobGetOptions struct {
	factory    *Factory
	Blob       blobRef
	File       string
	Sending    sendingFlags
	Conditions optimistic.Conditions
}

func newBlobGetCmd(f *Factory, runF func(*blobGetOptions) error) *cobra.Command {
	opts := &blobGetOptions{factory: f}
	var conditions conditionFlags
	var snapshot string
	cmd := &cobra.Command{
		Use:   "get <container/blob>",
		Short: "Read a blob, all of it from one version",
		Long: `Read a blob, all of it from one version, to stdout or a file.

The content is all from one version, however long the read takes: if the blob changes meanwhile, a read into a file starts
over, and a read to stdout ends with exit code 4. The file appears under its name only when it is complete.`,
		Args: resourceArgs("<container/blob>"),
		Example: `  azconc blob get jobs/state.json
  azconc blob get backup/src.tar --file src.tar`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = parseBlob(args[0]); err != nil {
				return err
			}
			if opts.Blob, err = opts.Blob.at(snapshot); err != nil {
				return err
			}
			if f.JSON() && (opts.File == "" || opts.File == "-") {
				return withHint(usagef("-o json and the content cannot both go to stdout"), "--file writes the content elsewhere")
			}
			if err := opts.Sending.parse(cmd); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.forRead(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return blobGetRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVarP(&opts.File, "file", "f", "", "`file` for the content; - is stdout")
	addSnapshot(cmd, &snapshot, "")
	opts.Sending.add(cmd)
	conditions.add(cmd, condAll)
	return cmd
}

type blobGetResult struct {
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

func (r blobGetResult) text(w io.Writer) {
	fmt.Fprintf(w, "%s %s etag %s, %s in %s\n", r.Outcome, r.Resource, r.ETag, byteCount(r.Size), r.File)
}

func blobGetRun(ctx context.Context, opts *blobGetOptions) error {
	f := opts.factory
	client, err := f.Blob(opts.Blob)
	if err != nil {
		return err
	}
	p := f.progress("get " + opts.Blob.String())
	var got optimistic.DownloadResult
	stdout, err := f.into(opts.File, p, func(to io.Writer, restart func() error) (err error) {
		got, err = optimistic.Download(ctx, client, to, &optimistic.DownloadOptions{Sending: opts.Sending.sending(), Conditions: opts.Conditions, Progress: p.show, Restart: restart})
		return err
	})
	if stdout || err != nil {
		return err
	}
	return f.Print(blobGetResult{
		Outcome: "downloaded", Resource: opts.Blob.String(), File: opts.File, ETag: string(got.ETag), LastModified: got.LastModified.UTC(),
		Size: got.Size, ContentType: deref(got.Headers.BlobContentType), Metadata: got.Metadata,
		Restarts: got.Restarts, Requests: got.Requests, ElapsedMS: got.Elapsed.Milliseconds(),
	})
}
