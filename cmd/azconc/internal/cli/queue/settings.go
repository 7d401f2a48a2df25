package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/container"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/settings"
)

// setting is a setting that is read and written as one JSON document.
type setting[T any] struct {
	path, name string // of the group: "queue acl"; and of the setting, for people
	noun       string // " <queue>", or "" for the account's own
	example    string // of the noun
	target     func(*cli.Factory, string) (optimistic.Target[T], error)
	parse      func([]byte) (T, error)
	shown      func(T) any
}

// verb makes cmd a verb on the setting of a queue, or of the account.
func (s setting[T]) verb(f *cli.Factory, cmd *cobra.Command, do func(context.Context, optimistic.Target[T]) (cli.Result, error)) *cobra.Command {
	if s.noun == "" {
		return cli.OnAccount(f, cmd, func() (optimistic.Target[T], error) { return s.target(f, "") }, do)
	}
	open := func(on string) (optimistic.Target[T], error) { return s.target(f, on) }
	return cli.On(f, cmd, parseQueue, open, func(ctx context.Context, _ string, target optimistic.Target[T]) (cli.Result, error) {
		return do(ctx, target)
	})
}

func (s setting[T]) newShowCmd(f *cli.Factory) *cobra.Command {
	return s.verb(f, &cobra.Command{
		Use:     "show" + s.noun,
		Short:   "Print " + s.name + " as JSON",
		Example: "  azconc " + s.path + " show" + s.example + " > settings.json",
	}, func(ctx context.Context, target optimistic.Target[T]) (cli.Result, error) {
		v, err := optimistic.Read(ctx, target, nil)
		if err != nil {
			return nil, err
		}
		return settingResult{Outcome: "found", Resource: target.Resource(), Settings: s.shown(v.Value)}, nil
	})
}

// settingResult is the document alone in text, so that it can be edited and given to set.
type settingResult struct {
	Outcome  string `json:"outcome"`
	Resource string `json:"resource"`
	Settings any    `json:"settings"`
}

func (r settingResult) Text(w io.Writer) {
	data, err := json.MarshalIndent(r.Settings, "", "  ")
	if err != nil {
		data = []byte("{}")
	}
	fmt.Fprintf(w, "%s\n", data)
}

func (s setting[T]) newSetCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "set" + s.noun + " --file <file>",
		Short:   "Replace " + s.name,
		Long:    "Replace " + s.name + " by a JSON document like the one that show prints.\n\n" + lastWriterWinsLong,
		Example: "  azconc " + s.path + " set" + s.example + " --file settings.json",
	}
	var file string
	flags.File(cmd.Flags(), &file, "`file` with the document; - is stdin")
	return s.verb(f, cmd, func(ctx context.Context, target optimistic.Target[T]) (cli.Result, error) {
		data, err := f.WholeFile(ctx, file)
		if err != nil {
			return nil, err
		}
		value, err := s.parse(data)
		if err != nil {
			return nil, err
		}
		r, err := optimistic.Update(ctx, target, func(_ context.Context, v *T) error {
			*v = value
			return nil
		}, nil)
		return cli.Written(ref.Blob{Container: target.Resource()}, "updated", r, err)
	})
}

// acl is the access control list of a queue: stored policies alone, since there is no public access to queues.
var acl = setting[[]settings.AccessPolicy]{
	noun: " <queue>", example: " orders", path: "queue acl", name: "the stored access policies of a queue",
	target: func(f *cli.Factory, name string) (optimistic.Target[[]settings.AccessPolicy], error) {
		queue, err := f.Queue(name)
		if err != nil {
			return nil, err
		}
		return settings.NewLastWriterWinsQueueACL(queue), nil
	},
	parse: func(data []byte) ([]settings.AccessPolicy, error) {
		var doc aclDocument
		if err := fail.StrictJSON(data, "a list of access policies", &doc); err != nil {
			return nil, err
		}
		return container.ParsePolicies(doc.Policies)
	},
	shown: func(policies []settings.AccessPolicy) any { return aclDocument{container.ShowPolicies(policies)} },
}

type aclDocument struct {
	Policies []container.PolicyShown `json:"policies"`
}

func newACLCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("acl", "Show and change the stored access policies of a queue", acl.newShowCmd(f), acl.newSetCmd(f))
}

// properties are the settings of the account's Queue service.
var properties = setting[azqueue.SetPropertiesOptions]{
	path: "queue properties", name: "the settings of the account's Queue service",
	target: func(f *cli.Factory, _ string) (optimistic.Target[azqueue.SetPropertiesOptions], error) {
		service, err := f.QueueService()
		if err != nil {
			return nil, err
		}
		return settings.NewLastWriterWinsQueueService(service), nil
	},
	parse: func(data []byte) (p azqueue.SetPropertiesOptions, err error) {
		return p, fail.StrictJSON(data, "the settings of a Queue service", &p)
	},
	shown: func(p azqueue.SetPropertiesOptions) any { return p },
}

func newPropertiesCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("properties", "Show and change the settings of the account's Queue service", properties.newShowCmd(f), properties.newSetCmd(f))
}
