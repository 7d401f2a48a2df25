package replay

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/emulator"
	"github.com/azconc/azconc/pkg/aztest/internal/auth"
	"github.com/azconc/azconc/pkg/azurite"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

const (
	emulatorsPage = "../../../../.github/docs/emulators.md"
	azuriteCounts = "testdata/azurite.json"
)

var askAzurite = flag.Bool("azurite", false, "replay everything against Azurite and write "+azuriteCounts)

// agreement is a number of requests, and of those whose answer agrees with the recorded one.
type agreement struct {
	Compared int `json:"compared"`
	Agreed   int `json:"agreed"`
}

// agreements are those of a service, by operation.
type agreements map[string]map[string]agreement

func (a agreements) of(service string) (sum agreement) {
	for _, one := range a[service] {
		sum.Compared += one.Compared
		sum.Agreed += one.Agreed
	}
	return sum
}

// agree replays the scenarios that take no time and need no key, as an emulator on a socket can be asked: statuses, error codes, the
// states of leases, and whether ETags, snapshots and receipts are new. at returns the server for a service and a group of scenarios,
// which share an account. The options of the service in memory are those of package emulator.
func agree(t *testing.T, names []string, at func(service, group string) server) agreements {
	t.Helper()
	all := agreements{}
	for _, service := range names {
		all[service] = map[string]agreement{}
		servers := map[string]server{}
		for _, s := range facts(t, service) {
			if s.Steps[len(s.Steps)-1].At > 4 || slices.ContainsFunc(s.Steps, func(step Step) bool { return compOf(step) == "acl" }) {
				continue
			}
			group, _, _ := strings.Cut(s.Name, "/")
			if _, there := servers[group]; !there {
				servers[group] = at(service, group)
			}
			to := servers[group]
			to.shift = time.Since(s.Began)
			agreeIn(to, s, all[service])
		}
	}
	return all
}

// agreeIn replays a scenario. What it needs before a step may fail on an emulator: then the rest of it does not agree.
func agreeIn(to server, s Scenario, counts map[string]agreement) {
	p := newPlayer(to, s)
	next := 0
	count := func(step Step, agrees bool) {
		if feature(s, step) != "" || strings.Contains(step.Query, "sig=") { // whose SAS was of the recorded account
			return
		}
		op := operationOf(s.Service, step)
		c := counts[op]
		c.Compared++
		if agrees {
			c.Agreed++
		}
		counts[op] = c
	}
	defer func() {
		if recover() != nil {
			for _, step := range s.Steps[next:] {
				count(step, false)
			}
		}
	}()
	for _, step := range s.Steps {
		differences := p.play()
		next++
		count(step, len(differences) == 0)
	}
}

var describing = aztest.New(nil)

// operationOf names the operation of a step as the REST reference does.
func operationOf(service string, step Step) string {
	base := map[string]string{"blob": describing.BlobURL(), "queue": describing.QueueURL(), "table": describing.TableURL(), "file": describing.FileURL()}[service]
	r, err := http.NewRequest(step.Method, base, nil)
	if err != nil {
		return step.Method
	}
	r.URL.Path += step.Path
	r.URL.RawQuery = step.Query
	for name, value := range step.Header {
		r.Header.Set(name, value)
	}
	return aztest.Describe(r).Op
}

// TestEveryOperationCanMeetAFault: the names that faults select are all those of recorded requests.
func TestEveryOperationCanMeetAFault(t *testing.T) {
	seen := map[string]bool{}
	for _, service := range Services {
		for _, s := range facts(t, service) {
			for _, step := range s.Steps {
				seen[operationOf(service, step)] = true
			}
		}
	}
	for op := range seen {
		if verb, _, _ := strings.Cut(op, " "); verb == strings.ToUpper(verb) || strings.HasPrefix(op, "? ") {
			continue // it has no name
		}
		if _, err := emulator.ParseFaults("slow=5%@" + op); err != nil {
			t.Error(err)
		}
	}
}

