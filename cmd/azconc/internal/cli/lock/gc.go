package lock

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
)

type gcOptions struct {
	Container ref.Blob
	Prefix    string
	Unused    time.Duration
	DryRun    bool
}

func gcVerb() cli.Verb[gcOptions] {
	return cli.Verb[gcOptions]{
		Use:   "gc <container>",
		Short: "Delete the blobs of locks that are no longer used",
		Long: `Delete the blobs of locks that have not been acquired for a while. Only empty blobs that azconc created as locks are deleted.
Blobs that have content stay, even if they were locked (see azconc lock run --allow-content). Locks that are held, or acquired
while gc runs, stay as well. Fences keep growing: a new lock of the same name starts above the old one.`,
		Example: "  azconc lock gc jobs --unused 30d --dry-run",
		Flags: func(opts *gcOptions, set *pflag.FlagSet) {
			set.StringVar(&opts.Prefix, "prefix", "", "only names that begin with this `text`")
			set.DurationVar(&opts.Unused, "unused", 7*24*time.Hour, "time since it was last acquired, at least 1m")
			set.BoolVar(&opts.DryRun, "dry-run", false, "print what would be deleted, and delete nothing")
		},
		Parse: func(opts *gcOptions, in cli.Input) (err error) {
			if opts.Container, err = ref.ParseContainer(in.Args[0]); err != nil {
				return err
			}
			if opts.Unused < time.Minute {
				return fail.Usagef("--unused %s is less than 1m", show.Duration(opts.Unused))
			}
			return nil
		},
		Run: gcRun,
	}
}

type gcResult struct {
	Outcome   string   `json:"outcome"`
	Container string   `json:"resource"`
	Locks     []string `json:"locks"`
	Seen      int      `json:"seen"`
	Deleted   int      `json:"deleted"`
	Held      int      `json:"held"`
	Recent    int      `json:"recent"`
	Foreign   int      `json:"foreign"`
	Requests  int      `json:"requests"`
}

func (r gcResult) Text(w io.Writer) {
	word := "deleted"
	if r.Outcome == "dry_run" {
		word = "would delete"
	}
	for _, name := range r.Locks {
		fmt.Fprintln(w, word, name)
	}
}

func gcRun(ctx context.Context, f *cli.Factory, opts *gcOptions) error {
	k, err := Locker(f, opts.Container, nil)
	if err != nil {
		return err
	}
	r := gcResult{Outcome: "deleted", Container: opts.Container.Container, Locks: []string{}}
	if opts.DryRun {
		r.Outcome = "dry_run"
	}
	got, err := k.GC(ctx, &pessimistic.GCOptions{
		Prefix: opts.Prefix, Unused: opts.Unused, DryRun: opts.DryRun,
		Each: func(i pessimistic.LockInfo) { r.Locks = append(r.Locks, opts.Container.Container+"/"+i.Name) },
	})
	if err != nil {
		return err
	}
	r.Seen, r.Deleted, r.Held, r.Recent, r.Foreign, r.Requests = got.Seen, got.Deleted, got.Held, got.Recent, got.Foreign, got.Requests
	if !f.JSON() && !f.Quiet {
		deleted := "deleted"
		if opts.DryRun {
			deleted = "would be deleted"
		}
		f.Notef("%s seen, %d %s, %d held, %d used since, %d not made by azconc as a lock",
			show.Plural(got.Seen, "lock"), got.Deleted, deleted, got.Held, got.Recent, got.Foreign)
	}
	return f.Print(r)
}
