// Package clitest tests how verbs read their command lines, up to the options that they arrive at.
package clitest

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
)

// run runs a command line of the command that newCmd returns, without an account.
func run(newCmd func(*cli.Factory) *cobra.Command, args ...string) error {
	s, _, _, _ := cli.TestStreams()
	f := cli.NewFactory(s, cli.Env{})
	defer f.Close()
	root := &cobra.Command{Use: "azconc", SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: f.Begin}
	root.SetFlagErrorFunc(flags.FlagError)
	f.AddFlags(root)
	cmd := newCmd(f)
	root.AddCommand(cmd)
	flags.AsPeopleWriteThem(root)
	root.SetArgs(append([]string{cmd.Name()}, args...))
	return root.ExecuteContext(context.Background())
}

// parsed runs a command line through verb and returns the options it arrived at, or the error.
func parsed[T any](verb cli.Verb[T], args ...string) (got *T, err error) {
	err = run(func(f *cli.Factory) *cobra.Command {
		return verb.Seam(f, func(_ context.Context, opts *T) error { got = opts; return nil })
	}, args...)
	return got, err
}

type UsageCase struct {
	Args []string
	Err  string // part of the message
}

// CheckUsage runs command lines that are refused, without an account, before anything is sent. That no account is given is found last.
func CheckUsage(t *testing.T, newCmd func(*cli.Factory) *cobra.Command, cases []UsageCase) {
	t.Helper()
	for _, c := range cases {
		if err := run(newCmd, c.Args...); err == nil || fail.Judge(err).Code != fail.ExitUsage || !strings.Contains(err.Error(), c.Err) {
			t.Errorf("%v: %v, want a usage error about %q", c.Args, err, c.Err)
		}
	}
}

// ignoreInside leaves out what a command gets from its surroundings.
func ignoreInside(types ...any) cmp.Option {
	return cmp.Options{
		cmpopts.IgnoreUnexported(append(types, flags.Headers{}, change.ChangeFlags{})...),
		cmp.AllowUnexported(ref.Blob{}),
		cmpopts.EquateEmpty(),
	}
}

type FlagCase[T any] struct {
	Args []string
	Want T
	Err  string // part of the message of a usage error
}

func CheckFlags[T any](t *testing.T, verb cli.Verb[T], cases []FlagCase[T]) {
	t.Helper()
	var zero T
	for _, c := range cases {
		t.Run(strings.Join(c.Args, " "), func(t *testing.T) {
			got, err := parsed(verb, c.Args...)
			if c.Err != "" {
				if v := fail.Judge(err); err == nil || v.Code != fail.ExitUsage || !strings.Contains(err.Error(), c.Err) {
					t.Fatalf("error = %v (exit %d), want a usage error about %q", err, v.Code, c.Err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.Want, got, ignoreInside(zero)); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func Ref(container, blob string) ref.Blob { return ref.Blob{Container: container, Blob: blob} }
