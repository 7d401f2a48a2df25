package queue

import (
	"context"
	"fmt"
	"maps"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

type createOptions struct {
	Queue    string
	Metadata map[string]string
}

func createVerb() cli.Verb[createOptions] {
	var metadata []string
	return cli.Verb[createOptions]{
		Use:   "create <queue>",
		Short: "Create a queue",
		Long: `Create a queue. If it already exists, the exit code is 7.

If the response is lost and a queue with the requested metadata exists then, the command succeeds, even if another client
created the queue: the outcome is "present".`,
		Example: "  azconc queue create orders\n  azconc queue create orders --metadata team=billing",
		Flags: func(_ *createOptions, set *pflag.FlagSet) {
			set.StringArrayVar(&metadata, "metadata", nil, "`name=value` to store with it; may be repeated")
		},
		Parse: func(opts *createOptions, in cli.Input) (err error) {
			if opts.Queue, err = parseQueue(in.Args[0]); err != nil {
				return err
			}
			opts.Metadata, err = flags.ParsePairs("--metadata", metadata)
			return err
		},
		Run: createRun,
	}
}

func createRun(ctx context.Context, f *cli.Factory, opts *createOptions) error {
	queue, err := f.Queue(opts.Queue)
	if err != nil {
		return err
	}
	metadata := map[string]*string{}
	for name, value := range maps.All(opts.Metadata) {
		metadata[name] = &value
	}
	var answer *http.Response
	s, err := cli.SendWrite(ctx, func(ctx context.Context) error {
		_, err := queue.Create(policy.WithCaptureResponse(ctx, &answer), &azqueue.CreateOptions{Metadata: metadata})
		return err
	})
	outcome := "created"
	switch {
	case azerr.Has(err, "QueueAlreadyExists"):
		return fmt.Errorf("%w, with other metadata: %w", optimistic.ErrExists, azerr.Clean(err))
	case err != nil:
		return cli.AfterAmbiguous(s, err)
	case answer.StatusCode == http.StatusNoContent && s.Ambiguous == 0: // REST: "Create Queue", 204 if it exists with the same metadata
		return optimistic.ErrExists
	case answer.StatusCode == http.StatusNoContent:
		outcome = "present"
	}
	return printQueue(f, outcome, opts.Queue, "", s)
}
