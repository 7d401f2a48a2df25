// Package complete answers the request for completions that a shell sends when TAB is pressed: words that the help lists, and
// names of containers, blobs, tables, queues and shares that the account has.
//
// The placeholders in a usage line, such as <container/blob>, say what each argument is, and those in the help of a flag what
// its value is. A verb therefore needs nothing but its usage line to be completed.
//
// A shell that gets no answer offers the names of local files, which are wrong for the names of an account. So every answer
// says that there are none, unless a local file is asked for. An account that does not answer in time has no names.
package complete

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
)

// budget is the time from the start of the process to its answer.
const budget = 1500 * time.Millisecond

// Add makes root answer a request for completions. It does nothing if args are not one.
func Add(root *cobra.Command, f *cli.Factory, args []string) {
	if len(args) < 2 || args[0] != cobra.ShellCompRequestCmd && args[0] != cobra.ShellCompNoDescRequestCmd {
		return
	}
	before := args[1 : len(args)-1]
	cmd, _, err := root.Find(before)
	if err != nil {
		cmd = root
	}
	c := &completer{f: f, out: f.Out, dash: slices.Contains(before, "--")}
	root.SetOut(c)
	f.In = strings.NewReader("") // what the user types next is no secret of the account
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	c.arguments(cmd)
	for ; cmd != nil; cmd = cmd.Parent() {
		c.flags(cmd)
	}
}

type completer struct {
	f     *cli.Factory
	out   io.Writer
	dash  bool // the cursor is behind a "--"
	files bool // local files are asked for
}

// Write passes on cobra's answer. A last line of 0 makes the shell offer local files; cobra also ends with it after a flag that
// it does not know.
func (c *completer) Write(p []byte) (int, error) {
	if string(p) == ":0\n" && !c.files {
		_, err := io.WriteString(c.out, ":4\n")
		return len(p), err
	}
	return c.out.Write(p)
}

// flags completes the values of cmd's own flags.
func (c *completer) flags(cmd *cobra.Command) {
	cmd.FParseErrWhitelist.UnknownFlags = true
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		flag.Value = lenient{flag.Value}
		_ = cmd.RegisterFlagCompletionFunc(flag.Name, c.value(flag)) // fails only for a flag that has one
	})
}

// lenient is a flag whose value may be wrong, which is for the command to report. cobra would print all arguments, secrets
// among them, and have the shell offer local files.
type lenient struct{ pflag.Value }

func (l lenient) Set(text string) error {
	_ = l.Value.Set(text)
	return nil
}

// arguments completes the arguments of cmd, unless it has completions of its own.
func (c *completer) arguments(cmd *cobra.Command) {
	if cmd.HasSubCommands() || cmd.ValidArgsFunction != nil || len(cmd.ValidArgs) > 0 {
		return
	}
	usage, _, runs := strings.Cut(cmd.Use, "-- <command>")
	kinds, repeated := positional(usage)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		switch {
		case c.dash, runs && len(args) >= len(kinds):
			return c.localFiles(cmd, args, word)
		case len(args) < len(kinds):
			return c.names(cmd, kinds[len(args)], word)
		case repeated:
			return c.names(cmd, kinds[len(kinds)-1], word)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

var placeholder = regexp.MustCompile(`^[(\[]?<([^<>]+)>\]?(\.\.\.)?$`)

// positional returns the kinds of arguments in a usage line, such as container/blob, up to the first flag or choice, and whether
// the last of them may be repeated.
func positional(usage string) (kinds []string, repeated bool) {
	for _, word := range strings.Fields(usage)[1:] {
		m := placeholder.FindStringSubmatch(word)
		if m == nil {
			break
		}
		kinds = append(kinds, m[1])
		if m[2] != "" {
			return kinds, true
		}
	}
	return kinds, false
}

var choice = regexp.MustCompile(`\{([a-z0-9-]+(?: \| [a-z0-9-]+)+)\}`)

// value returns the completion of a flag's value: one of the words that the help lists, a local file, or a name.
func (c *completer) value(flag *pflag.Flag) cobra.CompletionFunc {
	if m := choice.FindStringSubmatch(flag.Usage); m != nil {
		return func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
			words := slices.DeleteFunc(strings.Split(m[1], " | "), func(w string) bool { return !strings.HasPrefix(w, word) })
			return words, cobra.ShellCompDirectiveNoFileComp
		}
	}
	kind, _ := pflag.UnquoteUsage(flag)
	if slices.Contains([]string{"file", "path", "directory", "command"}, kind) {
		return c.localFiles
	}
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return c.names(cmd, kind, word)
	}
}

// localFiles leaves the answer to the shell.
func (c *completer) localFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	c.files = true
	return nil, cobra.ShellCompDirectiveDefault
}

// names returns the names of a kind that begin with word. One that ends in a slash is to be continued.
func (c *completer) names(cmd *cobra.Command, kind, word string) ([]string, cobra.ShellCompDirective) {
	list := lists[kind]
	if list == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithDeadline(cmd.Context(), c.f.Began.Add(budget))
	defer cancel()
	once := policy.RetryOptions{ShouldRetry: func(*http.Response, error) bool { return false }}
	// What was found before an error is offered, too.
	found, _ := list(policy.WithRetryOptions(ctx, once), c.f, word)
	found = slices.DeleteFunc(found, func(name string) bool { return !strings.HasPrefix(name, word) || needsQuotes(name) })
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) > 0 && !slices.ContainsFunc(found, func(name string) bool { return !strings.HasSuffix(name, "/") }) {
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
