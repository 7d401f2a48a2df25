package queue

import (
	"context"

	"github.com/azconc/azconc/optimistic/settings"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
)

type createOptions struct {
	Queue    string
	Metadata map[string]string
}

func createVerb() cli.Verb[createOptions] {
	return cli.Verb[createOptions]{
		Use:   "create <queue>",
		Short: "Create a queue",
		Long: `Create a queue. If it already exists, the exit code is 7.

If the response is lost and a queue with the requested metadata exists then, the command succeeds, even if another client
created the queue: the outcome is "present".`,
		Example: "  azconc queue create orders\n  azconc queue create orders --metadata team=billing",
		Flags: func(opts *createOptions, set *pflag.FlagSet) {
			flags.Metadata(set, &opts.Metadata, "`name=value` to store with it")
		},
		Resource: func(opts *createOptions, arg string) (err error) { opts.Queue, err = parseQueue(arg); return err },
		Run:      createRun,
	}
}

func createRun(ctx context.Context, f *cli.Factory, opts *createOptions) error {
	queue, err := f.Queue(opts.Queue)
	if err != nil {
		return err
	}
	r, err := settings.CreateQueue(ctx, queue, &settings.CreateQueueOptions{Metadata: opts.Metadata})
	if err != nil {
		return err
	}
	outcome := "created"
	if !r.Created {
		outcome = "present"
	}
	return printQueue(f, outcome, opts.Queue, "", r.Ambiguous)
}
