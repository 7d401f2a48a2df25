package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/pessimistic"
)

type semaphoreRunOptions struct {
	factory   *Factory
	Semaphore blobRef
	Slots     int
	underFlags
}

func newSemaphoreCmd(f *Factory) *cobra.Command {
	return newGroupCmd("semaphore", "Admit at most n holders at a time", newSemaphoreRunCmd(f, nil))
}

func newSemaphoreRunCmd(f *Factory, runF func(*semaphoreRunOptions) error) *cobra.Command {
	opts := &semaphoreRunOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "run <container/name> --slots <n> [flags] -- <command> [<arg>...]",
		Short: "Run a command as one of at most n at a time",
		Long: `Run a command as one of at most n at a time, across all machines that use the same name and the same --slots.

Besides AZCONC_LOCK_NAME, AZCONC_LOCK_FENCE and AZCONC_LEASE_ID the command finds the number of its slot, 0 to n-1, in
AZCONC_SLOT.

` + underLong,
		Args:    opts.args("<container/name>"),
		Example: `  azconc semaphore run jobs/encoders --slots 3 -- ./encode.sh movie.mp4`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Semaphore, err = parseLock(args[0]); err != nil {
				return err
			}
			if !cmd.Flags().Changed("slots") {
				return usagef("--slots is missing")
			}
			if opts.Slots < 1 || opts.Slots > 1000 {
				return usagef("--slots %d is not between 1 and 1000", opts.Slots)
			}
			if err := opts.parse(f, cmd); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return semaphoreRunRun(cmd.Context(), opts)
		},
	}
	opts.add(cmd)
	cmd.Flags().IntVar(&opts.Slots, "slots", 0, "how many may run at a time")
	return cmd
}

func semaphoreRunRun(ctx context.Context, opts *semaphoreRunOptions) error {
	f := opts.factory
	k, err := f.locker(opts.Semaphore, opts.lockerOptions(f))
	if err != nil {
		return err
	}
	s, err := pessimistic.NewSemaphore(k, opts.Semaphore.Blob, opts.Slots)
	if err != nil {
		return &usageError{err: err}
	}
	name := opts.Semaphore.String()
	return f.runUnder(ctx, &opts.underFlags, acquisition{
		what: name,
		acquire: func(ctx context.Context) (held, error) {
			slot, err := opts.slot(ctx, s)
			if err != nil {
				return nil, err
			}
			return slot, nil
		},
		env: func(h held) []string {
			slot := h.(*pessimistic.Slot)
			return append(lockEnv(name, slot.Held), fmt.Sprint("AZCONC_SLOT=", slot.Number))
		},
		facts: func(h held) map[string]any {
			slot := h.(*pessimistic.Slot)
			facts := lockFacts(name, slot.Held)
			facts["slot"] = slot.Number
			return facts
		},
		breaking: func(ctx context.Context, h held) (time.Duration, error) {
			return breaking(ctx, k, h.(*pessimistic.Slot).Held)
		},
	})
}

func (opts *semaphoreRunOptions) slot(ctx context.Context, s *pessimistic.Semaphore) (*pessimistic.Slot, error) {
	if opts.NoWait {
		return s.TryAcquire(ctx)
	}
	return s.Acquire(ctx, &pessimistic.LockOptions{Wait: opts.Wait})
}
