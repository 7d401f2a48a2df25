package file

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lock"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
)

type getResult struct {
	cli.Downloaded
	Leased bool `json:"leased"` // otherwise another client may have been writing
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
	parse := cli.Checked(ref.ParseFile, func() error { return f.CheckContentAlone(*name) })
	return cli.On(f, cmd, parse, f.File, func(ctx context.Context, on ref.File, client *file.Client) (cli.Result, error) {
		p := f.Progress("get " + on.String())
		var got files.DownloadResult
		stdout, err := f.Into(*name, p, func(to io.Writer, restart func() error) (err error) {
			counting := &counted{progress: p}
			download := &files.DownloadOptions{LeaseID: leaseID, IgnoreMetadata: *ignoreMetadata, Wait: waitingFor(f, wait), Hooks: f.Monitor.Hooks()}
			if restart != nil {
				download.Restart = func() error {
					counting.done = 0
					return restart()
				}
			}
			got, err = files.Download(ctx, client, io.MultiWriter(to, counting), download)
			return err
		})
		if stdout || err != nil {
			return nil, err
		}
		return getResult{cli.Downloaded{
			Outcome: "downloaded", Resource: on.String(), File: *name, ETag: string(got.ETag), LastModified: got.Written.UTC(),
			Size: got.Size, Restarts: got.Restarts, Cost: f.Cost(),
		}, got.Leased}, nil
	})
}

// counted shows how much has gone through it.
type counted struct {
	progress    *cli.Progress
	done, total int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.done += int64(len(p))
	c.progress.Show(c.done, c.total)
	return len(p), nil
}

// writeFlags are those of the verbs that write a file's content, under its lease.
type writeFlags struct {
	LeaseID string
	Wait    time.Duration
}

func (w *writeFlags) add(set *pflag.FlagSet) {
	flags.LeaseID(set, &w.LeaseID, "`id` of the file's lease, if you already hold it (default: acquire it, and release it at the end)")
	flags.Duration(set, &w.Wait, "wait", true, "wait this long for the lease and for SMB clients to close the file")
}

// Acquire returns the options for acquiring the lease. A waiting command reports the holder.
func (w *writeFlags) Acquire(f *cli.Factory) pessimistic.AcquireOptions {
	o := pessimistic.AcquireOptions{MaxWait: max(w.Wait, 1)} // without NoWait: the look at the end of MaxWait names the holder
	if w.Wait > 0 {
		o.Hooks = lock.WaitingNote(f)
	}
	return o
}

type writeResult struct {
	Outcome  string `json:"outcome"`
	Resource string `json:"resource"`
	Changed  bool   `json:"changed"`
	Created  bool   `json:"created"`
	Size     int64  `json:"size"`
	Ranges   int    `json:"ranges"`
	cli.Cost
}

func (r writeResult) Text(w io.Writer) {
	fmt.Fprintf(w, "%s %s, %s\n", r.Outcome, r.Resource, show.Bytes(r.Size))
}

// written returns the result. It reports a lease that may be left behind, since the lease does not expire.
func written(f *cli.Factory, outcome string, on ref.File, r files.WriteResult) cli.Result {
	if r.Left != nil {
		f.Notef("%s: its lease may still be held: %s", on, show.FirstLine(r.Left.Error()))
		f.Notef("hint: azconc file lease break ends it")
	}
	if !r.Changed {
		outcome = "unchanged"
	}
	return writeResult{Outcome: outcome, Resource: on.String(), Changed: r.Changed, Created: r.Created, Size: r.Size, Ranges: r.Ranges,
		Cost: f.Cost()}
}

// maxStdin bounds content from stdin, which is held in memory because the service needs the size first.
const maxStdin = 64 << 20

func newPutCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "put <share/path> --file <file>",
		Short: "Write a file under its lease; the last writer wins",
		Long: `Write a file, 4 MiB at a time, under its lease, so that two writers never mix. The last writer wins: no operation on files
accepts a condition. To change a file based on its content, use azconc file update.

If another client holds the lease, or an SMB client has the file open, the exit code is 6; --wait waits for them. If the write
cannot be finished, part of the file is new and part is old, and azconc reports that. Readers do not wait for the lease: they
can see a partly written file.`,
		Example: "  azconc file put reports/q3.csv --file q3.csv\n  generate | azconc file put reports/q3.csv --file - --wait 1m",
	}
	var name string
	var write writeFlags
	flags.File(cmd.Flags(), &name, "`file` with the content; - is stdin, up to 64 MiB")
	write.add(cmd.Flags())
	return cli.On(f, cmd, ref.ParseFile, f.File, func(ctx context.Context, on ref.File, client *file.Client) (cli.Result, error) {
		content, size, err := f.OpenContent(ctx, "--file", name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = content.Close() }()
		from := io.Reader(content)
		if size < 0 {
			all, err := io.ReadAll(io.LimitReader(content, maxStdin+1))
			if err != nil {
				return nil, err
			}
			if size = int64(len(all)); size > maxStdin {
				return nil, fail.WithHint(fail.Usagef("--file %s has more than %s, and its size is not known in advance", name, show.Bytes(maxStdin)), "write it into a file first")
			}
			from = bytes.NewReader(all)
		}
		p := f.Progress("put " + on.String())
		r, err := files.Upload(ctx, client, io.TeeReader(from, &counted{progress: p, total: size}), size, &files.UploadOptions{
			Create: true, Acquire: write.Acquire(f), LeaseID: write.LeaseID, Wait: waitingFor(f, write.Wait), Hooks: f.Monitor.Hooks()})
		p.End()
		if err != nil {
			return nil, err
		}
		return written(f, "uploaded", on, r), nil
	})
}

func newUpdateCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "update <share/path> {--exec <command> | --jq <expression> | --set <path=value>… | --file <file>}",
		Short: "Change a file's content under its lease, so that no change is lost",
		Long: `Change a file's content under its lease: azconc acquires the lease, reads the content, changes it, writes it back, and releases
the lease. That is the only safe way to change a file based on its content, since no operation on files accepts a condition.
Meanwhile SMB clients cannot open the file for writing; any client can read it, and may see it partly written.

If another client holds the lease, or an SMB client has the file open for writing, the exit code is 6; --wait waits for them.
A file's lease does not expire: if azconc is killed, the lease stays, and azconc file lease break --stale ends it.`,
		Example: "  azconc file update reports/state.json --jq '.n += 1' --wait 1m\n  azconc file update reports/list.txt --exec 'sort -u'",
	}
	var source change.ChangeFlags
	var write writeFlags
	source.Add(cmd.Flags())
	write.add(cmd.Flags())
	var changing change.Change
	parse := cli.Checked(ref.ParseFile, func() (err error) {
		changing, err = source.Parse(f.Env)
		return err
	})
	return cli.On(f, cmd, parse, f.File, func(ctx context.Context, on ref.File, client *file.Client) (cli.Result, error) {
		if err := change.Prepare(ctx, f, changing); err != nil {
			return nil, err
		}
		r, err := files.Update(ctx, client, func(ctx context.Context, old []byte) ([]byte, error) {
			return changing.Apply(ctx, change.BaseContent{Resource: on.String(), Exists: true, Attempt: 1, Data: old})
		}, &files.UpdateOptions{Acquire: write.Acquire(f), LeaseID: write.LeaseID, Wait: waitingFor(f, write.Wait), Hooks: f.Monitor.Hooks()})
		if err != nil {
			return nil, err
		}
		return written(f, "updated", on, r), nil
	})
}
