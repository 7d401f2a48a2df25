package cli

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

type fileWaitOptions struct {
	factory *Factory
	File    fileRef
	Until   string
	Wait    time.Duration
	Poll    time.Duration
}

func newFileWaitCmd(f *Factory, runF func(*fileWaitOptions) error) *cobra.Command {
	opts := &fileWaitOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "wait <share/path>",
		Short: "Wait until SMB clients have closed a file, or until it is gone",
		Long: `Wait until no SMB client has a file open, until its lease is free, or until the file is gone. The clients waited for are
reported on stderr, again every 10 s. If --wait passes first, the exit code is 6.

With --until gone, azconc waits for a deletion that an SMB client has begun; if the client withdraws the mark, the exit code
is 4.`,
		Args:    resourceArgs("<share/path>"),
		Example: "  azconc file wait reports/q3.xlsx --wait 10m\n  azconc file wait reports/q3.xlsx --until gone",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.File, err = parseFile(args[0]); err != nil {
				return err
			}
			switch {
			case opts.Until != "closed" && opts.Until != "unleased" && opts.Until != "gone":
				return usagef("--until %q is neither closed, unleased nor gone", opts.Until)
			case opts.Wait < 0:
				return usagef("--wait %v is negative", opts.Wait)
			case opts.Poll < 100*time.Millisecond:
				return usagef("--poll %v is less than 100ms", opts.Poll)
			}
			if runF != nil {
				return runF(opts)
			}
			return fileWaitRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Until, "until", "closed", "what to wait for: {closed | unleased | gone}")
	cmd.Flags().DurationVar(&opts.Wait, "wait", 0, "wait at most this long; 0 is no limit")
	cmd.Flags().DurationVar(&opts.Poll, "poll", 2*time.Second, "longest pause between two checks")
	return cmd
}

func fileWaitRun(ctx context.Context, opts *fileWaitOptions) error {
	f := opts.factory
	client, err := f.File(opts.File)
	if err != nil {
		return err
	}
	began := time.Now()
	r := fileResult{Outcome: opts.Until, Resource: opts.File.String()}
	o := &pessimistic.WaitOptions{Wait: opts.Wait, Poll: opts.poll(), Waiting: f.waiting}
	switch opts.Until {
	case "gone":
		err = waitGone(ctx, client, o)
	case "unleased":
		err = waitUnleased(ctx, client, opts)
	default:
		err = pessimistic.WaitClosed(ctx, client, o)
	}
	if err != nil {
		return err
	}
	r.WaitedMS = time.Since(began).Milliseconds()
	return f.printFile(r)
}

func (o *fileWaitOptions) poll() retry.Backoff {
	return retry.Backoff{Base: min(250*time.Millisecond, o.Poll), Cap: o.Poll}
}

// waitFor is a loop that looks again and again, for so long, or for as long as it takes if wait is 0.
func waitFor(wait time.Duration, pace retry.Backoff) *retry.Loop {
	if wait == 0 {
		wait = -1
	}
	return retry.Budget{Attempts: -1, Elapsed: wait, Backoff: pace}.Start()
}

// waiting reports the clients waited for.
func (f *Factory) waiting(e pessimistic.InUseError) {
	if !f.Quiet {
		f.Notef("waiting: %s", firstLine(e.Error()))
	}
}

var errNotGone = errors.New("it is there")

// waitGone polls until the file is not found. A file that is not marked for deletion may still be deleted.
func waitGone(ctx context.Context, client *file.Client, o *pessimistic.WaitOptions) error {
	marked, again := false, waitFor(o.Wait, o.Poll)
	for {
		err := pessimistic.WaitUnlocked(ctx, client, o, func(ctx context.Context) error {
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
			return pessimistic.ErrUndeleted
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
func waitUnleased(ctx context.Context, client *file.Client, opts *fileWaitOptions) error {
	began, again := time.Now(), waitFor(opts.Wait, opts.poll())
	for {
		seen, err := pessimistic.Look(ctx, pessimistic.File(client), nil)
		if err != nil || seen.State != pessimistic.StateLeased && seen.State != pessimistic.StateBreaking {
			return err
		}
		if again.Next(ctx, 0) != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			h := seen.Holder()
			return &pessimistic.HeldError{Resource: opts.File.String(), Holder: h.Name, Since: h.Since, State: seen.State, Waited: time.Since(began)}
		}
	}
}
