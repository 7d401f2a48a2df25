//go:build unix && !race

// Every command with a result, which takes ten times as long with the race detector: scripts/test runs this file without it.

package root

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// untranscribed are the commands that the transcripts leave out.
var untranscribed = map[string]string{
	"azconc completion": "prints text only",
	"azconc help":       "prints text only",
	"azconc blob edit":  "needs a terminal: see edit_test.go",
	"azconc bench":      "measures time: see bench_test.go in package bench",
	"azconc demo":       "starts an emulator: see demo_test.go",
	"azconc dev run":    "starts an emulator: see dev_test.go",
	"azconc dev up":     "starts an emulator: see dev_test.go",
	"azconc group run":  "runs until a signal: see group_test.go",
}

// TestGoldenResults runs the transcripts in testdata/results, each on a service of its own. Of every command it compares the exit
// code and the names and types of what it prints with -o json. A transcript has these lines:
//
//	$ azconc …     runs a command; ${E} is a variable, and ${FD} a file descriptor whose lines are compared too
//	< text         is the command's stdin
//	= E etag       sets a variable to a value that the command printed
//	! lose PUT 1   before a command: the service carries out one PUT and its response is lost; "! none" ends all faults
//	! 403 PUT 1    before a command: the service refuses one PUT
//	! pass 1m      before a command: time passes
//	! hold copies  before a command: copies stay pending
//	# text         is a comment
//
// All other lines are what is compared, and -update rewrites them.
func TestGoldenResults(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "results", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	ran := map[string]bool{}
	for _, file := range files {
		script, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			dir := t.TempDir()
			compare := func(t *testing.T) {
				tr := &transcript{service: aztest.New(nil), dir: dir, vars: map[string]string{"DIR": dir}, ran: ran}
				for _, step := range strings.Split(strings.TrimSpace(string(script)), "\n\n") {
					tr.step(t, step)
				}
				golden(t, filepath.Join("results", filepath.Base(file)), []byte(strings.TrimSpace(tr.out.String())+"\n"))
				if t.Failed() {
					t.Logf("what the commands said that failed:\n%s", &tr.said)
				}
			}
			if filepath.Base(file) == "processes.txt" { // they handle signals, which a bubble does not allow
				compare(t)
			} else {
				synctest.Test(t, compare)
			}
		})
	}
	for _, c := range commands() {
		if path := c.CommandPath(); c.Runnable() && !c.HasSubCommands() && !ran[path] && untranscribed[path] == "" {
			t.Errorf("no transcript in testdata/results runs %s to its end", path)
		}
	}
}

type transcript struct {
	service *aztest.Service
	faults  []aztest.Fault
	dir     string
	vars    map[string]string
	ran     map[string]bool    // commands that ended with exit code 0
	wire    policy.Transporter // in front of the service; nil for none
	after   func(args []string, stdin string, r ran)
	out     bytes.Buffer
	said    bytes.Buffer // by commands that failed
}

var (
	word     = regexp.MustCompile(`('[^']*'|[^ '])+`)
	variable = regexp.MustCompile(`\$\{\w+\}`)
)

// step runs the lines of one command, and writes them down with what it printed.
func (tr *transcript) step(t *testing.T, step string) {
	t.Helper()
	var command, stdin string
	var sets [][]string
	for _, line := range strings.Split(step, "\n") {
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "$":
			command = rest
		case "<":
			stdin += rest + "\n"
		case "=":
			sets = append(sets, strings.Fields(rest))
		case "!":
			tr.directive(t, strings.Fields(rest))
		case "#":
		default:
			continue
		}
		fmt.Fprintln(&tr.out, line)
	}
	if command != "" {
		values := tr.run(t, command, stdin)
		for _, set := range sets {
			tr.vars[set[0]] = values[set[1]]
		}
	}
	fmt.Fprintln(&tr.out)
}

