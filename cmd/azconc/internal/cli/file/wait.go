package file

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

type waitOptions struct {
	File  ref.File
	Until string
	Wait  time.Duration
	Poll  time.Duration
}

func waitVerb() cli.Verb[waitOptions] {
	return cli.Verb[waitOptions]{
		Use:   "wait <share/path>",
		Short: "Wait until SMB clients have closed a file, or until it is gone",
		Long: `Wait until no SMB client has a file open, until its lease is free, or until the file is gone. The clients waited for are
reported on stderr, again every 10 s. If --wait passes first, the exit code is 6.

With --until gone, azconc waits for a deletion that an SMB client has begun; if the client withdraws the mark, the exit code
is 4.`,
		Example: "  azconc file wait reports/q3.xlsx --wait 10m\n  azconc file wait reports/q3.xlsx --until gone",
		Flags: func(opts *waitOptions, set *pflag.FlagSet) {
			flags.OneOf(set, &opts.Until, "until", "what to wait for", "closed", "unleased", "gone")
			flags.Duration(set, &opts.Wait, "wait", true, "wait at most this long; 0 is no limit")
			set.DurationVar(&opts.Poll, "poll", 2*time.Second, "longest pause between two checks")
		},
		Resource: func(opts *waitOptions, arg string) (err error) { opts.File, err = ref.ParseFile(arg); return err },
		Parse: func(opts *waitOptions, _ cli.Input) error {
			if opts.Poll < 100*time.Millisecond {
				return fail.Usagef("--poll %v is less than 100ms", opts.Poll)
			}
			return nil
		},
		Run: waitRun,
	}
}

func waitRun(ctx context.Context, f *cli.Factory, opts *waitOptions) error {
	client, err := f.File(opts.File)
	if err != nil {
		return err
	}
	began := time.Now()
	r := result{Outcome: opts.Until, Resource: opts.File.String()}
	o := &files.WaitOptions{MaxWait: opts.Wait, Poll: opts.poll(), Waiting: func(e files.InUseError) { waiting(f, e) }}
	switch opts.Until {
	case "gone":
		err = waitGone(ctx, client, o)
	case "unleased":
		err = waitUnleased(ctx, client, opts)
	default:
		err = files.WaitClosed(ctx, client, o)
	}
	if err != nil {
		return err
	}
	r.WaitedMS = time.Since(began).Milliseconds()
	return printFile(f, r)
}

func (o *waitOptions) poll() retry.Backoff {
	return retry.Backoff{Base: min(250*time.Millisecond, o.Poll), Cap: o.Poll}
}

// waiting reports the clients waited for.
func waiting(f *cli.Factory, e files.InUseError) {
	if !f.Quiet {
		f.Notef("waiting: %s", show.FirstLine(e.Error()))
	}
}

var errNotGone = errors.New("it is there")

// waitGone polls until the file is not found. A file that is not marked for deletion may still be deleted.
func waitGone(ctx context.Context, client *file.Client, o *files.WaitOptions) error {
	marked, again := false, WaitFor(o.MaxWait, o.Poll)
	for {
		err := files.WaitUnlocked(ctx, client, o, func(ctx context.Context) error {
			_, err := client.GetProperties(ctx, nil)
			marked = marked || azerr.Classify(err).Reason == azerr.DeletePending
			return err
		})
		switch {
		case azerr.Classify(err).Kind == azerr.NotFound:
			return nil
		case err != nil:
			return err
		case marked:
			return files.ErrUndeleted
		}
		if err := again.Next(ctx, 0); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return &pessimistic.HeldError{Resource: client.URL(), Err: errNotGone}
		}
	}
}

// waitUnleased polls until the file's lease is free.
func waitUnleased(ctx context.Context, client *file.Client, opts *waitOptions) error {
	began, again := time.Now(), WaitFor(opts.Wait, opts.poll())
	for {
		seen, err := pessimistic.Look(ctx, files.NewFile(client), nil)
		if err != nil || seen.State.Free() {
			return err
		}
		if again.Next(ctx, 0) != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			h := files.LeaseInfoOf(seen)
			return &pessimistic.HeldError{Resource: opts.File.String(), Holder: h.Owner, Since: h.Since, State: seen.State, Waited: time.Since(began)}
		}
	}
}
