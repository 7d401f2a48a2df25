package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/pessimistic"
)

// fileWriteFlags are those of the verbs that write a file's content, under its lease.
type fileWriteFlags struct {
	LeaseID string
	Wait    time.Duration
}

func (w *fileWriteFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.LeaseID, "lease-id", "", "`id` of the file's lease, if you already hold it (default: acquire it, and release it at the end)")
	cmd.Flags().DurationVar(&w.Wait, "wait", 0, "wait this long for the lease and for SMB clients to close the file")
}

func (w *fileWriteFlags) parse() (err error) {
	if w.LeaseID, err = parseLeaseID(w.LeaseID); err != nil {
		return err
	}
	if w.Wait < 0 {
		return usagef("--wait %v is negative", w.Wait)
	}
	return nil
}

// acquire returns the options for acquiring the lease. A waiting command reports the holder.
func (w *fileWriteFlags) acquire(f *Factory) pessimistic.AcquireOptions {
	o := pessimistic.AcquireOptions{Wait: max(w.Wait, 1)} // 1 ns is as good as none
	if w.Wait > 0 && !f.Quiet {
		o.Hooks.Event = func(e pessimistic.Event) {
			if e.Kind == pessimistic.Waiting {
				f.Notef("waiting for %s, held by %s", e.Resource, orAnother(e.Holder))
			}
		}
	}
	return o
}

type filePutOptions struct {
	factory *Factory
	To      fileRef
	File    string
	Create  bool
	Write   fileWriteFlags
}

func newFilePutCmd(f *Factory, runF func(*filePutOptions) error) *cobra.Command {
	opts := &filePutOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "put <share/path> --file <file>",
		Short: "Write a file under its lease; the last writer wins",
		Long: `Write a file, 4 MiB at a time, under its lease, so that two writers never mix. The last writer wins: no operation on files
accepts a condition. To change a file based on its content, use azconc file update.

If another client holds the lease, or an SMB client has the file open, the exit code is 6; --wait waits for them. If the write
cannot be finished, part of the file is new and part is old, and the message says so. Readers do not wait for the lease: they
can see a partly written file.`,
		Args:    resourceArgs("<share/path>"),
		Example: "  azconc file put reports/q3.csv --file q3.csv\n  generate | azconc file put reports/q3.csv --file - --wait 1m",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.To, err = parseFile(args[0]); err != nil {
				return err
			}
			if opts.File == "" {
				return withHint(usagef("--file is missing"), "--file - reads stdin")
			}
			if err := opts.Write.parse(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return filePutRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVarP(&opts.File, "file", "f", "", "`file` with the content; - is stdin, up to 64 MiB")
	opts.Write.add(cmd)
	return cmd
}

type fileWriteResult struct {
	Outcome   string `json:"outcome"`
	Resource  string `json:"resource"`
	Changed   bool   `json:"changed"`
	Created   bool   `json:"created"`
	Size      int64  `json:"size"`
	Ranges    int    `json:"ranges"`
	Requests  int64  `json:"requests"`
	ElapsedMS int64  `json:"elapsed_ms"`
}

func (r fileWriteResult) text(w io.Writer) {
	fmt.Fprintf(w, "%s %s, %s\n", r.Outcome, r.Resource, byteCount(r.Size))
}

// written prints the result. It reports a lease that may be left behind, since the lease does not expire.
func (f *Factory) written(outcome string, on fileRef, r pessimistic.FileWrite) error {
	if r.Left != nil {
		f.Notef("%s: its lease may still be held: %s", on, firstLine(r.Left.Error()))
		f.Notef("hint: azconc file lease break ends it")
	}
	if !r.Changed {
		outcome = "unchanged"
	}
	return f.Print(fileWriteResult{Outcome: outcome, Resource: on.String(), Changed: r.Changed, Created: r.Created, Size: r.Size, Ranges: r.Ranges,
		Requests: f.requests.Load(), ElapsedMS: time.Since(f.began).Milliseconds()})
}

// maxStdin bounds a content whose size is only known when all of it is there, which the service wants to know first.
const maxStdin = 64 << 20

func filePutRun(ctx context.Context, opts *filePutOptions) error {
	f := opts.factory
	client, err := f.File(opts.To)
	if err != nil {
		return err
	}
	content, size, err := f.openContent(ctx, opts.File)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	from := io.Reader(content)
	if size < 0 {
		all, err := io.ReadAll(io.LimitReader(content, maxStdin+1))
		if err != nil {
			return err
		}
		if len(all) > maxStdin {
			return withHint(usagef("--file %s has more than %s, and its size is not known in advance", opts.File, byteCount(maxStdin)), "write it into a file first")
		}
		from, size = bytes.NewReader(all), int64(len(all))
	}
	p := f.progress("put " + opts.To.String())
	r, err := pessimistic.UploadFile(ctx, client, &counted{from: from, progress: p, total: size}, size, &pessimistic.UploadFileOptions{
		Create: true, Acquire: opts.Write.acquire(f), LeaseID: opts.Write.LeaseID, Wait: f.waitOptions(opts.Write.Wait)})
	p.end()
	if err != nil {
		return err
	}
	return f.written("uploaded", opts.To, r)
}
