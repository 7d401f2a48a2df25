package once

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lock"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
	idem "github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/idempotent/slot"
	"github.com/azconc/azconc/pessimistic"
)

// runner is a run of azconc once run.
type runner struct {
	lock.UnderFlags
	slotFlags
	f       *cli.Factory
	key     ref.Blob // container and key
	results table

	payload  string // file
	attempts int
	keep     time.Duration // 0: for ever
}

// keepSlots is how long the result of a slot is kept. Unlike a key, it is not used again after the slots that Missed looks back at.
const keepSlots = 90 * 24 * time.Hour

func newRunCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run <container/key> [flags] -- <command> [<arg>...]",
		Short: "Run a command once per key, and replay its output after that",
		Long: `Run a command unless it has already run for the key, on any machine. If it exits with 0, its stdout, up to 47 KiB, is stored in
the table --results, and printed instead whenever the key is used again; its stderr is not stored. A command that fails leaves
no result, and the key can be tried again; with --attempts that many times in all, on whatever machines, and those that die count. A
result stays until azconc once forget deletes it; with --keep, runs delete older ones of theirs in passing, and a key runs again
once its result is deleted.

One process at a time works on a key: it holds the lock "container/once/<key>", and others wait for it, up to --wait;
with --no-wait they exit with 75 at once. If the machine dies after the command took effect and before the result is stored, the
command runs again. It can fence its effect with AZCONC_LOCK_FENCE, which is larger each time.

A key stands for one operation: with another command line, or another --payload, azconc refuses it (exit code 4).

` + slotLong + `

The command finds its key in AZCONC_ONCE_KEY, and with --slot the time of its slot in AZCONC_ONCE_SLOT.

` + lock.UnderLong,
		Example: `  azconc once run jobs/deploy-42 -- ./deploy 42
  azconc once run jobs/order-17 --payload order.json -- ./charge order.json
  azconc once run jobs/report --slot '*/5 * * * *' -- ./report.sh`,
	}
	r := &runner{f: f}
	r.Locker.QuickFirst = true // the lock of a key is needed once
	set := cmd.Flags()
	r.results.add(set)
	r.slotFlags.add(set)
	flags.Int(set, &r.attempts, "attempts", 1, "how often the command is begun, over all machines, until it succeeds (default unbounded)")
	flags.Text(set, &r.keep, "keep", "`duration` for which the result is kept, at least 1h, or infinite (default 90d with --slot, otherwise infinite)", parseKeep)
	set.StringVar(&r.payload, "payload", "", "`file` that identifies the operation; - is stdin (default the command line)")
	parse := func(arg string) (_ ref.Blob, err error) {
		if r.key, err = parseKey(arg); err != nil {
			return r.key, err
		}
		if err := r.slotFlags.parse(set, r.key.Blob); err != nil {
			return r.key, err
		}
		if r.schedule != nil && !set.Changed("keep") {
			r.keep = keepSlots
		}
		return r.key, nil
	}
	return r.Verb(f, cmd, parse, func(ctx context.Context, _ ref.Blob, k *pessimistic.Locker) error { return r.run(ctx, k) })
}

func parseKeep(text string) (time.Duration, error) {
	if text == "infinite" {
		return 0, nil
	}
	d, err := flags.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fail.WithHint(fail.Usagef("--keep %q is not a duration", text), "it looks like 7d or 12h, or it is infinite")
	case d < time.Hour:
		return 0, fail.WithHint(fail.Usagef("--keep %s is less than 1h", text), "it has to be longer than the time within which the key is used again")
	}
	return d, nil
}

// maxPayload bounds --payload, which is read into memory.
const maxPayload = 4 << 20

// run runs the command for the key, or for the slots of a job, or replays what it printed.
func (r *runner) run(ctx context.Context, k *pessimistic.Locker) (err error) {
	payload := []byte(strings.Join(r.Command, "\x00"))
	if r.payload != "" {
		if payload, err = r.f.ContentUpTo(ctx, "--payload", r.payload, maxPayload, "the limit of --payload"); err != nil {
			return err
		}
	}
	if err := r.findSlot(ctx); err != nil {
		return err
	}
	once, err := r.results.open(r.f, k, &idem.Options{Attempts: r.attempts, Keep: r.keep, Lock: r.lockOf})
	if err != nil {
		return err
	}
	slots, err := r.slots(ctx, once)
	if err != nil {
		return err
	}
	for _, s := range slots {
		if r.schedule != nil {
			r.enter(s)
		}
		if err := r.runKey(ctx, k, once, payload); err != nil {
			return err
		}
	}
	return nil
}

