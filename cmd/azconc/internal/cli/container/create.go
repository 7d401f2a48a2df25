package container

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

type createOptions struct {
	Container ref.Blob
	Metadata  map[string]string
}

func createVerb() cli.Verb[createOptions] {
	var metadata []string
	return cli.Verb[createOptions]{
		Use:   "create <container>",
		Short: "Create a container",
		Long: `Create a container. If it already exists, the exit code is 7.

The container gets an id in its metadata, so that if the response is lost, azconc can recognize the container it created.`,
		Example: `  azconc container create jobs
  azconc container create jobs --metadata team=billing`,
		Flags: func(_ *createOptions, set *pflag.FlagSet) {
			set.StringArrayVar(&metadata, "metadata", nil, "`name=value` to store with it; may be repeated")
		},
		Parse: func(opts *createOptions, in cli.Input) (err error) {
			if opts.Container, err = ref.ParseContainer(in.Args[0]); err != nil {
				return err
			}
			opts.Metadata, err = flags.ParsePairs("--metadata", metadata)
			return err
		},
		Run: createRun,
	}
}

type createResult struct {
	Outcome   string `json:"outcome"`
	Container string `json:"resource"`
	Created   bool   `json:"created"`
	ETag      string `json:"etag"`
	Ambiguous int    `json:"ambiguous"`
	Resolved  int    `json:"resolved"`
	Requests  int64  `json:"requests"`
	ElapsedMS int64  `json:"elapsed_ms"`
}

func (r createResult) Text(w io.Writer) { fmt.Fprintf(w, "%s %s\n", r.Outcome, r.Container) }

func createRun(ctx context.Context, f *cli.Factory, opts *createOptions) error {
	client, err := f.Container(opts.Container)
	if err != nil {
		return err
	}
	id := uuid.NewString()
	metadata := map[string]*string{flags.CreateStamp: &id}
	for name, value := range maps.All(opts.Metadata) {
		metadata[name] = &value
	}
	r := createResult{Outcome: "created", Container: opts.Container.String(), Created: true}
	s, err := cli.SendWrite(ctx, func(ctx context.Context) error {
		resp, err := client.Create(ctx, &container.CreateOptions{Metadata: metadata})
		r.ETag = string(cli.Deref(resp.ETag))
		return err
	})
	if err != nil && s.Ambiguous > 0 {
		if r.ETag, err = madeBy(ctx, client, id, s.First, err); err == nil {
			r.Resolved = s.Ambiguous
		}
	}
	if err != nil {
		return err
	}
	r.Ambiguous, r.Requests, r.ElapsedMS = s.Ambiguous, f.Requests.Load(), time.Since(f.Began).Milliseconds()
	return f.Print(r)
}

// madeBy resolves a create whose response was lost. Our stamp proves that our request created the container. A
// container last modified before our first request left existed before, so our request did not create it. A different stamp
// proves nothing: our container may have been deleted and created again by another client, or a writer of metadata may have
// replaced the stamp.
func madeBy(ctx context.Context, client *container.Client, id string, first time.Time, answer error) (string, error) {
	ctx, cancel := retry.Detached(ctx, 2*time.Second)
	defer cancel()
	props, err := client.GetProperties(ctx, nil)
	switch {
	case azerr.Has(err, "ContainerNotFound"):
		if out := azerr.Classify(answer); !out.Ambiguous() {
			return "", answer
		}
		return "", &fail.UnknownError{Why: "the container does not exist now, but a request may still be in flight", Err: answer}
	case err != nil:
		return "", &fail.UnknownError{Why: "the response was lost and the container cannot be read", Err: err}
	}
	for name, value := range props.Metadata {
		if strings.EqualFold(name, flags.CreateStamp) && cli.Deref(value) == id {
			return string(cli.Deref(props.ETag)), nil
		}
	}
	// The service's clock when our first request left, at the earliest: it stamped this response no later than now. Both
	// times are in whole seconds.
	began := cli.Deref(props.Date).Add(-time.Since(first)).Truncate(time.Second)
	if props.Date != nil && props.LastModified != nil && props.LastModified.Before(began) {
		return "", optimistic.ErrExists
	}
	return "", &fail.UnknownError{Why: "a container exists without the id of this request: another client has created or changed it", Err: answer}
}
