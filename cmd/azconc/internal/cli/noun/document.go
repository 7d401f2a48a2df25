package noun

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
)

// Document is a setting of a resource, or of the account, that is read and written as one JSON document. Its verbs are show and set.
type Document[T any] struct {
	Path, Name string // of the group, "queue acl"; and of the setting, "the stored access policies of a queue"
	Arg        string // "<queue>", or "" for a setting of the account
	Example    string // of a resource
	Long       string // ends the help of set
	Lease      bool   // a write takes the id of the resource's lease
	Parse      func(string) (ref.Blob, error)
	Open       func(ref.Blob) (optimistic.Target[T], error)
	Decode     func([]byte) (T, error)
	Encode     func(T) any
}

// NewCmd returns the group of the verbs.
func (d Document[T]) NewCmd(f *cli.Factory) *cobra.Command {
	_, group, _ := strings.Cut(d.Path, " ")
	return cli.NewGroupCmd(group, "Show and change "+d.Name, d.newShowCmd(f), d.newSetCmd(f))
}

// verb makes cmd a verb on the setting.
func (d Document[T]) verb(f *cli.Factory, cmd *cobra.Command, do func(context.Context, optimistic.Target[T]) (cli.Result, error)) *cobra.Command {
	if d.Arg == "" {
		return cli.OnAccount(f, cmd, func() (optimistic.Target[T], error) { return d.Open(ref.Blob{}) }, do)
	}
	return cli.On(f, cmd, d.Parse, d.Open, func(ctx context.Context, _ ref.Blob, target optimistic.Target[T]) (cli.Result, error) {
		return do(ctx, target)
	})
}

func (d Document[T]) newShowCmd(f *cli.Factory) *cobra.Command {
	return d.verb(f, &cobra.Command{
		Use:     strings.TrimSpace("show " + d.Arg),
		Short:   "Print " + d.Name + " as JSON",
		Example: "  azconc " + strings.TrimSpace(d.Path+" show "+d.Example) + " > settings.json",
	}, func(ctx context.Context, target optimistic.Target[T]) (cli.Result, error) {
		v, err := optimistic.Read(ctx, target, nil)
		if err != nil {
			return nil, err
		}
		return documentResult{Outcome: "found", Resource: target.Resource(), ETag: string(v.ETag), Settings: d.Encode(v.Value)}, nil
	})
}

// documentResult is the document alone in text, so that it can be edited and given to set.
type documentResult struct {
	Outcome  string `json:"outcome"`
	Resource string `json:"resource"`
	ETag     string `json:"etag,omitempty"`
	Settings any    `json:"settings"`
}

func (r documentResult) Text(w io.Writer) {
	data, err := json.MarshalIndent(r.Settings, "", "  ")
	if err != nil {
		data = []byte("{}")
	}
	fmt.Fprintf(w, "%s\n", data)
}

func (d Document[T]) newSetCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     strings.Join(strings.Fields("set "+d.Arg+" --file <file>"), " "),
		Short:   "Replace " + d.Name,
		Long:    "Replace " + d.Name + " by a JSON document like the one that show prints.\n\n" + d.Long,
		Example: "  azconc " + strings.TrimSpace(d.Path+" set "+d.Example) + " --file settings.json",
	}
	var file string
	o := optimistic.UpdateOptions{}
	flags.File(cmd.Flags(), &file, "`file` with the document; - is stdin")
	if d.Lease {
		flags.LeaseID(cmd.Flags(), &o.Conditions.LeaseID, "`id` of the lease that you hold on it")
	}
	return d.verb(f, cmd, func(ctx context.Context, target optimistic.Target[T]) (cli.Result, error) {
		data, err := f.WholeFile(ctx, file)
		if err != nil {
			return nil, err
		}
		value, err := d.Decode(data)
		if err != nil {
			return nil, err
		}
		o.Hooks = f.Monitor.Hooks()
		r, err := optimistic.Update(ctx, target, func(_ context.Context, v *T) error {
			*v = value
			return nil
		}, &o)
		return cli.Written(ref.Blob{Container: target.Resource()}, "updated", r, err)
	})
}
