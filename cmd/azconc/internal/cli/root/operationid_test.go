package root

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/optimistic"
)

// TestHelpSaysForHowLongAnOperationIsRemembered: each --op-id names its window, and the topic that explains it.
func TestHelpSaysForHowLongAnOperationIsRemembered(t *testing.T) {
	seen := 0
	eachFlag(func(cmd *cobra.Command, f *pflag.Flag) {
		if f.Name != "op-id" {
			return
		}
		seen++
		window := fmt.Sprintf("last %d", optimistic.OperationsKept)
		if strings.Contains(cmd.CommandPath(), "tags") {
			window = "last 7"
		}
		if !strings.Contains(f.Usage, window) || !strings.Contains(f.Usage, "azconc help operations") {
			t.Errorf("%s --op-id: %s", cmd.CommandPath(), f.Usage)
		}
	})
	r := runOn(t.Context(), silent(t), nil, nil, "help", "operations")
	for _, want := range []string{"the last 256, for 7 days", "already_applied", "azconc once run", "--if-match that has become stale"} {
		if !strings.Contains(strings.ReplaceAll(r.out, "\n", " "), want) {
			t.Errorf("help operations does not say %q", want)
		}
	}
	if seen < 8 {
		t.Errorf("%d commands have --op-id: the walk misses some", seen)
	}
}

func TestARerunOfAnAppliedOperationSucceeds(t *testing.T) {
	s := tableWith(t, everyType())
	if _, err := s.BlockBlob("jobs", "a").UploadBuffer(t.Context(), []byte(`{"n":1}`), nil); err != nil {
		t.Fatal(err)
	}
	show := func(args ...string) string {
		t.Helper()
		return runOn(t.Context(), s, nil, nil, append(args, "-o", "json")...).json(t)["etag"].(string)
	}
	blob, entity := show("blob", "show", "jobs/a"), show("table", "get", "jobs/eu/17")
	for _, args := range [][]string{
		{"blob", "update", "jobs/a", "--jq", ".n += 1", "--op-id", "x", "--if-match", blob},
		{"blob", "metadata", "update", "jobs/a", "k=v", "--op-id", "x"},
		{"blob", "tags", "update", "jobs/a", "k=v", "--op-id", "x"},
		{"table", "update", "jobs/eu/17", "--jq", ".i += 1", "--op-id", "x", "--if-match", entity},
	} {
		if v := runOn(t.Context(), s, nil, nil, append(args, "-o", "json")...).json(t); v["outcome"] != "updated" {
			t.Fatalf("azconc %q: %v", args, v)
		}
		r := runOn(t.Context(), s, nil, nil, append(args, "-o", "json")...)
		if v := r.json(t); r.code != 0 || v["outcome"] != "already_applied" || v["changed"] != false {
			t.Errorf("azconc %q again: exit %d, %v", args, r.code, v)
		}
		if r := runOn(t.Context(), s, nil, nil, args...); r.code != 0 || !strings.HasPrefix(r.out, "already_applied ") {
			t.Errorf("azconc %q again: exit %d, %q", args, r.code, r.out)
		}
	}
}

// TestHelpNamesTheVerbsThatForgetOperations applies an operation, runs a verb, and applies the operation again.
func TestHelpNamesTheVerbsThatForgetOperations(t *testing.T) {
	help := strings.Join(strings.Fields(flags.OperationsHelp()), " ")
	for _, c := range []struct{ verb, args string }{
		{"blob put", "blob put jobs/a --file -"},
		{"blob put --if-match", "blob put jobs/a --file - --if-match ${E}"},
		{"blob copy", "blob copy jobs/b jobs/a"},
		{"blob block commit", "blob block commit jobs/a one"},
		{"blob page create", "blob page create jobs/a --size 0"},
		{"blob update", "blob update jobs/a --set other=1"},
		{"blob metadata set", "blob metadata set jobs/a k=v"},
		{"blob headers set", "blob headers set jobs/a --content-type text/x"},
		{"blob tags set", "blob tags set jobs/a k=v"},
		{"blob snapshot", "blob snapshot jobs/a"},
		{"blob lease acquire", "blob lease break jobs/a"},
	} {
		onAccount(t, "container create jobs\nblob put jobs/b --file -\nblob put jobs/a --file -\nblob update jobs/a --set m=1 --op-id x\nblob block put jobs/a --id one --file -\n", func(do func(...string) ran) {
			etag, _ := do("blob", "show", "jobs/a", "-o", "json").json(t)["etag"].(string)
			r := do(strings.Fields(strings.ReplaceAll(c.args, "${E}", etag))...)
			again := do("blob", "update", "jobs/a", "--set", "m=2", "--op-id", "x", "-o", "json").json(t)
			if forgets := again["outcome"] != "already_applied"; forgets != regexp.MustCompile(c.verb+`(,| \(but for| and |\.)`).MatchString(help) {
				t.Errorf("azconc %s (exit %d, %s) forgets an operation: %v; azconc help operations says otherwise", c.args, r.code, r.stderr, forgets)
			}
		})
	}
}