// TestThePageOfTheEmulatorsIsRight compares the generated page with what the service in memory answers now, and with what Azurite
// answered when it was last asked.
func TestThePageOfTheEmulatorsIsRight(t *testing.T) {
	memory := agree(t, Services, func(string, string) server {
		s := aztest.New(&aztest.Options{VerifySignatures: true, WithoutLog: true, DeletionDelay: -1})
		return server{url: map[string]string{"blob": s.BlobURL(), "file": s.FileURL(), "queue": s.QueueURL(), "table": s.TableURL()},
			send: s.Do, sign: signature(t, azurite.Account{Name: aztest.Account, Key: aztest.Key}, "bqtf"), key: authorityOf(t, aztest.Account, aztest.Key)}
	})
	if *askAzurite {
		keepAzurite(t)
	}
	var microsoft agreements
	data, err := os.ReadFile(azuriteCounts)
	if err == nil {
		err = json.Unmarshal(data, &microsoft)
	}
	if err != nil {
		t.Fatal(err)
	}
	page := emulatorsOf(memory, microsoft)
	if *update || *askAzurite {
		if err := os.WriteFile(emulatorsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(emulatorsPage); err != nil || string(kept) != page {
		t.Errorf("%s is not what is generated: go test ./pkg/aztest/internal/replay -run Emulators -args -update (%v)\n%s", emulatorsPage, err, page)
	}
	for _, service := range []string{"blob", "queue", "table"} {
		if ours, theirs := memory.of(service).Compared, microsoft.of(service).Compared; ours != theirs {
			t.Errorf("%s: %d requests are compared, and %d when Azurite was asked: go test ./pkg/aztest/internal/replay -run Emulators -args -azurite", service, ours, theirs)
		}
	}
}

// authorityOf signs with an account's key: Azurite refuses some operations to a SAS that permits them.
func authorityOf(t *testing.T, name, key string) *auth.Authority {
	t.Helper()
	a, err := auth.New(name, key)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// keepAzurite asks Azurite and stores the counts. It takes minutes.
func keepAzurite(t *testing.T) {
	t.Helper()
	defer http.DefaultClient.CloseIdleConnections()
	counts := agree(t, []string{"blob", "queue", "table"}, func(string, string) server {
		account := azuritetest.Account(t)
		return server{url: map[string]string{"blob": account.BlobURL, "queue": account.QueueURL, "table": account.TableURL},
			send: http.DefaultClient.Do, sign: signature(t, account, "bqt"), key: authorityOf(t, account.Name, account.Key)}
	})
	data, err := json.MarshalIndent(counts, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(azuriteCounts, append(data, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func emulatorsOf(memory, microsoft agreements) string {
	var b strings.Builder
	b.WriteString(`# Two emulators, and real accounts

` + "`azconc dev up`" + ` serves aztest, the service in memory. ` + "`--engine azurite`" + ` starts Microsoft's Azurite ` + azurite.Version + `. The
[recordings](../../pkg/aztest/internal/replay/testdata/README.md) contain the responses of real accounts to the tests of other SDKs. This page
compares both emulators with them, in scenarios that take at most four seconds and set
no access policies, signed with the account's key. A response agrees if status, error code and lease states are the same, and if ETags,
snapshots, lease ids and pop receipts are new whenever the recorded ones were. One difference may cause others later in its scenario.

| service | requests | aztest agrees | Azurite agrees |
|---|---:|---:|---:|
`)
	var ours, theirs agreement
	for _, service := range Services {
		m, a := memory.of(service), microsoft.of(service)
		cell := "has no files"
		if a.Compared > 0 {
			cell = share(a)
			ours.Compared, ours.Agreed = ours.Compared+m.Compared, ours.Agreed+m.Agreed
			theirs.Compared, theirs.Agreed = theirs.Compared+a.Compared, theirs.Agreed+a.Agreed
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s |\n", service, m.Compared, share(m), cell)
	}
	fmt.Fprintf(&b, "| all but files | %d | %s | %s |\n", ours.Compared, share(ours), share(theirs))
	b.WriteString(`
In simulated time, aztest is compared more strictly, with whole responses and with the scenarios that wait:
[scope.md](../../pkg/aztest/internal/replay/testdata/scope.md) has that count, and lists what is not compared. aztest was corrected after these
recordings, and Azurite was not. The figures show how Azurite answers these requests, not how it answers others.

aztest does not have: versions, soft delete, immutability, encryption keys and scopes, incremental copies, copies from another
account, expiry, queries of a blob's content, batches of blobs, finding blobs by their tags, the secondary location, requests from pages
of other origins, user delegation and tokens of Microsoft Entra, HTTPS, and data that outlive it. It refuses such a request, with 501
NotImplemented where the service has no code of its own.

## Operations with a response that differs

| service | operation | requests | aztest agrees | Azurite agrees |
|---|---|---:|---:|---:|
`)
	for _, service := range Services {
		for _, op := range slices.Sorted(maps.Keys(memory[service])) {
			m, a := memory[service][op], microsoft[service][op]
			if m.Agreed == m.Compared && a.Agreed == a.Compared {
				continue
			}
			fmt.Fprintf(&b, "| %s | %s | %d | %d | %d |\n", service, op, m.Compared, m.Agreed, a.Agreed)
		}
	}
	b.WriteString(`
The replay generates this page. Each run of the tests replays against aztest; for Azurite, run
` + "`go test ./pkg/aztest/internal/replay -run Emulators -args -azurite`" + `, which takes a few minutes.
`)
	return b.String()
}

// share writes a number of agreements, and its part of all that were compared.
func share(a agreement) string {
	if a.Compared == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.2f %%)", a.Agreed, 100*float64(a.Agreed)/float64(a.Compared))
}
