package root

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
)

// noFiles and anyFile are directives of cobra to shells.
const (
	noFiles = ":4"
	anyFile = ":0"
)

// noAccount is an environment that names none.
var noAccount = cli.Env{"AZURE_STORAGE_CONNECTION_STRING="}

// completed returns the completions of the last word, without descriptions, and then the directive, where no account is given.
func completed(t *testing.T, words ...string) []string {
	t.Helper()
	r := runOn(t.Context(), silent(t), nil, noAccount, append([]string{cobra.ShellCompRequestCmd}, words...)...)
	lines := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
	for i := range lines {
		lines[i], _, _ = strings.Cut(lines[i], "\t")
	}
	if r.code != 0 || !strings.HasPrefix(lines[len(lines)-1], ":") {
		t.Fatalf("%q: exit %d, %q %q", words, r.code, r.out, r.stderr)
	}
	return lines
}

func TestEveryCommandAndFlagIsCompleted(t *testing.T) {
	for _, cmd := range commands() {
		if cmd.IsAdditionalHelpTopicCommand() {
			continue
		}
		path := strings.Fields(cmd.CommandPath())[1:]
		offered := completed(t, append(path, "-")...)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !slices.Contains(offered, "--"+f.Name) {
				t.Errorf("%s -: --%s is not offered", cmd.CommandPath(), f.Name)
			}
		})
		if !cmd.HasSubCommands() {
			continue
		}
		offered = completed(t, append(path, "")...)
		for _, verb := range cmd.Commands() {
			if verb.IsAvailableCommand() && !slices.Contains(offered, verb.Name()) {
				t.Errorf("%s: %s is not offered", cmd.CommandPath(), verb.Name())
			}
		}
		if offered[len(offered)-1] != noFiles {
			t.Errorf("%s: local files are offered", cmd.CommandPath())
		}
	}
}

// Every argument and value is a name of the account, a word, or free text, unless the help says that it is a local file.
func TestLocalFilesAreOfferedOnlyWhereTheyAreAskedFor(t *testing.T) {
	asked, seen := 0, map[string]bool{}
	for _, cmd := range commands() {
		path := strings.Fields(cmd.CommandPath())[1:]
		if cmd.IsAdditionalHelpTopicCommand() {
			continue
		}
		for _, words := range [][]string{{"x"}, {"jobs/x", "jobs/y", "x"}, {"--nosuch=1", "--timeout", "soon", "jobs/x", "x"}} {
			offered := completed(t, append(slices.Clone(path), words...)...)
			if offered[len(offered)-1] != noFiles && !strings.Contains(cmd.Use, "-- <command>") {
				t.Errorf("%s %q: local files are offered", cmd.CommandPath(), words)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() == "bool" || seen[f.Name+f.Usage] {
				return
			}
			seen[f.Name+f.Usage] = true
			kind, _ := pflag.UnquoteUsage(f)
			want := noFiles
			if slices.Contains([]string{"file", "path", "directory", "command"}, kind) {
				want = anyFile
				asked++
			}
			if offered := completed(t, append(slices.Clone(path), "--"+f.Name+"=x")...); offered[len(offered)-1] != want {
				t.Errorf("%s --%s=x: %q, want %s", cmd.CommandPath(), f.Name, offered, want)
			}
		})
	}
	if asked < 10 {
		t.Errorf("%d flags take a file: the walk misses some", asked)
	}
}

func TestWordsOfTheHelpAreCompleted(t *testing.T) {
	for line, want := range map[string]string{
		"queue consume orders --dedupe o":                "owner :4",
		"queue consume orders --manifest k":              "keda-job keda :4",
		"dev run --engine ":                              "memory azurite :4",
		"dev run ./":                                     ":0",
		"lock run jo":                                    ":4",
		"lock run jobs/nightly -- ./":                    ":0",
		"bench --workload ":                              "blob lock :4",
		"dev up --location ./":                           ":0",
		"blob get jobs/":                                 ":4",
		"blob get --verbose --if-match nonsense, jobs/s": ":4",
		"blob list jobs --query b":                       ":4",
		"blob block list jobs/a --type c":                "committed :4",
		"blob get --account-key T0PSECRET --timeout x --auth-mode login -o j": "json :4",
		"completion z":        "zsh :4",
		"help blob up":        "update :4",
		"help exit":           "exit-codes :4",
		"-o t":                "text table tsv :4",
		"blob show --output=": "text json table tsv :4",
		"--auth-mode ":        "login key :4",
	} {
		if got := strings.Join(completed(t, strings.Split(line, " ")...), " "); got != want {
			t.Errorf("azconc %s: %q, want %s", line, got, want)
		}
	}
}

// An incomplete line is not one to report, and what is on it may be secret.
func TestCompletionPrintsNoSecret(t *testing.T) {
	r := runOn(t.Context(), silent(t), nil, noAccount, cobra.ShellCompRequestCmd, "blob", "get", "--account-key", "T0PSECRET", "--timeout", "x", "")
	if r.code != 0 || strings.Contains(r.out+r.stderr, "T0PSECRET") {
		t.Errorf("exit %d, %q %q", r.code, r.out, r.stderr)
	}
}

func TestGoldenPowerShellCompletion(t *testing.T) {
	r := runOn(t.Context(), silent(t), nil, nil, "completion", "powershell")
	if r.code != 0 {
		t.Fatal(r)
	}
	golden(t, "completion/azconc.ps1", []byte(r.out))
}
