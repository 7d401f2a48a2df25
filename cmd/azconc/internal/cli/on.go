package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
)

// On makes cmd a verb on one resource. Its first argument names the resource, which parse reads; open makes a client for it; and do
// carries out the verb and returns its result. The flags are cmd's, and are set when parse runs. Nothing is sent before do.
func On[R, C any](f *Factory, cmd *cobra.Command, parse func(string) (R, error), open func(R) (C, error), do func(context.Context, R, C) (Result, error)) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 { // of a verb that takes any number
			return fail.Usagef("%s is missing", positional(cmd.Use)[0])
		}
		if err := flags.Check(cmd.Flags()); err != nil {
			return err
		}
		on, err := parse(args[0])
		if err != nil {
			return err
		}
		client, err := open(on)
		if err != nil {
			return err
		}
		r, err := do(cmd.Context(), on, client)
		return f.conclude(r, err)
	}
	return takingWhatUseNames(cmd)
}

// Checked returns a parse of On that also checks the verb's flags, once the name is read.
func Checked[R any](parse func(string) (R, error), check func() error) func(string) (R, error) {
	return func(arg string) (R, error) {
		on, err := parse(arg)
		if err == nil {
			err = check()
		}
		return on, err
	}
}

// OnAccount makes cmd a verb on the account, or on nothing that its first argument names. open makes a client, or the options of the verb
// from its flags and arguments; the rest is as with On.
func OnAccount[C any](f *Factory, cmd *cobra.Command, open func() (C, error), do func(context.Context, C) (Result, error)) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := flags.Check(cmd.Flags()); err != nil {
			return err
		}
		client, err := open()
		if err != nil {
			return err
		}
		r, err := do(cmd.Context(), client)
		return f.conclude(r, err)
	}
	return takingWhatUseNames(cmd)
}

// conclude prints the result of a verb. It is nil if the verb has printed it.
func (f *Factory) conclude(r Result, err error) error {
	if err != nil || r == nil {
		return err
	}
	return f.Print(r)
}

// takingWhatUseNames has cmd take the arguments that Use names before its first flag or choice, unless it says what it takes.
func takingWhatUseNames(cmd *cobra.Command) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = ResourceArgs(positional(cmd.Use)...)
	}
	return cmd
}

// Done is the result of a verb that makes or deletes something as a whole.
type Done struct {
	Outcome  string `json:"outcome"`
	Resource string `json:"resource"`
	ETag     string `json:"etag,omitempty"`
	BaseETag string `json:"base_etag,omitempty"`
	Sent
}

func (d Done) Text(w io.Writer) { fmt.Fprintln(w, d.Outcome, d.Resource) }

// Done returns the result of a verb that has succeeded although some responses were lost.
func (f *Factory) Done(outcome, resource string, ambiguous int) Done {
	return Done{Outcome: outcome, Resource: resource, Sent: Sent{Ambiguous: ambiguous, Resolved: ambiguous, Cost: f.Cost()}}
}

// DoneBy returns the result of a verb that consists of one operation.
func (f *Factory) DoneBy(outcome string, on fmt.Stringer, r optimistic.Result) Done {
	return Done{Outcome: outcome, Resource: on.String(), ETag: string(r.ETag), BaseETag: string(r.BaseETag), Sent: Sent{Ambiguous: r.Ambiguous, Resolved: r.Resolved, Cost: f.Cost()}}
}

// PrintLines prints what a list has found, a line each.
func PrintLines[T any](w io.Writer, items []T) {
	for _, item := range items {
		fmt.Fprintln(w, show.Name(fmt.Sprint(item))) // with a line break, a name would be two
	}
}

// List returns what items finds in the pages of a listing: all of it, or as many as most if that is not 0, and whether there is more.
func List[P, T any](ctx context.Context, pages *runtime.Pager[P], most int, items func(P) []T) (all []T, more bool, err error) {
	all = []T{}
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, false, err
		}
		if all = append(all, items(page)...); most > 0 && len(all) > most {
			return all[:most], true, nil
		}
	}
	return all, false, nil
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
