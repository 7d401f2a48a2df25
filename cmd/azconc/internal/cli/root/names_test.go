package root

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pkg/aztest"
)

// tab completes the last word of a line on a wire, and returns what the shell gets, and the requests.
func tab(t *testing.T, wire transport, env cli.Env, line string) (offered, sent []string) {
	t.Helper()
	counted := transport(func(r *http.Request) (*http.Response, error) {
		sent = append(sent, r.Method+" "+r.URL.Path)
		return wire(r)
	})
	r := runOn(t.Context(), counted, nil, env, append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Split(line, " ")...)...)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("azconc %s: exit %d, %q", line, r.code, r.stderr)
	}
	return strings.Split(strings.TrimSuffix(r.out, "\n"), "\n"), sent
}

const namedBefore = `container create jobs
container create logs
blob put jobs/state.json --file -
blob put jobs/stages/a --file -
blob put jobs/stages/b --file -
blob put jobs/other --file -
queue create orders
queue create orders-poison
table create jobs
table create journal
table create other
share create reports
directory reports/2026
file put reports/top.txt --file -
file put reports/2026/q3.txt --file -
file put reports/2026/q4.txt --file -`

func TestNamesOfTheAccountAreCompletedInOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		input := func(s *cli.Streams) { s.In = strings.NewReader("x") }
		for line := range strings.Lines(namedBefore) {
			words := strings.Fields(line)
			if words[0] == "directory" {
				if _, err := s.Share("reports").NewDirectoryClient("2026").Create(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			} else if r := runOn(t.Context(), s, input, allServices, words...); r.code != 0 {
				t.Fatal(line, r)
			}
		}
		for _, name := range []string{"jobs/a\nb", "jobs/trailing "} { // which no line of an answer can be
			if _, err := s.Container("jobs").NewBlockBlobClient(strings.TrimPrefix(name, "jobs/")).UploadBuffer(t.Context(), nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct{ line, want, sent string }{
			{"blob update ", "jobs/ logs/ :6", "GET /devstoreaccount1/"},
			{"blob update jo", "jobs/ :6", "GET /devstoreaccount1/"},
			{"blob update jobs/", "jobs/stages/ jobs/other jobs/state.json :6", "GET /devstoreaccount1/jobs"},
			{"blob update jobs/state", "jobs/state.json :4", "GET /devstoreaccount1/jobs"},
			{"-v blob get --timeout 1ns jobs/stages/", "jobs/stages/a jobs/stages/b :4", "GET /devstoreaccount1/jobs"},
			{"blob copy jobs/other lo", "logs/ :6", "GET /devstoreaccount1/"},
			{"lock run jobs/s", "jobs/stages/ jobs/state.json :6", "GET /devstoreaccount1/jobs"},
			{"container show ", "jobs logs :4", "GET /devstoreaccount1/"},
			{"top jobs l", "logs :4", "GET /devstoreaccount1/"},
			{"doctor jo", "jobs :4", "GET /devstoreaccount1/"},
			{"queue consume ord", "orders orders-poison :4", "GET /devstoreaccount1/"},
			{"queue redrive orders-poison ", "orders orders-poison :4", "GET /devstoreaccount1/"},
			{"table query jo", "jobs journal :4", "GET /devstoreaccount1/Tables"},
			{"table get jou", "journal/ :6", "GET /devstoreaccount1/Tables"},
			{"share show ", "reports :4", "GET /devstoreaccount1/"},
			{"file get ", "reports/ :6", "GET /devstoreaccount1/"},
			{"file get reports/", "reports/2026/ reports/top.txt :6", "GET /devstoreaccount1/reports"},
			{"file get reports/2026/q3", "reports/2026/q3.txt :4", "GET /devstoreaccount1/reports/2026"},
			{"file get reports/none/", ":4", "GET /devstoreaccount1/reports/none"},
			{"blob get nosuch/", ":4", "GET /devstoreaccount1/nosuch"},

			{"table get jobs/", ":4", ""},
			{"container show jobs/", ":4", ""},
			{"queue delete-message orders ", ":4", ""},
			{"blob get jobs/other ", ":4", ""},
			{"blob get https://acct.blob.core.windows.net/jobs/a?sig=", ":4", ""},
			{"blob get no_container/", ":4", ""},
			{"table query it's", ":4", ""},
			{"counter add jobs/visits ", ":4", ""},
			{"lock run jobs/state -- ", ":0", ""},
		} {
			offered, sent := tab(t, s.Do, allServices, c.line)
			if got := strings.Join(offered, " "); got != c.want || strings.Join(sent, ", ") != c.sent {
				t.Errorf("azconc %s: %q after %q, want %q after %q", c.line, got, sent, c.want, c.sent)
			}
		}
	})
}

// Each verb on a resource offers names: the usage lines have no resource that the completion does not know.
func TestEveryVerbOnAResourceOffersNames(t *testing.T) {
	verbs := 0
	for _, cmd := range commands() {
		words := append(strings.Fields(cmd.Use), "")
		if cmd.HasSubCommands() || !strings.Contains(words[1], "<") || cmd.Name() == "help" || cmd.Name() == "completion" {
			continue
		}
		verbs++
		synctest.Test(t, func(t *testing.T) {
			_, sent := tab(t, aztest.New(nil).Do, allServices, strings.TrimPrefix(cmd.CommandPath(), "azconc ")+" ")
			if len(sent) != 1 {
				t.Errorf("%s %s sends %q, want one request", cmd.CommandPath(), words[1], sent)
			}
		})
	}
	if verbs < 80 {
		t.Errorf("%d verbs are on a resource: the walk misses some", verbs)
	}
}

func TestAPageOfNamesIsOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		for i := range 150 {
			if _, err := s.Container(fmt.Sprintf("jobs-%03d", i)).Create(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if offered, sent := tab(t, s.Do, nil, "container show "); len(offered) != int(namesMost)+1 || len(sent) != 1 {
			t.Errorf("%d lines after %d requests", len(offered), len(sent))
		}
	})
}

// A user who presses TAB waits for no service that hangs, and sees no error of one that refuses. One that answers late is not asked again.
func TestAnAccountThatDoesNotAnswerOffersNoNames(t *testing.T) {
	s := aztest.New(&aztest.Options{VerifySignatures: true})
	for name, c := range map[string]struct {
		wire transport
		env  cli.Env
		sent int
		wait time.Duration
	}{
		"hangs": {wire: func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, sent: 1, wait: namesWait},
		"is busy": {wire: func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Status: "503 Server Busy", Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		}, sent: 1},
		"cannot be reached": {wire: func(*http.Request) (*http.Response, error) { return nil, http.ErrServerClosed }, sent: 1},
		"refuses": {wire: s.Do, sent: 1, env: cli.Env{"AZURE_STORAGE_CONNECTION_STRING=" + strings.ReplaceAll(aztest.ConnectionString("http://127.0.0.1:10000/"+aztest.Account), aztest.Key,
			"dGhlIGtleSBvZiBhbm90aGVyIGFjY291bnQ=")}},
		"is not given": {wire: silent(t), env: noAccount},
		"is wrong":     {wire: silent(t), env: cli.Env{"AZURE_STORAGE_CONNECTION_STRING=AccountKey=T0PSECRET"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				offered, sent := tab(t, c.wire, c.env, "-v blob get ")
				if waited := time.Since(began); !slices.Equal(offered, []string{noFiles}) || len(sent) != c.sent || waited != c.wait {
					t.Errorf("%q after %q and %v", offered, sent, waited)
				}
			})
		})
	}
}
