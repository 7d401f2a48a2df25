//go:build unix && !race

package root

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/rights"
	"github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// accountSAS returns the query of an account SAS. The SDKs refuse letters that their own service has not.
func accountSAS(t *testing.T, services, types, letters string) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	const version = "2024-11-04"
	end := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, strings.Join([]string{aztest.Account, letters, services, types, "", end, "", "", version, "", ""}, "\n"))
	return url.Values{"sv": {version}, "ss": {services}, "srt": {types}, "sp": {letters}, "se": {end}, "sig": {base64.StdEncoding.EncodeToString(mac.Sum(nil))}}.Encode()
}

// past leaves what locks and keys have left that were used before.
func past(t *testing.T, s *aztest.Service) {
	t.Helper()
	locker, err := pessimistic.NewLocker(s.Container("jobs"), &pessimistic.LockerOptions{Owner: "web-1 (member 0af3 of 2)"})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := once.New(locker, s.Table("azconconce"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Do(t.Context(), "deploy-42", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nightly", "ingest/0"} {
		err := locker.Do(t.Context(), name, nil, func(context.Context, *pessimistic.Hold) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
}

// limited sends requests to each service with a SAS of its own: one connection has one for all services.
type limited struct {
	on  *stage
	sas map[string]string // by the port of the service
}

func (l limited) Do(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	q := r.URL.Query()
	for _, name := range []string{"sv", "ss", "srt", "sp", "se", "st", "spr", "sig"} {
		q.Del(name)
	}
	r.URL.RawQuery = strings.TrimPrefix(q.Encode()+"&"+l.sas[r.URL.Port()], "&")
	resp, err := l.on.s.Do(r)
	reads := r.Method == http.MethodHead || r.Method == http.MethodGet && r.URL.Port() != ports["queue"] // to receive a message hides it
	if err != nil || resp.StatusCode < 300 && !reads {
		l.on.changed.Store(true)
	}
	return resp, err
}

var ports = map[string]string{"blob": "10000", "queue": "10001", "table": "10002", "file": "10004"}

// okay are the results of a row that has its rights: 8 is a message whose handler failed.
func okay(r ran) bool { return r.code == fail.ExitOK || r.code == fail.ExitFilter }

// stage is a service that verifies signatures, with what a row finds there.
type stage struct {
	s       *aztest.Service
	vars    []string    // what stands in the row's command line, and what for it
	changed atomic.Bool // by the row
}

// run runs a command line with rights alone.
func (on *stage) run(t *testing.T, line string, needs []rights.Right) ran {
	t.Helper()
	args := strings.Fields(line)
	for i := range args {
		args[i] = strings.NewReplacer(on.vars...).Replace(args[i])
	}
	wire, connect := on.limit(t, needs)
	return runOn(t.Context(), wire, oneJSON, cli.Env{"AZURE_STORAGE_CONNECTION_STRING=" + connect}, args...)
}

// limit returns a wire on which requests have some rights alone, and the connection string of it.
func (on *stage) limit(t *testing.T, needs []rights.Right) (limited, string) {
	t.Helper()
	l, all, endpoints := limited{on, map[string]string{}}, rights.Right{}, ""
	for service, port := range ports {
		l.sas[port] = accountSAS(t, strings.Replace("bqtf", service[:1], "", 1), "sco", "r") // which does not cover it
		for _, need := range needs {
			if need.Service == service && need.Letters != "" {
				l.sas[port] = accountSAS(t, service[:1], need.Types, need.Letters)
				all.Types, all.Letters = all.Types+need.Types, all.Letters+need.Letters
			}
		}
		endpoints += strings.ToUpper(service[:1]) + service[1:] + "Endpoint=http://127.0.0.1:" + port + "/" + aztest.Account + ";"
	}
	return l, endpoints + "SharedAccessSignature=" + accountSAS(t, "bqtf", all.Types, all.Letters)
}

func oneJSON(s *cli.Streams) { s.In = strings.NewReader(`{"n":1}`) }

// prepared makes what a row finds, with the account's key.
func prepared(t *testing.T, row rightsRow) *stage {
	t.Helper()
	s := aztest.New(&aztest.Options{VerifySignatures: true})
	s.HoldCopies(row.name == "blob abort-copy")
	dir, vars := t.TempDir(), []string{"SLOW", "exec sleep 600"}
	for name, text := range rightsFiles {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		vars = append(vars, name, path)
	}
	for line := range strings.SplitSeq(strings.Trim(before+"\npast\n"+strings.ReplaceAll(row.before, ";", "\n"), "\n"), "\n") {
		args := strings.Fields(strings.NewReplacer(vars...).Replace(line))
		switch args[0] {
		case "past":
			past(t, s)
			continue
		case "pass":
			bubble.Sleep(time.Hour)
			continue
		}
		if !slices.Contains(args, "--") {
			args = append(args, "-o", "json")
		}
		r := runOn(t.Context(), s, oneJSON, allServices, args...)
		if r.code != 0 {
			t.Fatalf("azconc %s: %+v", line, r)
		}
		for _, printed := range printedIDs.FindAllString(r.out, -1) {
			key, value, _ := strings.Cut(printed, ":")
			vars = append([]string{"${" + strings.Trim(key, `"`) + "}", strings.Trim(value, `" `)}, vars...) // the last one counts
		}
	}
	return &stage{s: s, vars: vars}
}

var printedIDs = regexp.MustCompile(`"(copy_id|lease_id|message_id|pop_receipt)": ?"[^"]*"`)

// rightsFiles are the files that rows name.
var rightsFiles = map[string]string{
	"PAGE": strings.Repeat("x", 512), "ACL": `{"policies":[]}`, "OPERATIONS": `{"op":"insert","row":"9","entity":{"n":1}}`,
	"PROPERTIES": `{"Logging":{"Version":"1.0","Read":true,"Write":false,"Delete":false,"RetentionPolicy":{"Enabled":false}}}`,
	"CAT":        `{"op":"insert","row":"r","entity":{}}`,
}

// without returns rights with a part of one of them less: a letter, or a type of resources.
func without(needs []rights.Right, at int, change func(*rights.Right)) []rights.Right {
	less := slices.Clone(needs)
	change(&less[at])
	return less
}

// check runs a row with exactly its rights, with what makes it do all that it can, and with each part of its rights left out. A run that has
// changed nothing leaves its stage to the next.
func (row rightsRow) check(t *testing.T, needs []rights.Right) {
	var on *stage
	run := func(needs []rights.Right) ran {
		if on == nil || on.changed.Load() {
			on = prepared(t, row)
		}
		return on.run(t, row.args, needs)
	}
	if needs[0].Letters == "" {
		if r := run([]rights.Right{{Service: needs[0].Service, Types: "sco", Letters: "rwdlacup"}}); r.code != fail.ExitUnauthorised || !strings.Contains(r.stderr, "no SAS allows") {
			t.Errorf("with every permission of a SAS: exit %d, %s", r.code, r.stderr)
		}
		return
	}
	for i, need := range needs {
		if testing.Short() && !row.bubbled() {
			break // a process for each part takes a minute
		}
		refused := func(what, says string, less []rights.Right) {
			t.Helper()
			if r := run(less); r.code != fail.ExitUnauthorised || !regexp.MustCompile(says).MatchString(r.stderr) {
				t.Errorf("without %s of %+v: exit %d, %s, want %d and %s", what, need, r.code, r.stderr, fail.ExitUnauthorised, says)
			}
		}
		for _, letter := range need.Letters {
			less := strings.Replace(need.Letters, string(letter), "", 1)
			if less == "" {
				less = strings.Trim("rdwl", need.Letters)[:1] // a SAS has at least one
			}
			refused(string(letter), "lacks the permission [a-z ]*\\b"+string(letter)+"\\b|(?s)permission.*\\b"+string(letter)+"\\b",
				without(needs, i, func(r *rights.Right) { r.Letters = less }))
		}
		for _, kind := range need.Types {
			less := cmp.Or(strings.Replace(need.Types, string(kind), "", 1), strings.Trim("sco", need.Types)[:1])
			refused("type "+string(kind), "does not cover this type of resource", without(needs, i, func(r *rights.Right) { r.Types = less }))
		}
		if need.More != "" {
			if r := run(without(needs, i, func(r *rights.Right) { r.Letters += r.More })); !okay(r) {
				t.Errorf("with %s in addition: exit %d, %s", need.More, r.code, r.stderr)
			}
		}
	}
	if r := run(needs); !okay(r) {
		t.Errorf("with exactly %+v: exit %d, %s", needs, r.code, r.stderr)
	}
}

// bubbled reports whether the row runs no process: those handle signals, which a bubble does not allow.
func (row rightsRow) bubbled() bool {
	all := row.before + row.args
	return !strings.Contains(all, " -- ") && !strings.Contains(all, "--exec") && !strings.Contains(all, "lock hold")
}

// unchecked are rows that the test does not run.
var unchecked = map[string]string{"blob edit": "needs a terminal, and sends what blob update sends", "group run": "runs until a signal", "blob records": "lists and reads, as blob list and blob get do",
	"completion, of names": "lists, as container list, blob list and their like do, and prints no refusal"}

// TestEachVerbNeedsExactlyItsRights runs each row of the table of rights. -update writes the page that shows it.
func TestEachVerbNeedsExactlyItsRights(t *testing.T) {
	t.Parallel()
	examples := map[string]rightsRow{}
	for _, row := range rightsRows {
		examples[row.name] = row
	}
	listed := map[string]bool{}
	for _, row := range rights.Rows() {
		listed[row.Verb] = true
		example, there := examples[row.Verb]
		if !there && unchecked[row.Verb] == "" {
			t.Errorf("rightsRows has no %s", row.Verb)
		}
		if !there {
			continue
		}
		t.Run(row.Verb, func(t *testing.T) {
			if !example.bubbled() {
				t.Parallel() // they wait for processes most of the time
				example.check(t, row.Rights)
			} else {
				synctest.Test(t, func(t *testing.T) { example.check(t, row.Rights) })
			}
		})
	}
	golden(t, "../../../../../../.github/docs/rights.md", []byte(rightsPage()))
	for name := range examples {
		if !listed[name] {
			t.Errorf("the table of rights has no %s", name)
		}
	}
	for _, c := range commands() {
		path := strings.TrimPrefix(c.CommandPath(), "azconc ")
		if c.Runnable() && !c.HasSubCommands() && !listed[path] && !slices.Contains([]string{"bench", "demo", "dev run", "dev up", "doctor", "version", "completion", "help"}, path) {
			t.Errorf("the table of rights has no %s", path)
		}
	}
}
