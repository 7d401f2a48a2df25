package once

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lock"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
	idem "github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/idempotent/slot"
	"github.com/azconc/azconc/pessimistic"
)

type runOptions struct {
	options
	lock.UnderFlags
	slotFlags
	Payload  string // file
	Attempts int
	Keep     string // a duration, or "infinite"

	keep time.Duration // 0: for ever
}

// keepSlots is how long the result of a slot is kept. Unlike a key, it is not used again after the slots that Missed looks back at.
const keepSlots = 90 * 24 * time.Hour

func runVerb() cli.Verb[runOptions] {
	return cli.Verb[runOptions]{
		Use:   "run <container/key> [flags] -- <command> [<arg>...]",
		Short: "Run a command once per key, and replay its output after that",
		Long: `Run a command unless it has already run for the key, on any machine. If it exits with 0, its stdout, up to 47 KiB, is stored in
the table --results, and printed instead whenever the key is used again; its stderr is not stored. A command that fails leaves
no result, and the key can be tried again; with --attempts that many times in all, on whatever machines, and those that die count. A
result stays until azconc once forget or azconc once gc deletes it; with --keep, runs delete older ones of theirs in passing, and a key
that is used again after that runs again.

One process at a time works on a key: it holds the lock "container/once/<key>", and others wait for it, up to --wait;
with --no-wait they exit with 75 at once. If the machine dies after the command took effect and before the result is stored, the
command runs again. It can fence its effect with AZCONC_LOCK_FENCE, which is larger each time.

A key stands for one operation: with another command line, or another --payload, azconc refuses it (exit code 4).

` + slotLong + `

The command gets AZCONC_ONCE_KEY, AZCONC_LOCK_NAME, AZCONC_LOCK_FENCE and AZCONC_LEASE_ID in its environment, and with --slot
AZCONC_ONCE_SLOT, the time of the slot.

` + lock.UnderLong,
		Example: `  azconc once run jobs/deploy-42 -- ./deploy 42
  azconc once run jobs/order-17 --payload order.json -- ./charge order.json
  azconc once run jobs/report --slot '*/5 * * * *' -- ./report.sh`,
		Args: cobra.ArbitraryArgs,
		Flags: func(opts *runOptions, set *pflag.FlagSet) {
			opts.options.add(set)
			opts.UnderFlags.Add(set)
			opts.slotFlags.add(set)
			flags.Int(set, &opts.Attempts, "attempts", 1, "how often the command is begun, over all machines, until it succeeds (default unbounded)")
			set.StringVar(&opts.Keep, "keep", "", "`duration` for which the result is kept, at least 1h, or infinite (default 90d with --slot, otherwise infinite)")
			set.StringVar(&opts.Payload, "payload", "", "`file` that identifies the operation; - is stdin (default the command line)")
		},
		Parse: func(opts *runOptions, in cli.Input) (err error) {
			if err := opts.Take(in, "<container/key>"); err != nil {
				return err
			}
			if err := opts.options.parse(in); err != nil {
				return err
			}
			if err := opts.slotFlags.parse(in, opts.Key.Blob); err != nil {
				return err
			}
			if err := opts.parseKeep(in.Flags.Changed("keep")); err != nil {
				return err
			}
			return opts.UnderFlags.Parse(in)
		},
		Run: runRun,
	}
}

func (o *runOptions) parseKeep(given bool) (err error) {
	switch {
	case !given && o.schedule != nil:
		o.keep = keepSlots
	case given && o.Keep != "infinite":
		if o.keep, err = flags.ParseDuration(o.Keep); err != nil {
			return fail.WithHint(fail.Usagef("--keep %q is not a duration", o.Keep), "it looks like 7d or 12h, or it is infinite")
		}
		if o.keep < time.Hour {
			return fail.WithHint(fail.Usagef("--keep %s is less than 1h", o.Keep), "it has to be longer than the time within which the key is used again")
		}
	}
	return nil
}

// doneBefore reports that the key was completed before, so that nothing is run.
type doneBefore struct{ out idem.Result }

func (*doneBefore) Error() string { return "it was completed before" }

// maxPayload bounds --payload, which is read into memory.
const maxPayload = 4 << 20

func runRun(ctx context.Context, f *cli.Factory, opts *runOptions) error {
	payload := []byte(strings.Join(opts.Command, "\x00"))
	if opts.Payload != "" {
		var err error
		if payload, err = f.WholeContent(ctx, opts.Payload, maxPayload); err != nil {
			return err
		}
	}
	if err := opts.slot(ctx, f); err != nil {
		return err
	}
	o := opts.LockerOptions(f)
	o.QuickFirst = true // the lock of a key is needed once
	k, err := lock.Locker(f, opts.Key, o)
	if err != nil {
		return err
	}
	once, err := opts.results(f, k, &idem.Options{Attempts: opts.Attempts, Keep: opts.keep, Lock: opts.lockOf})
	if err != nil {
		return err
	}
	slots, err := opts.caughtUp(ctx, f, once)
	if err != nil {
		return err
	}
	for _, s := range slots {
		if opts.schedule != nil {
			opts.enter(s)
		}
		if err := opts.runKey(ctx, f, k, once, payload); err != nil {
			return err
		}
	}
	return nil
}

