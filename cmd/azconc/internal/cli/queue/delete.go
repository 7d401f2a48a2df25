package queue

import (
	"context"

	"github.com/azconc/azconc/optimistic/settings"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
)

func (o *options) parse(in cli.Input) (err error) {
	o.Queue, err = parseQueue(in.Args[0])
	return err
}

func deleteVerb() cli.Verb[options] {
	return cli.Verb[options]{
		Use:   "delete <queue>",
		Short: "Delete a queue and every message in it",
		Long: `Delete a queue and every message in it. The service accepts no condition here: last writer wins.

The service frees the name about 30 seconds later; until then, creating it again fails with 409 QueueBeingDeleted.`,
		Example: "  azconc queue delete orders",
		Parse:   (*options).parse,
		Run:     deleteRun,
	}
}

func deleteRun(ctx context.Context, f *cli.Factory, opts *options) error {
	queue, err := f.Queue(opts.Queue)
	if err != nil {
		return err
	}
	r, err := settings.DeleteQueue(ctx, queue, nil)
	if err != nil {
		return err
	}
	return printQueue(f, "deleted", opts.Queue, "", r.Ambiguous)
}

func clearVerb() cli.Verb[options] {
	return cli.Verb[options]{
		Use:   "clear <queue>",
		Short: "Delete every message of a queue",
		Long: `Delete every message of a queue, including hidden ones, which a consumer has received.

The service deletes them piece by piece and may time out on a large queue; azconc then repeats the request. A message that is
sent meanwhile may be deleted too.`,
		Example: "  azconc queue clear orders",
		Parse:   (*options).parse,
		Run:     clearRun,
	}
}

func clearRun(ctx context.Context, f *cli.Factory, opts *options) error {
	queue, err := f.Queue(opts.Queue)
	if err != nil {
		return err
	}
	r, err := settings.ClearQueue(ctx, queue, nil)
	if err != nil {
		return err
	}
	return printQueue(f, "cleared", opts.Queue, "", r.Ambiguous)
}
