package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
)

// Verb is a command with options of type O, which its flags and arguments set.
type Verb[O any] struct {
	Use, Short, Long, Example string
	Annotations               map[string]string

	// Args checks the number of arguments. Defaults to those that Use names before its first flag or choice.
	Args cobra.PositionalArgs

	// Flags adds the flags, which check their values. Defaults to none.
	Flags func(opts *O, set *pflag.FlagSet)

	// Resource parses the first argument, the name of the resource. Defaults to nothing.
	Resource func(opts *O, arg string) error

	// Parse completes the options, or refuses them with a usage error, after Resource and before anything is sent. Defaults to
	// nothing.
	Parse func(opts *O, in Input) error

	// Run carries out the command.
	Run func(ctx context.Context, f *Factory, opts *O) error
}

// Input is a parsed command line.
type Input struct {
	Args  []string
	Flags *pflag.FlagSet
	Form  string // what asks for another form of the result than text, such as "-o json"; empty for text
	Path  string // of the command, such as "lock run"
	Env   Env
}

// Command returns the command as cobra runs it.
func (v Verb[O]) Command(f *Factory) *cobra.Command {
	return v.Seam(f, func(ctx context.Context, opts *O) error { return v.Run(ctx, f, opts) })
}

// Seam returns the command with run in place of Run, for tests of the options.
func (v Verb[O]) Seam(f *Factory, run func(context.Context, *O) error) *cobra.Command {
	opts := new(O)
	cmd := &cobra.Command{
		Use: v.Use, Short: v.Short, Long: v.Long, Example: v.Example, Annotations: v.Annotations, Args: v.Args,
		RunE: func(cmd *cobra.Command, args []string) error {
			in := Input{Args: args, Flags: cmd.Flags(), Form: f.output.Asked(), Path: strings.TrimPrefix(cmd.CommandPath(), "azconc "), Env: f.Env}
			if err := v.parse(opts, in); err != nil {
				return err
			}
			return run(cmd.Context(), opts)
		},
	}
	if v.Flags != nil {
		v.Flags(opts, cmd.Flags())
	}
	return takingWhatUseNames(cmd)
}

func (v Verb[O]) parse(opts *O, in Input) error {
	if v.Resource != nil {
		if len(in.Args) == 0 {
			return fail.Usagef("%s is missing", positional(v.Use)[0])
		}
		if err := v.Resource(opts, in.Args[0]); err != nil {
			return err
		}
	}
	if err := flags.Check(in.Flags); err != nil || v.Parse == nil {
		return err
	}
	return v.Parse(opts, in)
}

// positional returns the arguments in a usage line, such as <queue> and <message-id>, up to the first flag or choice.
func positional(use string) []string {
	words := strings.Fields(use)[1:]
	for i, w := range words {
		if !strings.HasPrefix(w, "<") || !strings.HasSuffix(w, ">") {
			return words[:i]
		}
	}
	return words
}
