// Package clitest tests which command lines verbs refuse.
package clitest

import (
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
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
	root.SetArgs(append([]string{cmd.Name()}, args...))
	return root.ExecuteContext(context.Background())
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