func (tr *transcript) directive(t *testing.T, words []string) {
	t.Helper()
	switch words[0] {
	case "none":
		tr.faults = nil
		tr.service.SetFaults()
		return
	case "hold":
		tr.service.HoldCopies(true)
		return
	case "pass":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			t.Fatal(err)
		}
		bubble.Sleep(d)
		return
	}
	count, err := strconv.Atoi(words[2])
	if err != nil {
		t.Fatal(err)
	}
	f := aztest.Fault{Kind: aztest.LoseAnswer, Match: func(r *aztest.Request) bool { return r.Method == words[1] }, Count: count}
	if words[0] == "403" {
		f.Kind, f.Status, f.Code = aztest.Answer, 403, "AuthorizationPermissionMismatch"
	}
	tr.faults = append(tr.faults, f)
	tr.service.SetFaults(tr.faults...)
}

// run runs a command and returns the values that it printed, by name.
func (tr *transcript) run(t *testing.T, command, stdin string) map[string]string {
	t.Helper()
	lines := &statusFile{t: t, dir: tr.dir}
	args := word.FindAllString(command, -1)[1:]
	for i, arg := range args {
		args[i] = variable.ReplaceAllStringFunc(strings.ReplaceAll(arg, "'", ""), func(name string) string {
			name = strings.Trim(name, "${}")
			if name == "FD" {
				return lines.open()
			}
			value, set := tr.vars[name]
			if !set {
				t.Fatalf("%s: %s is not set", command, name)
			}
			return value
		})
	}
	r := runOn(t.Context(), cmp.Or[policy.Transporter](tr.wire, tr.service), func(s *cli.Streams) { s.In = strings.NewReader(stdin) }, allServices, args...)
	if tr.after != nil {
		tr.after(args, stdin, r)
	}
	fmt.Fprintf(&tr.out, "exit %d\n", r.code)
	values := map[string]string{}
	describe(&tr.out, "", r.out, values)
	describe(&tr.out, "status ", lines.read(), map[string]string{})
	if cmd := leaf(args); cmd != nil && r.code == 0 {
		tr.ran[cmd.CommandPath()] = true
	}
	if r.code != 0 {
		fmt.Fprintf(&tr.said, "$ %s\n%s%s\n", command, r.out, r.stderr)
	}
	return values
}

// describe writes the names and types of every line of text that is a JSON object, and other lines as "text". It gathers the values
// by name.
func describe(w io.Writer, prefix, text string, values map[string]string) {
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var v map[string]any
		err := d.Decode(&v)
		if err == io.EOF {
			return
		}
		if err != nil {
			fmt.Fprintf(w, "%stext\n", prefix)
			return
		}
		shapes := map[string]string{}
		shapeOf("", v, shapes, values)
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(shapes)) {
			parts = append(parts, name+" "+shapes[name])
		}
		fmt.Fprintf(w, "%s%s\n", prefix, strings.Join(parts, "\n"+prefix))
	}
}

// shapeOf gathers the names in v with their types and their values. The names inside of an object or array begin with its name.
func shapeOf(name string, v any, into, values map[string]string) {
	if strings.HasSuffix(name, "held_ms") {
		return // absent as long as it is 0, which depends on the time of the run
	}
	values[name] = fmt.Sprint(v)
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			into[name] = "{}"
		}
		for key, value := range v {
			shapeOf(strings.TrimPrefix(name+"."+key, "."), value, into, values)
		}
	case []any:
		if len(v) == 0 {
			into[name+"[]"] = "none"
		}
		for _, value := range v {
			shapeOf(name+"[]", value, into, values)
		}
	case string:
		into[name] = "string"
		if name == "outcome" || name == "reason" || name == "event" {
			into[name] = strconv.Quote(v)
		}
	case float64:
		into[name] = "number"
		if name == "exit_code" {
			into[name] = fmt.Sprint(v)
		}
	case bool:
		into[name] = "bool"
	default:
		into[name] = "null"
	}
}

// statusFile takes the status lines of a command.
type statusFile struct {
	t    *testing.T
	dir  string
	path string
}

// open returns the number of a file descriptor, which the command closes.
func (s *statusFile) open() string {
	f, err := os.CreateTemp(s.dir, "status")
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	s.path = f.Name()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		s.t.Fatal(err)
	}
	return strconv.Itoa(fd)
}

func (s *statusFile) read() string {
	if s.path == "" {
		return ""
	}
	data, err := os.ReadFile(s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}
