package lock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/observe"
)

type holdOptions struct {
	Lock  ref.Blob
	For   time.Duration
	Stdin bool
	acquireFlags
}

func holdVerb() cli.Verb[holdOptions] {
	return cli.Verb[holdOptions]{
		Use:   "hold <container/name>",
		Short: "Hold a lock until a signal, a timeout or the end of stdin",
		Long: `Hold a lock: acquire it, print its fence, renew it, and release it on INT, TERM or HUP, after --for, or with --stdin when stdin
ends. The exit code is then 0; it is 6 if another client holds the lock, and 9 if the lock was lost.

azconc lock run is the safer choice: it stops the work when the lock is lost. With lock hold, the caller
has to notice that azconc has exited.`,
		Example: `  azconc lock hold jobs/maintenance --for 1h
  coproc HOLD { azconc lock hold jobs/maintenance --stdin; }; read -u ${HOLD[0]} FENCE`,
		Flags: func(opts *holdOptions, set *pflag.FlagSet) {
			opts.add(set)
			set.DurationVar(&opts.For, "for", 0, "release it after this long (default on a signal)")
			set.BoolVar(&opts.Stdin, "stdin", false, "release it when stdin ends")
		},
		Resource: func(opts *holdOptions, arg string) (err error) { opts.Lock, err = ParseLock(arg); return err },
		Parse: func(opts *holdOptions, in cli.Input) (err error) {
			if err := opts.parse(in.Flags); err != nil {
				return err
			}
			if in.Flags.Changed("for") && opts.For <= 0 {
				return fail.Usagef("--for %v is not positive", opts.For)
			}
			return nil
		},
		Run: holdRun,
	}
}

type holdResult struct {
	Outcome string `json:"outcome"`
	Lock    string `json:"resource"`
	Owner   string `json:"owner"`
	Fence   int64  `json:"fence"`
	ETag    string `json:"etag"`
	LeaseID string `json:"lease_id"`
}

func (r holdResult) Text(w io.Writer) { fmt.Fprintln(w, r.Fence) }

func holdRun(ctx context.Context, f *cli.Factory, opts *holdOptions) error {
	k, err := Locker(f, opts.Lock, &pessimistic.LockerOptions{Owner: opts.Owner, Duration: opts.Duration, AllowContent: opts.AllowContent, Hooks: observe.Join(f.Monitor.Hooks(), waitingNote(f))})
	if err != nil {
		return err
	}
	h, err := opts.lock(ctx, k, opts.Lock.Blob)
	if err != nil {
		return err
	}
	err = f.Print(holdResult{Outcome: "held", Lock: opts.Lock.String(), Owner: h.Owner(), Fence: int64(h.Fence()), ETag: string(h.ETag()), LeaseID: h.ID()})
	if err == nil {
		err = opts.untilRelease(h.Context(), f)
	}
	released := h.Release(ctx)
	if err != nil {
		return err
	}
	return released
}

// untilRelease waits until the lock is to be released: by a signal, after --for, or when stdin ends. That is success.
func (opts *holdOptions) untilRelease(ctx context.Context, f *cli.Factory) error {
	var end <-chan time.Time
	if opts.For > 0 {
		end = time.After(opts.For)
	}
	closed := make(chan error, 1)
	if opts.Stdin {
		go func() { // ends with stdin, or with the process
			_, err := io.Copy(io.Discard, f.In)
			closed <- err
		}()
	}
	select {
	case <-end:
	case <-closed:
	case <-ctx.Done():
		if _, told := errors.AsType[*fail.SignalError](context.Cause(ctx)); !told {
			return context.Cause(ctx)
		}
	}
	return nil
}
