package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// createStamp is the metadata name that holds the id of the create request. If the response is lost, the id shows whether
// that request or another client created the container.
const createStamp = "azconcop"

type containerCreateOptions struct {
	factory   *Factory
	Container blobRef
	Metadata  map[string]string
}

func newContainerCreateCmd(f *Factory, runF func(*containerCreateOptions) error) *cobra.Command {
	opts := &containerCreateOptions{factory: f}
	var metadata []string
	cmd := &cobra.Command{
		Use:   "create <container>",
		Short: "Create a container",
		Long: `Create a container. If it already exists, the exit code is 7.

The container gets an id in its metadata, so that if the response is lost, azconc can recognize the container it created.`,
		Args: resourceArgs("<container>"),
		Example: `  azconc container create jobs
  azconc container create jobs --metadata team=billing`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Container, err = parseContainer(args[0]); err != nil {
				return err
			}
			if opts.Metadata, err = parsePairs("--metadata", metadata); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return containerCreateRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringArrayVar(&metadata, "metadata", nil, "`name=value` to store with it; may be repeated")
	return cmd
}

type containerCreateResult struct {
	Outcome   string `json:"outcome"`
	Container string `json:"resource"`
	Created   bool   `json:"created"`
	ETag      string `json:"etag"`
	Ambiguous int    `json:"ambiguous"`
	Resolved  int    `json:"resolved"`
	Requests  int64  `json:"requests"`
	ElapsedMS int64  `json:"elapsed_ms"`
}

func (r containerCreateResult) text(w io.Writer) { fmt.Fprintf(w, "%s %s\n", r.Outcome, r.Container) }

func containerCreateRun(ctx context.Context, opts *containerCreateOptions) error {
	f := opts.factory
	client, err := f.Container(opts.Container)
	if err != nil {
		return err
	}
	id := uuid.NewString()
	metadata := map[string]*string{createStamp: &id}
	for name, value := range maps.All(opts.Metadata) {
		metadata[name] = &value
	}
	r := containerCreateResult{Outcome: "created", Container: opts.Container.String(), Created: true}
	s, err := sendWrite(ctx, func(ctx context.Context) error {
		resp, err := client.Create(ctx, &container.CreateOptions{Metadata: metadata})
		r.ETag = string(deref(resp.ETag))
		return err
	})
	if err != nil && s.ambiguous > 0 {
		if r.ETag, err = containerMadeBy(ctx, client, id, s.first, err); err == nil {
			r.Resolved = s.ambiguous
		}
	}
	if err != nil {
		return err
	}
	r.Ambiguous, r.Requests, r.ElapsedMS = s.ambiguous, f.requests.Load(), time.Since(f.began).Milliseconds()
	return f.Print(r)
}

// containerMadeBy resolves a create whose response was lost. Our stamp proves that our request created the container. A
// container last modified before our first request left existed before, so our request did not create it. A different stamp
// proves nothing: our container may have been deleted and created again by another client, or a writer of metadata may have
// replaced the stamp.
func containerMadeBy(ctx context.Context, client *container.Client, id string, first time.Time, answer error) (string, error) {
	ctx, cancel := retry.Detached(ctx, 2*time.Second)
	defer cancel()
	props, err := client.GetProperties(ctx, nil)
	switch {
	case azerr.Has(err, "ContainerNotFound"):
		if out := azerr.Classify(answer); !out.Ambiguous() {
			return "", answer
		}
		return "", &unknownError{why: "the container does not exist now, but a request may still be in flight", err: answer}
	case err != nil:
		return "", &unknownError{why: "the response was lost and the container cannot be read", err: err}
	}
	for name, value := range props.Metadata {
		if strings.EqualFold(name, createStamp) && deref(value) == id {
			return string(deref(props.ETag)), nil
		}
	}
	// The service's clock when our first request left, at the earliest: it stamped this response no later than now. Both
	// times are in whole seconds.
	began := deref(props.Date).Add(-time.Since(first)).Truncate(time.Second)
	if props.Date != nil && props.LastModified != nil && props.LastModified.Before(began) {
		return "", optimistic.ErrExists
	}
	return "", &unknownError{why: "a container exists without the id of this request: another client has created or changed it", err: answer}
}

// metadataName is the form of a metadata name (REST: "Naming and referencing containers, blobs, and metadata").
var metadataName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// parsePairs reads repeated name=value flags.
func parsePairs(flag string, pairs []string) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	out := make(map[string]string, len(pairs))
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, usagef("%s %q is not name=value", flag, p)
		}
		if !metadataName.MatchString(name) {
			return nil, withHint(usagef("%s %q is not a name", flag, name), "a name has letters, digits and underscores, and does not begin with a digit")
		}
		name = strings.ToLower(name)
		if _, twice := out[name]; twice {
			return nil, usagef("%s %s is given twice", flag, name)
		}
		if strings.EqualFold(name, optimistic.LineageKey) || strings.EqualFold(name, optimistic.OperationsKey) || strings.EqualFold(name, createStamp) {
			return nil, usagef("%s %s: the name is reserved for azconc", flag, name)
		}
		out[name] = value
	}
	return out, nil
}
