package container

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic/settings"
)

type createOptions struct {
	Container ref.Blob
	Metadata  map[string]string
}

func createVerb() cli.Verb[createOptions] {
	return cli.Verb[createOptions]{
		Use:   "create <container>",
		Short: "Create a container",
		Long: `Create a container. If it already exists, the exit code is 7.

The container gets an id in its metadata, so that if the response is lost, azconc can recognize the container it created.`,
		Example: `  azconc container create jobs
  azconc container create jobs --metadata team=billing`,
		Flags: func(opts *createOptions, set *pflag.FlagSet) {
			flags.Metadata(set, &opts.Metadata, "`name=value` to store with it")
		},
		Resource: func(opts *createOptions, arg string) (err error) {
			opts.Container, err = ref.ParseContainer(arg)
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
	cli.Cost
}

func (r createResult) Text(w io.Writer) { fmt.Fprintf(w, "%s %s\n", r.Outcome, r.Container) }

func createRun(ctx context.Context, f *cli.Factory, opts *createOptions) error {
	client, err := f.Container(opts.Container)
	if err != nil {
		return err
	}
	r, err := settings.CreateContainer(ctx, client, &settings.CreateContainerOptions{Metadata: opts.Metadata})
	if err != nil {
		return err
	}
	return f.Print(createResult{
		Outcome: "created", Container: opts.Container.String(), Created: true, ETag: string(r.ETag), Ambiguous: r.Ambiguous, Resolved: r.Resolved, Cost: f.Cost(),
	})
}
