package queue

import (
	"context"
	"fmt"
	"maps"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

type createOptions struct {
	factory  *cli.Factory
	Queue    string
	Metadata map[string]string
}

func newCreateCmd(f *cli.Factory, runF func(*createOptions) error) *cobra.Command {
	opts := &createOptions{factory: f}
	var metadata []string
	cmd := &cobra.Command{
		Use:   "create <queue>",
		Short: "Create a queue",
		Long: `Create a queue. If it already exists, the exit code is 7.

If the response is lost and a queue with the requested metadata exists then, the command succeeds, even if another client
created the queue: the outcome is "present".`,
		Args:    cli.ResourceArgs("<queue>"),
		Example: "  azconc queue create orders\n  azconc queue create orders --metadata team=billing",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Queue, err = parseQueue(args[0]); err != nil {
				return err
			}
			if opts.Metadata, err = flags.ParsePairs("--metadata", metadata); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return createRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringArrayVar(&metadata, "metadata", nil, "`name=value` to store with it; may be repeated")
	return cmd
}

func createRun(ctx context.Context, opts *createOptions) error {
	queue, err := opts.factory.Queue(opts.Queue)
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
	return printQueue(opts.factory, outcome, opts.Queue, "", s)
}