// runKey runs the command for the key, or replays its output.
func (o *runOptions) runKey(ctx context.Context, f *cli.Factory, k *pessimistic.Locker, once *idem.Once, payload []byte) error {
	key := o.Key.Blob
	kept := &proc.Head{Limit: maxKept}
	err := lock.RunUnder(f, ctx, &o.UnderFlags, lock.Acquisition{
		What:    o.Key.String(),
		Acquire: func(ctx context.Context) (lock.Held, error) { return o.begin(ctx, f, once, key, payload) },
		Env: func(h lock.Held) []string {
			env := append(lock.Env(o.lockName(), h.(*idem.Run).Hold), "AZCONC_ONCE_KEY="+key)
			if o.schedule != nil {
				env = append(env, "AZCONC_ONCE_SLOT="+o.due.At.Format(time.RFC3339))
			}
			return env
		},
		Facts: func(h lock.Held) map[string]any { return lock.Facts(o.lockName(), h.(*idem.Run).Hold) },
		Breaking: func(ctx context.Context, h lock.Held) (time.Duration, error) {
			return lock.Breaking(ctx, k, h.(*idem.Run).Hold)
		},
		Out: io.MultiWriter(kept, f.Out),
		Finish: func(ctx context.Context, h lock.Held) error {
			result, err := json.Marshal(keptOutput{Bytes: kept.N, Output: kept.Data})
			if err != nil {
				return err
			}
			if kept.Cut() {
				f.Notef("the output has %d bytes, of which the first %d are kept", kept.N, len(kept.Data))
			}
			run := h.(*idem.Run)
			if o.schedule != nil {
				o.schedule.Keep(run, o.job, o.due)
			}
			if _, err := run.Finish(ctx, result); err != nil {
				return fmt.Errorf("the command has ended, but its result is not stored, so it will run again: %w", err)
			}
			return nil
		},
	})
	if before, ok := errors.AsType[*doneBefore](err); ok {
		return replay(f, o.Key.String(), before.out)
	}
	if errors.Is(err, idem.ErrMismatch) {
		return &mismatch{err: err, key: o.Key.String()}
	}
	return err
}

func (o *runOptions) lockName() string {
	return o.Key.Container + "/once/" + url.PathEscape(o.lockOf(o.Key.Blob))
}

// begin acquires the key, and waits while another process works on it, or the service does not answer.
func (o *runOptions) begin(ctx context.Context, f *cli.Factory, once *idem.Once, key string, payload []byte) (lock.Held, error) {
	run, out, err := once.Await(ctx, key, payload, o.wait(f))
	switch {
	case err != nil:
		return nil, err
	case run == nil:
		return nil, &doneBefore{out}
	}
	o.missed(ctx, f, once)
	return run, nil
}

// wait returns how long to wait for the key: up to --wait, and until the slot ends.
func (o *runOptions) wait(f *cli.Factory) idem.Wait {
	w, noted := idem.Wait{Until: o.ends, Ended: slot.ErrEnded}, ""
	if limit := time.Now().Add(o.Wait); o.NoWait || o.Wait > 0 && (o.ends.IsZero() || limit.Before(o.ends)) {
		w.Until, w.Ended = limit, nil
	}
	w.Refused = func(err error) error {
		held, busy := errors.AsType[*pessimistic.HeldError](err)
		if busy && o.under(f, held) {
			return fail.WithHint(fmt.Errorf("%s would wait for itself: %w: %w", o.Key, idem.ErrInProgress, held), "the command of azconc once run must not run the same key")
		}
		why := "the service does not answer"
		if busy {
			why = "in progress at " + show.OrAnother(held.Holder)
		}
		if noted != why && f.ErrTerminal && !f.Quiet {
			f.Notef("waiting for %s, %s", o.Key, why)
			noted = why
		}
		return nil
	}
	return w
}

// under reports whether the holder's command has started this one.
func (o *runOptions) under(f *cli.Factory, held *pessimistic.HeldError) bool {
	return f.Env.Get("AZCONC_LOCK_NAME") == o.lockName() && f.Env.Get("AZCONC_LOCK_FENCE") == held.Fence.String()
}

// mismatch reports that the key was completed with another command line or payload.
type mismatch struct {
	err error
	key string
}

func (e *mismatch) Error() string {
	return e.key + " was completed with another command line or payload, and does not run again"
}
func (e *mismatch) Unwrap() error { return e.err }
func (*mismatch) Verdict() fail.Verdict {
	return fail.Verdict{Code: fail.ExitConflict, Outcome: "mismatch"}
}
