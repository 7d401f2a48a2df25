package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/pessimistic"
)

type semaphoreRunOptions struct {
	factory   *cli.Factory
	Semaphore ref.Blob
	Slots     int
	UnderFlags
}

func NewSemaphoreCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("semaphore", "Admit at most n holders at a time", newSemaphoreRunCmd(f, nil))
}

func newSemaphoreRunCmd(f *cli.Factory, runF func(*semaphoreRunOptions) error) *cobra.Command {
	opts := &semaphoreRunOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "run <container/name> --slots <n> [flags] -- <command> [<arg>...]",
		Short: "Run a command as one of at most n at a time",
		Long: `Run a command as one of at most n at a time, across all machines that use the same name and the same --slots.

Besides AZCONC_LOCK_NAME, AZCONC_LOCK_FENCE and AZCONC_LEASE_ID the command finds the number of its slot, 0 to n-1, in
AZCONC_SLOT.

` + UnderLong,
		Args:    opts.Args("<container/name>"),
		Example: `  azconc semaphore run jobs/encoders --slots 3 -- ./encode.sh movie.mp4`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Semaphore, err = ParseLock(args[0]); err != nil {
				return err
			}
			if !cmd.Flags().Changed("slots") {
				return fail.Usagef("--slots is missing")
			}
			if opts.Slots < 1 || opts.Slots > 1000 {
				return fail.Usagef("--slots %d is not between 1 and 1000", opts.Slots)
			}
			if err := opts.Parse(f, cmd); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return semaphoreRunRun(cmd.Context(), opts)
		},
	}
	opts.Add(cmd)
	cmd.Flags().IntVar(&opts.Slots, "slots", 0, "how many may run at a time")
	return cmd
}

func semaphoreRunRun(ctx context.Context, opts *semaphoreRunOptions) error {
	f := opts.factory
	k, err := Locker(f, opts.Semaphore, opts.LockerOptions(f))
	if err != nil {
		return err
	}
	s, err := pessimistic.NewSemaphore(k, opts.Semaphore.Blob, opts.Slots)
	if err != nil {
		return &fail.UsageError{Err: err}
	}
	name := opts.Semaphore.String()
	return RunUnder(f, ctx, &opts.UnderFlags, Acquisition{
		What: name,
		Acquire: func(ctx context.Context) (Held, error) {
			slot, err := opts.slot(ctx, s)
			if err != nil {
				return nil, err
			}
			return slot, nil
		},
		Env: func(h Held) []string {
			slot := h.(*pessimistic.Slot)
			return append(Env(name, slot.Held), fmt.Sprint("AZCONC_SLOT=", slot.Number))
		},
		Facts: func(h Held) map[string]any {
			slot := h.(*pessimistic.Slot)
			facts := Facts(name, slot.Held)
			facts["slot"] = slot.Number
			return facts
		},
		breaking: func(ctx context.Context, h Held) (time.Duration, error) {
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