// runKey runs the command for the key, or replays what it printed.
func (r *runner) runKey(ctx context.Context, k *pessimistic.Locker, once *idem.Once, payload []byte) error {
	var run *idem.Run
	kept := &proc.Head{Limit: maxKept}
	err := lock.RunUnder(ctx, r.f, &r.UnderFlags, lock.Acquisition{
		Locker: k, What: r.key.String(), Name: r.lockName(),
		Acquire: func(ctx context.Context) (_ *pessimistic.Hold, err error) {
			if run, err = once.Await(ctx, r.key.Blob, payload, r.wait()); err != nil {
				return nil, err
			}
			r.noteMissed(ctx, once)
			return run.Hold(), nil
		},
		Env: func() []string {
			env := []string{"AZCONC_ONCE_KEY=" + r.key.Blob}
			if r.schedule != nil {
				env = append(env, "AZCONC_ONCE_SLOT="+r.due.At.Format(time.RFC3339))
			}
			return env
		},
		Out:     io.MultiWriter(kept, r.f.Out),
		Finish:  func(ctx context.Context) error { return r.finish(ctx, run, kept) },
		Release: func(ctx context.Context) error { return run.Release(ctx) },
	})
	if done, ok := errors.AsType[*idem.DoneError](err); ok {
		return r.replay(done.Result)
	}
	if errors.Is(err, idem.ErrMismatch) {
		return fail.Judged(fail.ExitConflict, "mismatch", fmt.Errorf("%v was completed with another command line or payload, and does not run again", r.key))
	}
	return err
}

// finish stores the output of the command.
func (r *runner) finish(ctx context.Context, run *idem.Run, kept *proc.Head) error {
	result, err := json.Marshal(keptOutput{Bytes: kept.N, Output: kept.Data})
	if err != nil {
		return err
	}
	if kept.Cut() {
		r.f.Notef("the output has %d bytes, of which the first %d are kept", kept.N, len(kept.Data))
	}
	if r.schedule != nil {
		r.schedule.Keep(run, r.job, r.due)
	}
	stored, err := run.Finish(ctx, result)
	switch {
	case err != nil:
		return fmt.Errorf("the command has ended, but its result is not stored, so it will run again: %w", err)
	case stored.Replayed && !bytes.Equal(stored.Value, result): // the lock was lost, and another process has ended first
		return fail.Judged(fail.ExitConflict, "conflict", fmt.Errorf("%v was completed by another process meanwhile, with another output, which is what is stored", r.key))
	}
	return nil
}

// replay prints the stored result.
func (r *runner) replay(out idem.Result) error {
	k, err := readKept(r.key.String(), out)
	if err != nil {
		return err
	}
	if !r.f.Quiet {
		r.f.Notef("%s was run before, at %s; this is what it printed", r.key, show.Time(out.At))
	}
	if k.Bytes > len(k.Output) {
		r.f.Notef("the output of %s had %d bytes, of which the first %d were kept", r.key, k.Bytes, len(k.Output))
	}
	_, err = r.f.Out.Write(k.Output)
	return err
}

func (r *runner) lockName() string {
	return r.key.Container + "/once/" + url.PathEscape(r.lockOf(r.key.Blob))
}

// wait returns how long to wait for the key: up to --wait, and until the slot ends.
func (r *runner) wait() idem.Wait {
	w, noted := idem.Wait{Until: r.ends, Ended: slot.ErrEnded}, ""
	if limit := time.Now().Add(r.Lock.MaxWait); r.Lock.NoWait || r.Lock.MaxWait > 0 && (r.ends.IsZero() || limit.Before(r.ends)) {
		w.Until, w.Ended = limit, nil
	}
	w.Refused = func(err error) error {
		held, busy := errors.AsType[*pessimistic.HeldError](err)
		if busy && r.under(held) {
			return fail.WithHint(fmt.Errorf("%s would wait for itself: %w: %w", r.key, idem.ErrInProgress, held), "the command of azconc once run must not run the same key")
		}
		why := "the service does not answer"
		if busy {
			why = "in progress at " + cmp.Or(held.Holder, "another")
		}
		if noted != why && r.f.ErrTerminal && !r.f.Quiet {
			r.f.Notef("waiting for %s, %s", r.key, why)
			noted = why
		}
		return nil
	}
	return w
}

// under reports whether the holder's command has started this one.
func (r *runner) under(held *pessimistic.HeldError) bool {
	return r.f.Env.Get("AZCONC_LOCK_NAME") == r.lockName() && r.f.Env.Get("AZCONC_LOCK_FENCE") == held.Fence.String()
}
