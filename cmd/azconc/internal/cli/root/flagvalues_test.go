package root

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// eachFlag calls visit for every flag of every command, those that all commands have in common once.
func eachFlag(visit func(cmd *cobra.Command, f *pflag.Flag)) {
	s, _, _, _ := cli.TestStreams()
	f := cli.NewFactory(s, nil)
	defer f.Close()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { visit(cmd, f) })
		for _, verb := range cmd.Commands() {
			walk(verb)
		}
	}
	walk(newRootCmd(f))
}

var errReached = errors.New("the command was run")

// give runs the command of this path with nothing but one flag, up to the point where it would begin to work.
func give(path, flag string) error {
	s, _, _, _ := cli.TestStreams()
	f := cli.NewFactory(s, nil)
	defer f.Close()
	root := newRootCmd(f)
	words := strings.Fields(path)[1:]
	cmd, _, err := root.Find(words)
	if err != nil {
		return err
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(*cobra.Command, []string) error { return errReached }
	root.SetArgs(append(words, flag))
	return root.Execute()
}

func TestAnEmptyConditionSendsNothing(t *testing.T) {
	wire := transport(func(r *http.Request) (*http.Response, error) {
		t.Errorf("%s %s was sent", r.Method, r.URL.Path)
		return nil, io.ErrUnexpectedEOF
	})
	stdin := func(s *cli.Streams) { s.In = strings.NewReader("x") }
	for _, args := range [][]string{
		{"blob", "put", "jobs/a", "--file", "-", "--if-match", ""},
		{"blob", "copy", "jobs/a", "jobs/b", "--source-if-match", ""},
		{"blob", "update", "jobs/a", "--file", "-", "--op-id="},
		{"queue", "send", "orders", "--file", "-", "--id", ""},
		{"lock", "break", "jobs/nightly", "--if-match", ""},
		{"table", "merge", "jobs/eu/17", "--set", "n=1", "--if-match", ""},
		{"once", "run", "", "--", "true"},
		{"blob", "metadata", "update", "jobs/a", "k=v", ""},
	} {
		r := runOn(t.Context(), wire, stdin, nil, args...)
		if r.code != fail.ExitUsage || r.out != "" || !strings.Contains(r.stderr, "empty") || !strings.Contains(r.stderr, "azconc: hint: ") {
			t.Errorf("azconc %q: exit %d, %q %q, want 2", args, r.code, r.out, r.stderr)
		}
	}
}

func TestTheArgumentsOfAnotherProgramMayBeEmpty(t *testing.T) {
	cmd := &cobra.Command{Use: "run", RunE: func(cmd *cobra.Command, args []string) error { return flags.CheckGiven(cmd, args) }, SilenceErrors: true, SilenceUsage: true}
	cmd.SetArgs([]string{"jobs/nightly", "--", "printf", ""})
	if err := cmd.ExecuteContext(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestDurationsAreTakenAsPeopleWriteThem walks the tree, too. A bare number is seconds.
func TestDurationsAreTakenAsPeopleWriteThem(t *testing.T) {
	seen := 0
	eachFlag(func(cmd *cobra.Command, f *pflag.Flag) {
		if f.Value.Type() != "duration" {
			return
		}
		seen++
		for given, want := range map[string]string{"5": "5s", "0.5": "500ms", "2m": "2m0s", "-1": "-1s", "7d": "168h0m0s", "1d12h": "36h0m0s"} {
			err := f.Value.Set(given)
			if d, _ := time.ParseDuration(want); err != nil && strings.HasPrefix(err.Error(), "--"+f.Name+" "+show.Duration(d)+" is ") {
				continue // a usage error: it is beyond a limit
			}
			if err != nil || f.Value.String() != want {
				t.Errorf("%s --%s %s is %s, %v, want %s", cmd.CommandPath(), f.Name, given, f.Value, err, want)
			}
		}
		if strings.Contains(cmd.Flags().FlagUsages(), "default 0") {
			t.Errorf("%s: help shows the default of --%s, which is none", cmd.CommandPath(), f.Name)
		}
		err := give(cmd.CommandPath(), "--"+f.Name+"=soon")
		if want := "--" + f.Name + ` "soon" is not a duration`; fail.Judge(err).Code != fail.ExitUsage || err.Error() != want || fail.HintOf(err) == "" {
			t.Errorf("%s: %v, want %s", cmd.CommandPath(), err, want)
		}
	})
	if seen < 20 {
		t.Errorf("%d duration flags: the walk misses some", seen)
	}
	if d, err := flags.ParseDuration("90"); d != 90*time.Second || err != nil {
		t.Errorf("parseDuration = %v, %v", d, err)
	}
}

// A text that HTTP cannot carry fails when it is sent, or spoils the signature. The walk finds the flags.
func TestATextThatNoHeaderCarriesIsRefused(t *testing.T) {
	texts := map[string]string{"a\nb": `the character "\n"`, "a\x00": `the character "\x00"`, "ä": `the character "ä"`, "a\xff": `the character "\xff"`, " a": "white space", "a\t": "white space"}
	headers := []string{"content-type", "content-encoding", "content-language", "content-disposition", "content-md5", "cache-control", "if-tags", "source-if-tags", "metadata"}
	seen := map[string]bool{}
	eachFlag(func(cmd *cobra.Command, f *pflag.Flag) {
		if !slices.Contains(headers, f.Name) {
			return
		}
		seen[f.Name] = true
		for text, want := range texts {
			if f.Name == "metadata" {
				text = "x=" + text
			}
			err := give(cmd.CommandPath(), "--"+f.Name+"="+text)
			if fail.Judge(err).Code != fail.ExitUsage || !strings.Contains(err.Error(), f.Name) || !strings.Contains(err.Error(), want) || fail.HintOf(err) == "" {
				t.Errorf("%s --%s %q: %v, want a usage error about %s", cmd.CommandPath(), f.Name, text, err, want)
			}
		}
		if f.Name != "metadata" {
			if err := give(cmd.CommandPath(), "--"+f.Name+"=a b\tc;d=\"e\""); !errors.Is(err, errReached) {
				t.Errorf("%s --%s: %v, which a header carries", cmd.CommandPath(), f.Name, err)
			}
		}
	})
	if len(seen) != len(headers) {
		t.Errorf("the walk finds %v of %v", seen, headers)
	}
	for _, command := range []string{"blob metadata set jobs/a", "blob metadata update jobs/a", "container metadata set jobs", "container metadata update jobs", "queue metadata set orders"} {
		for text, want := range texts {
			r := runOn(t.Context(), silent(t), nil, nil, append(strings.Fields(command), "x="+text)...)
			about := "metadata x "
			if !utf8.ValidString(text) { // which no argument may be
				about, want = "argument", "not UTF-8"
			}
			if r.code != fail.ExitUsage || !strings.Contains(r.stderr, about) || !strings.Contains(r.stderr, want) {
				t.Errorf("azconc %s x=%q: exit %d, %s", command, text, r.code, r.stderr)
			}
		}
	}
	r := runOn(t.Context(), silent(t), nil, nil, "table", "merge", "jobs/eu/17", "--set", "n=1", "--if-match", "W/\"a\nb\"")
	if r.code != fail.ExitUsage || !strings.Contains(r.stderr, "not a table's ETag") {
		t.Errorf("an ETag of two lines: exit %d, %s", r.code, r.stderr)
	}
}

var optional = regexp.MustCompile(`\[[^\]]*\]|\{[^}]*\}`)

// A flag that the usage demands is missed by its name, also if it takes a number: no part of the value is guessed.
func TestAFlagThatTheUsageDemandsIsMissed(t *testing.T) {
	seen := 0
	eachFlag(func(cmd *cobra.Command, f *pflag.Flag) {
		if !strings.Contains(optional.ReplaceAllString(cmd.Use, ""), " --"+f.Name+" ") {
			return
		}
		seen++
		example, _, _ := strings.Cut(strings.Trim(cmd.Example, " RECEIPT=$()"), "\n")
		example = example[strings.LastIndex(example, "azconc "):]
		args := strings.Fields(strings.ReplaceAll(regexp.MustCompile(` --`+f.Name+` ("[^"]*"|\S+)`).ReplaceAllString(example, ""), "'", ""))
		r := runOn(t.Context(), silent(t), nil, nil, args[1:]...)
		if r.code != fail.ExitUsage || !strings.Contains(r.stderr, "--"+f.Name+" is missing") {
			t.Errorf("azconc %q: exit %d, %s", args, r.code, r.stderr)
		}
	})
	if seen < 10 {
		t.Errorf("the walk finds only %d", seen)
	}
}

// Zero is the value of an option that is not given, and must not be taken for that when it is.
func TestAZeroIsNotTheDefault(t *testing.T) {
	refused := map[string]string{
		"azconc --timeout":                "version --timeout 0",
		"azconc table query --max":        "table query jobs --max 0",
		"azconc lock hold --for":          "lock hold jobs/nightly --for 0s",
		"azconc queue send --ttl":         "queue send orders --file - --ttl 0",
		"azconc file lease break --stale": "file lease break jobs/a --stale 0",
	}
	for flag, line := range refused {
		r := runOn(t.Context(), silent(t), nil, nil, strings.Fields(line)...)
		if r.code != fail.ExitUsage || r.out != "" || !strings.Contains(r.stderr, "--") {
			t.Errorf("%s: exit %d, %s", flag, r.code, r.stderr)
		}
	}
	eachFlag(func(cmd *cobra.Command, f *pflag.Flag) {
		name := cmd.CommandPath() + " --" + f.Name
		numeric := f.Value.Type() == "duration" || strings.HasPrefix(f.Value.Type(), "int")
		if !numeric || !strings.Contains(f.Usage, "(default ") || refused[name] != "" {
			return
		}
		if f.Name == "wait" && f.Shorthand == "w" { // --wait 0 does not wait
			return
		}
		if err := give(cmd.CommandPath(), "--"+f.Name+"=0"); fail.Judge(err).Code != fail.ExitUsage {
			t.Errorf("%s 0: %v, want a usage error: %s", name, err, f.Usage)
		}
	})
}
