package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

type containerDeleteOptions struct {
	factory    *Factory
	Container  blobRef
	Conditions optimistic.Conditions
}

func newContainerDeleteCmd(f *Factory, runF func(*containerDeleteOptions) error) *cobra.Command {
	opts := &containerDeleteOptions{factory: f}
	var conditions conditionFlags
	cmd := &cobra.Command{
		Use:   "delete <container>",
		Short: "Delete a container and everything in it",
		Long: `Delete a container and everything in it.

The service frees the name about half a minute later; until then, creating it again fails with 409 ContainerBeingDeleted.`,
		Args: resourceArgs("<container>"),
		Example: `  azconc container delete jobs
  azconc container delete jobs --if-unmodified-since 2026-01-31T12:00:00Z`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Container, err = parseContainer(args[0]); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.forWrite(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return containerDeleteRun(cmd.Context(), opts)
		},
	}
	conditions.add(cmd, condDates|condLease)
	return cmd
}

type deleteResult struct {
	Outcome   string `json:"outcome"`
	Resource  string `json:"resource"`
	BaseETag  string `json:"base_etag,omitempty"`
	Ambiguous int    `json:"ambiguous"`
	Resolved  int    `json:"resolved"`
	Requests  int64  `json:"requests"`
	ElapsedMS int64  `json:"elapsed_ms"`
}

func (r deleteResult) text(w io.Writer) { fmt.Fprintf(w, "%s %s\n", r.Outcome, r.Resource) }

func containerDeleteRun(ctx context.Context, opts *containerDeleteOptions) error {
	f := opts.factory
	client, err := f.Container(opts.Container)
	if err != nil {
		return err
	}
	r := deleteResult{Outcome: "deleted", Resource: opts.Container.String()}
	s, err := sendWrite(ctx, func(ctx context.Context) error {
		_, err := client.Delete(ctx, &container.DeleteOptions{AccessConditions: containerAccess(opts.Conditions)})
		return err
	})
	// A deletion leaves no trace of who made it. Without a condition that does not matter: what was asked for holds.
	unconditional := opts.Conditions == optimistic.Conditions{}
	if s.ambiguous > 0 && unconditional && azerr.Has(err, "ContainerNotFound", "ContainerBeingDeleted") {
		r.Resolved, err = s.ambiguous, nil
	}
	if err = afterAmbiguous(s, err); err != nil {
		return err
	}
	r.Ambiguous, r.Requests, r.ElapsedMS = s.ambiguous, f.requests.Load(), time.Since(f.began).Milliseconds()
	return f.Print(r)
}
