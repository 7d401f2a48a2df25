package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/pessimistic/shared"
)

type semaphoreRunOptions struct {
	Semaphore ref.Blob
	Slots     int
	UnderFlags
}

func NewSemaphoreCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("semaphore", "Admit at most n holders at a time",
		semaphoreRunVerb().Command(f),
		semaphoreShowVerb().Command(f),
		semaphoreListVerb().Command(f),
	)
}

func semaphoreRunVerb() cli.Verb[semaphoreRunOptions] {
	return cli.Verb[semaphoreRunOptions]{
		Use:   "run <container/name> --slots <n> [flags] -- <command> [<arg>...]",
		Short: "Run a command as one of at most n at a time",
		Long: `Run a command as one of at most n at a time, across all machines that use the same name and the same --slots.

In addition to AZCONC_LOCK_NAME, AZCONC_LOCK_FENCE and AZCONC_LEASE_ID, the command gets the number of its slot, 0 to n-1, in
AZCONC_SLOT.

` + UnderLong,
		Example: `  azconc semaphore run jobs/encoders --slots 3 -- ./encode.sh movie.mp4`,
		Args:    cobra.ArbitraryArgs,
		Flags: func(opts *semaphoreRunOptions, set *pflag.FlagSet) {
			opts.Add(set)
			set.IntVar(&opts.Slots, "slots", 0, "how many may run at a time")
		},
		Parse: func(opts *semaphoreRunOptions, in cli.Input) (err error) {
			if err := opts.Take(in, "<container/name>"); err != nil {
				return err
			}
			if opts.Semaphore, err = ParseLock(in.Args[0]); err != nil {
				return err
			}
			if !in.Flags.Changed("slots") {
				return fail.Usagef("--slots is missing")
			}
			if opts.Slots < 1 || opts.Slots > 1000 {
				return fail.Usagef("--slots %d is not between 1 and 1000", opts.Slots)
			}
			return opts.Parse(in)
		},
		Run: semaphoreRunRun,
	}
}

func semaphoreRunRun(ctx context.Context, f *cli.Factory, opts *semaphoreRunOptions) error {
	k, err := Locker(f, opts.Semaphore, opts.LockerOptions(f))
	if err != nil {
		return err
	}
	s, err := shared.NewSemaphore(k, opts.Semaphore.Blob, opts.Slots)
	if err != nil {
		return &fail.UsageError{Err: err}
	}
	name := opts.Semaphore.String()
	return RunUnder(f, ctx, &opts.UnderFlags, Acquisition{
		What: name,
		Acquire: func(ctx context.Context) (Held, error) {
			slot, err := s.Acquire(ctx, opts.lockOptions())
			if err != nil {
				return nil, err
			}
			return slot, nil
		},
		Env: func(h Held) []string {
			slot := h.(*shared.Slot)
			return append(Env(name, slot.Hold), fmt.Sprint("AZCONC_SLOT=", slot.Number))
		},
		Facts: func(h Held) map[string]any {
			slot := h.(*shared.Slot)
			facts := Facts(name, slot.Hold)
			facts["slot"] = slot.Number
			return facts
		},
		Breaking: func(ctx context.Context, h Held) (time.Duration, error) {
			return Breaking(ctx, k, h.(*shared.Slot).Hold)
		},
	})
}
