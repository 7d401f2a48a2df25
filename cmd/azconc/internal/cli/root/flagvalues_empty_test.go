//go:build !race

package root

// With the race detector this takes ten times as long, and finds no more: scripts/test runs it without.

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
)

// TestEveryFlagRefusesTheEmptyString finds the flags by walking the tree, so that a new one cannot be forgotten.
func TestEveryFlagRefusesTheEmptyString(t *testing.T) {
	harmless := []string{"prefix", "filter", "content-type", "content-encoding", "content-language", "content-disposition", "content-md5", "cache-control"}
	seen := map[string]bool{}
	eachFlag(func(cmd *cobra.Command, f *pflag.Flag) {
		if kind := f.Value.Type(); kind != "string" && !strings.HasPrefix(kind, "string") {
			return
		}
		seen[f.Name] = true
		if f.Annotations[flags.EmptyAllowed] != nil {
			if !slices.Contains(harmless, f.Name) {
				t.Errorf("%s --%s may be given empty: is it harmless to leave it out?", cmd.CommandPath(), f.Name)
			}
			return
		}
		for _, empty := range []string{"", " "} {
			err := give(cmd.CommandPath(), "--"+f.Name+"="+empty)
			if fail.Judge(err).Code != fail.ExitUsage || !strings.Contains(err.Error(), "--"+f.Name+" is empty") || fail.HintOf(err) == "" {
				t.Errorf("%s --%s=%q: %v, want a usage error that names the flag, and a hint", cmd.CommandPath(), f.Name, empty, err)
			}
		}
	})
	for _, name := range []string{
		"if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-tags", "lease-id", "op-id", "id", "pop-receipt", "to",
		"source-if-match", "source-if-none-match", "source-if-modified-since", "source-if-unmodified-since", "source-if-tags", "account-name", "sas-token",
	} {
		if !seen[name] {
			t.Errorf("no command has a flag --%s: the walk misses some", name)
		}
	}
}
