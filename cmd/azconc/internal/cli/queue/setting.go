package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
)

// settingOptions are the options of a setting that is read and written as one JSON document.
type settingOptions struct {
	On   string // empty for a setting of the account
	File string
}

// setting is such a setting.
type setting[T any] struct {
	noun   string // "queue", or "" for the account's own
	path   string // of the group: "queue acl"
	name   string // of the setting, for people
	target func(*cli.Factory, string) (optimistic.Target[T], error)
	parse  func([]byte) (T, error)
	shown  func(T) any
}

func (s setting[T]) args() []string {
	if s.noun == "" {
		return nil
	}
	return []string{"<" + s.noun + ">"}
}

func (s setting[T]) use(verb string) string {
	for _, a := range s.args() {
		verb += " " + a
	}
	return verb
}

func (s setting[T]) example(verb string) string {
	if s.noun == "" {
		return "  azconc " + s.path + " " + verb
	}
	return "  azconc " + s.path + " " + verb + " orders"
}

func (s setting[T]) read(opts *settingOptions, in cli.Input) (err error) {
	if s.noun != "" {
		opts.On, err = parseQueue(in.Args[0])
	}
	return err
}

func (s setting[T]) showVerb() cli.Verb[settingOptions] {
	return cli.Verb[settingOptions]{
		Use:     s.use("show"),
		Short:   "Print " + s.name + " as JSON",
		Example: s.example("show") + " > settings.json",
		Parse:   s.read,
		Run:     s.show,
	}
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

func (s setting[T]) show(ctx context.Context, f *cli.Factory, opts *settingOptions) error {
	target, err := s.target(f, opts.On)
	if err != nil {
		return err
	}
	v, err := optimistic.Read(ctx, target, nil)
	if err != nil {
		return err
	}
	return f.Print(settingResult{Outcome: "found", Resource: target.Resource(), Settings: s.shown(v.Value)})
}

func (s setting[T]) setVerb() cli.Verb[settingOptions] {
	return cli.Verb[settingOptions]{
		Use:     s.use("set") + " --file <file>",
		Short:   "Replace " + s.name,
		Long:    "Replace " + s.name + " by a JSON document like the one that show prints.\n\n" + lastWriterWinsLong,
		Example: s.example("set") + " --file settings.json",
		Flags: func(opts *settingOptions, set *pflag.FlagSet) {
			set.StringVarP(&opts.File, "file", "f", "", "`file` with the document; - is stdin")
		},
		Parse: func(opts *settingOptions, in cli.Input) error {
			if err := s.read(opts, in); err != nil {
				return err
			}
			if opts.File == "" {
				return fail.WithHint(fail.Usagef("--file is missing"), "--file - reads stdin")
			}
			return nil
		},
		Run: s.set,
	}
}

func (s setting[T]) set(ctx context.Context, f *cli.Factory, opts *settingOptions) error {
	file := &change.FileChange{Name: opts.File}
	if err := file.Load(ctx, f); err != nil {
		return err
	}
	value, err := s.parse(file.Data)
	if err != nil {
		return err
	}
	target, err := s.target(f, opts.On)
	if err != nil {
		return err
	}
	r, err := optimistic.Update(ctx, target, func(_ context.Context, v *T) error {
		*v = value
		return nil
	}, nil)
	if err != nil {
		return fail.Tally(err, r)
	}
	return f.Print(cli.NewWriteResult(ref.Blob{Container: target.Resource()}, "updated", r))
}
