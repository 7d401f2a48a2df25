package file

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/spf13/cobra"

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

func newWaitCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "wait <share/path>",
		Short: "Wait until SMB clients have closed a file, or until it is gone",
		Long: `Wait until no SMB client has a file open, until its lease is free, or until the file is gone. The clients waited for are
reported on stderr, again every 10 s. If --wait passes first, the exit code is 6.

With --until gone, azconc waits for a deletion that an SMB client has begun; if the client withdraws the mark, the exit code
is 4.`,
		Example: "  azconc file wait reports/q3.xlsx --wait 10m\n  azconc file wait reports/q3.xlsx --until gone",
	}
	var until string
	var wait time.Duration
	flags.OneOf(cmd.Flags(), &until, "until", "what to wait for", "closed", "unleased", "gone")
	flags.Duration(cmd.Flags(), &wait, "wait", true, "wait at most this long; 0 is no limit")
	poll := cmd.Flags().Duration("poll", 2*time.Second, "longest pause between two checks")
	parse := func(arg string) (on ref.File, err error) {
		if on, err = ref.ParseFile(arg); err == nil && *poll < 100*time.Millisecond {
			err = fail.Usagef("--poll %v is less than 100ms", *poll)
		}
		return on, err
	}
	return cli.On(f, cmd, parse, f.File, func(ctx context.Context, on ref.File, client *file.Client) (cli.Result, error) {
		began := time.Now()
		o := &files.WaitOptions{
			MaxWait: wait, Poll: retry.Backoff{Base: min(250*time.Millisecond, *poll), Cap: *poll}, Waiting: func(e files.InUseError) { waiting(f, e) },
		}
		var err error
		switch until {
		case "gone":
			err = waitGone(ctx, client, o)
		case "unleased":
			err = waitUnleased(ctx, on, client, o)
		default:
			err = files.WaitClosed(ctx, client, o)
		}
		return result{Outcome: until, Resource: on.String(), WaitedMS: time.Since(began).Milliseconds(), Cost: f.Cost()}, err
	})
}

// waitingFor returns how a verb waits so long for SMB clients, with its progress on stderr. It is nil if wait is 0: the verb
// does not wait.
func waitingFor(f *cli.Factory, wait time.Duration) *files.WaitOptions {
	if wait == 0 {
		return nil
	}
	return &files.WaitOptions{MaxWait: wait, Waiting: func(e files.InUseError) { waiting(f, e) }}
}

// WaitFor returns a loop that polls for this long, or without a bound if wait is 0.
func WaitFor(wait time.Duration, pace retry.Backoff) *retry.Loop {
	if wait == 0 {
		wait = -1
	}
	return retry.Budget{Attempts: -1, Elapsed: wait, Backoff: pace}.Start()
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
func waitUnleased(ctx context.Context, on ref.File, client *file.Client, o *files.WaitOptions) error {
	began, again := time.Now(), WaitFor(o.MaxWait, o.Poll)
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
			return &pessimistic.HeldError{Resource: on.String(), Holder: h.Owner, Since: h.Since, State: seen.State, Waited: time.Since(began)}
		}
	}
}
