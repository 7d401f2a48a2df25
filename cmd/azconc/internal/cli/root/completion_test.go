package root

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

// noFiles and anyFile are directives of cobra to shells. The next one is noFiles, and no space behind the word: ":6".
const (
	noFiles = ":4"
	anyFile = ":0"
)

// allServices is an account with a File service, too.
var allServices = cli.Env{"AZURE_STORAGE_CONNECTION_STRING=" + aztest.ConnectionString("http://127.0.0.1:10000/"+aztest.Account) +
	"QueueEndpoint=http://127.0.0.1:10001/" + aztest.Account + ";TableEndpoint=http://127.0.0.1:10002/" + aztest.Account +
	";FileEndpoint=http://127.0.0.1:10004/" + aztest.Account}

// completed returns the completions of the last word, without descriptions, and then the directive. A nil wire is no account.
func completed(t *testing.T, wire transport, words ...string) []string {
	t.Helper()
	env := allServices
	if wire == nil {
		wire, env = silent(t), cli.Env{"AZURE_STORAGE_CONNECTION_STRING="}
	}
	r := runOn(t.Context(), wire, nil, env, append([]string{cobra.ShellCompRequestCmd}, words...)...)
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
		offered := completed(t, silent(t), append(path, "-")...)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !slices.Contains(offered, "--"+f.Name) {
				t.Errorf("%s -: --%s is not offered", cmd.CommandPath(), f.Name)
			}
		})
		if !cmd.HasSubCommands() {
			continue
		}
		offered = completed(t, silent(t), append(path, "")...)
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
			offered := completed(t, nil, append(slices.Clone(path), words...)...)
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
			if offered := completed(t, nil, append(slices.Clone(path), "--"+f.Name+"=x")...); offered[len(offered)-1] != want {
				t.Errorf("%s --%s=x: %q, want %s", cmd.CommandPath(), f.Name, offered, want)
			}
		})
	}
	if asked < 10 {
		t.Errorf("%d flags take a file: the walk misses some", asked)
	}
}

func TestNamesOfTheAccountAreCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		do := func(args ...string) {
			t.Helper()
			stdin := func(s *cli.Streams) { s.In = strings.NewReader("x") }
			if r := runOn(t.Context(), s, stdin, allServices, args...); r.code != 0 {
				t.Fatal(args, r)
			}
		}
		for _, name := range []string{"jobs", "jobs-old", "logs"} {
			do("container", "create", name)
		}
		for _, name := range []string{"state.json", "status", "2026/01/a", "2026/01/b", "2026/02/a", "a:1", "k=v", "ü", "x$(touch pwned)", "x`id`", "x y", "x;y", "x'y", "x*"} {
			do("blob", "put", "jobs/"+name, "--file", "-")
		}
		for _, name := range []string{"jobs", "orders"} {
			do("table", "create", name)
			do("queue", "create", name)
			do("share", "create", name)
		}
		do("file", "put", "jobs/q3.txt", "--file", "-")
		locker, err := pessimistic.NewLocker(s.Container("jobs"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"nightly", "maintenance", "once/invoice-17"} {
			if err := locker.Do(t.Context(), name, nil, func(context.Context, *pessimistic.Hold) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			line string
			want string
		}{
			{"container show ", "jobs jobs-old logs :4"},
			{"container show jobs", "jobs jobs-old :4"},
			{"container lease acquire l", "logs :4"},
			{"blob list l", "logs :4"},
			{"blob get ", "jobs-old/ jobs/ logs/ :6"},
			{"blob get logs", "logs/ :6"},
			{"blob get jobs/st", "jobs/state.json jobs/status :4"},
			{"blob get jobs/", "jobs/2026/ jobs/a:1 jobs/k=v jobs/maintenance jobs/nightly jobs/once/ jobs/state.json jobs/status jobs/ü :4"},
			{"blob get jobs/20", "jobs/2026/ :6"},
			{"blob get jobs/2026/", "jobs/2026/01/ jobs/2026/02/ :6"},
			{"blob get jobs/2026/01/", "jobs/2026/01/a jobs/2026/01/b :4"},
			{"blob get jobs/a:", "jobs/a:1 :4"},
			{"blob get jobs/x", ":4"},
			{"blob get nosuch/", ":4"},
			{"blob get https://acme.blob.core.windows.net/j", ":4"},
			{"blob get jobs/state.json ", ":4"},
			{"blob get --verbose --if-match nonsense, jobs/stat", "jobs/state.json jobs/status :4"},
			{"blob get --nosuch x", ":4"},
			{"blob copy jobs/state.json l", "logs/ :6"},
			{"blob metadata set jobs/state.json ", ":4"},
			{"table query j", "jobs :4"},
			{"table get ", "jobs/ orders/ :6"},
			{"table get jobs/", ":4"},
			{"table lock run or", "orders :4"},
			{"table lock run jobs --container l", "logs :4"},
			{"queue show ", "jobs orders :4"},
			{"queue redrive jobs o", "orders :4"},
			{"queue consume orders --poison j", "jobs :4"},
			{"queue consume orders --markers o", "orders :4"},
			{"queue consume orders --inbox o", "orders/ :6"},
			{"queue consume orders --dedupe o", "owner :4"},
			{"lock show jobs/n", "jobs/nightly :4"},
			{"lock run jobs/n", "jobs/nightly :4"},
			{"lock run jobs/nightly -- ./", ":0"},
			{"lock list l", "logs :4"},
			{"elect run jobs/n", "jobs/nightly :4"},
			{"once list l", "logs :4"},
			{"once show jo", "jobs-old/ jobs/ :6"},
			{"dev run ./", ":0"},
			{"dev run --engine ", "memory azurite :4"},
			{"bench --workload ", "blob lock :4"},
			{"dev up --location ./", ":0"},
			{"queue consume orders --manifest k", "keda-job keda :4"},
			{"doctor l", "logs :4"},
			{"doctor --queue o", "orders :4"},
			{"doctor --table o", "orders :4"},
			{"counter add l", "logs/ :6"},
			{"counter get jobs/stat", "jobs/state.json jobs/status :4"},
			{"counter add jobs/status ", ":4"},
			{"tf show l", "logs/ :6"},
			{"tf run jobs/stat", "jobs/state.json jobs/status :4"},
			{"tf run jobs/state.json -- ./", ":0"},
			{"once forget jobs/inv --results o", "orders :4"},
			{"semaphore run l", "logs/ :6"},
			{"blob edit jobs/status ", ":4"},
			{"share show o", "orders :4"},
			{"file get ", "jobs/ orders/ :6"},
			{"file get jobs/q", ":4"},
			{"file list o", "orders/ :6"},
			{"completion z", "zsh :4"},
			{"help blob up", "update :4"},
			{"help exit", "exit-codes :4"},
			{"-o j", "json :4"},
			{"-o t", "text table tsv :4"},
			{"blob list jobs --query b", ":4"},
			{"blob show --output=", "text json table tsv :4"},
			{"--auth-mode ", "login key :4"},
			{"blob block list jobs/a --type c", "committed :4"},
		} {
			got := completed(t, s.Do, strings.Split(c.line, " ")...)
			if strings.Join(got, " ") != c.want {
				t.Errorf("azconc %s: %q, want %s", c.line, got, c.want)
			}
		}
	})
}

// An account that does not answer costs the user less than 2 s, and offers nothing.
func TestAnAccountThatHangsOffersNothing(t *testing.T) {
	for _, line := range []string{"blob get ", "blob get jobs/", "container show j", "table get j", "queue show j", "lock show jobs/n", "once show jobs/", "share show s", "file get s/d/x"} {
		for name, wire := range map[string]transport{
			"hangs": func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
			"fails": func(*http.Request) (*http.Response, error) { return nil, http.ErrHandlerTimeout },
		} {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				if got := completed(t, wire, strings.Split(line, " ")...); len(got) != 1 || got[0] != noFiles {
					t.Errorf("azconc %s on an account that %s: %q", line, name, got)
				}
				if took := time.Since(began); took >= 2*time.Second {
					t.Errorf("azconc %s on an account that %s: %v", line, name, took)
				}
			})
		}
	}
}

// Without an account there is nothing to ask, and no sign-in.
func TestCompletionNeedsNoAccount(t *testing.T) {
	nowhere := cli.Env{"AZURE_STORAGE_CONNECTION_STRING="}
	r := runOn(t.Context(), silent(t), nil, nowhere, cobra.ShellCompRequestCmd, "blob", "get", "")
	if r.code != 0 || r.out != noFiles+"\n" {
		t.Errorf("exit %d, %q", r.code, r.out)
	}
	r = runOn(t.Context(), silent(t), nil, nowhere, cobra.ShellCompRequestCmd, "blob", "get", "--account-key", "T0PSECRET", "--timeout", "x", "")
	if strings.Contains(r.out+r.stderr, "T0PSECRET") {
		t.Errorf("a secret is printed: %q %q", r.out, r.stderr)
	}
}

func TestGoldenPowerShellCompletion(t *testing.T) {
	r := runOn(t.Context(), silent(t), nil, nil, "completion", "powershell")
	if r.code != 0 {
		t.Fatal(r)
	}
	golden(t, "completion/azconc.ps1", []byte(r.out))
}
