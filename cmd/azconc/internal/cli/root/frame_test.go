package root

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	azservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/aztest"
)

// silent is a wire on which nothing may be sent.
func silent(t *testing.T) transport {
	return func(r *http.Request) (*http.Response, error) {
		t.Errorf("%s %s was sent", r.Method, r.URL.Path)
		return nil, http.ErrHandlerTimeout
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, c := range []struct {
		args        string
		code        int
		out, stderr string
	}{
		{"help", 0, "usage: azconc <command>", ""},
		{"help blob update", 0, "usage: azconc blob update", ""},
		{"help exit-codes", 0, "124  timed out", ""},
		{"help nosuch", 2, "", `unknown command "nosuch" for "azconc"`},
		{"help blob upate", 2, "", "azconc: hint: did you mean update"},
		{"help exit-code", 2, "", "azconc: hint: did you mean exit-codes"},
		{"help blob -o json", 2, "", "-o json does not apply to azconc help"},
		{"blob -o json", 2, "", "-o json does not apply to azconc blob"},
		{"-o json", 2, "", "-o json does not apply to azconc"},
		{"completion bash -o json", 2, "", "-o json does not apply to azconc completion"},
		{"--version", 0, "azconc ", ""},
		{"--version -o json", 0, `{"outcome":"ok","version":`, ""},
		{"blob --version", 2, "", "unknown flag: --version"},
		{"nosuch --help", 2, "", `unknown command "nosuch" for "azconc"`},
		{"-v nosuch -h", 2, "", `unknown command "nosuch" for "azconc"`},
		{"blob upate --help", 2, "", "azconc: hint: did you mean update"},
		{"blob lease nosuch jobs/a --help", 2, "", `unknown command "nosuch" for "azconc blob lease"`},
		{"table put jobs/eu/17 --set n=1", 2, "", `table: unknown command "put" for "azconc table"`},
		{"table put --set n=1 jobs/eu/17", 2, "", `table: unknown command "put" for "azconc table"`},
		{"table --set n=1", 2, "", "unknown flag: --set"},
		{"blob --help", 0, "usage: azconc blob <command>", ""},
		{"blob put --help jobs/a", 0, "usage: azconc blob put <container/blob>", ""},
		{"help blob put --help", 0, "usage: azconc help", ""},
	} {
		r := runOn(t.Context(), silent(t), nil, nil, strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.out, c.out) || !strings.Contains(r.stderr, c.stderr) || (c.code == 0) != (r.stderr == "") || (c.code != 0) != (r.out == "") {
			t.Errorf("azconc %s: exit %d, %q, %q, want %d, %q, %q", c.args, r.code, r.out, r.stderr, c.code, c.out, c.stderr)
		}
	}
}

func TestABadMetadataNameSendsNothing(t *testing.T) {
	stdin := func(s *cli.Streams) { s.In = strings.NewReader("x") }
	for _, args := range []string{
		"blob put jobs/a --file - --metadata a-b=c", "blob metadata set jobs/a 1a=b", "blob metadata update jobs/a a.b=c", "container create jobs --metadata é=1",
		"container metadata set jobs a-b=c", "blob snapshot jobs/a --metadata a-b=c", "queue create orders --metadata a-b=c", "blob copy jobs/a jobs/b --metadata a-b=c",
	} {
		r := runOn(t.Context(), silent(t), stdin, nil, strings.Fields(args)...)
		if r.code != fail.ExitUsage || !strings.Contains(r.stderr, "is not a name") || !strings.Contains(r.stderr, "azconc: hint: a name has letters") {
			t.Errorf("azconc %s: exit %d, %s", args, r.code, r.stderr)
		}
	}
}

// TestTheResourceHasOneNameInJSON holds success and failure of one command against each other.
func TestTheResourceHasOneNameInJSON(t *testing.T) {
	for _, c := range []struct{ setup, command, want string }{
		{"container create jobs", "container show jobs", "jobs"},
		{"container create jobs", "container acl show jobs", "jobs"},
		{"container create jobs", "container metadata show jobs", "jobs"},
		{"queue create orders", "queue metadata show orders", "orders"},
		{"container create jobs", "container delete jobs", "jobs"},
		{"container create jobs", "blob list jobs", "jobs"},
		{"container create jobs", "blob put jobs/a --file -", "jobs/a"},
		{"container create jobs;blob put jobs/a --file -", "blob copy jobs/a jobs/b", "jobs/b"},
		{"container create jobs;blob put jobs/a --file -", "blob block list jobs/a", "jobs/a"},
		{"container create jobs;blob put jobs/a --file -", "blob lease acquire jobs/a --duration 15", "jobs/a"},
		{"container create jobs;blob page create jobs/p --size 512", "blob page ranges jobs/p", "jobs/p"},
		{"table create jobs", "table query jobs", "jobs"},
		{"table create jobs", "table delete jobs", "jobs"},
		{"table create jobs", "table insert jobs/eu/17 --set n=1", "jobs/eu/17"},
		{"queue create orders", "queue show orders", "orders"},
		{"queue create orders", "queue send orders --file -", "orders"},
		{"queue create orders", "queue receive orders", "orders"},
		{"queue create orders", "queue delete orders", "orders"},
	} {
		synctest.Test(t, func(t *testing.T) {
			stdin := func(s *cli.Streams) { s.In = strings.NewReader("{}") }
			command := append(strings.Fields(c.command), "-o", "json")
			r := runOn(t.Context(), aztest.New(nil), stdin, nil, command...)
			if v := r.json(t); r.code == 0 || v["resource"] != c.want {
				t.Errorf("azconc %s fails: exit %d, %v, want the resource %s", c.command, r.code, v, c.want)
			}
			s := aztest.New(nil)
			for _, setup := range strings.Split(c.setup, ";") {
				if r := runOn(t.Context(), s, stdin, nil, strings.Fields(setup)...); r.code != 0 {
					t.Fatal(setup, r)
				}
			}
			r = runOn(t.Context(), s, stdin, nil, command...)
			v := r.json(t)
			if r.code != 0 || v["resource"] != c.want {
				t.Errorf("azconc %s: exit %d, %v, want the resource %s", c.command, r.code, v, c.want)
			}
			for name, value := range v {
				if strings.HasSuffix(name, "_s") || strings.Contains(name, "duration") && !strings.HasSuffix(name, "_ms") {
					t.Errorf("azconc %s: %s = %v, want durations in ms", c.command, name, value)
				}
			}
		})
	}
}

// signed is a SAS of the account that aztest knows.
func signed(t *testing.T) string {
	t.Helper()
	cred, err := azservice.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	q, err := sas.AccountSignatureValues{
		Protocol: sas.ProtocolHTTPSandHTTP, ExpiryTime: time.Now().Add(time.Hour),
		Permissions:   (&sas.AccountPermissions{Read: true, Write: true, List: true, Create: true, Add: true, Delete: true}).String(),
		ResourceTypes: (&sas.AccountResourceTypes{Service: true, Container: true, Object: true}).String(),
	}.SignWithSharedKey(cred)
	if err != nil {
		t.Fatal(err)
	}
	return q.Encode()
}

func TestAQueueAndATableMayBeURLs(t *testing.T) {
	s := aztest.New(nil)
	var sentTo []string
	wire := transport(func(r *http.Request) (*http.Response, error) {
		sentTo = append(sentTo, fmt.Sprint(r.URL.Host, r.URL.Path, " ", r.URL.Query().Get("sig") != "", r.Header.Get("Authorization") != ""))
		return s.Do(r)
	})
	stdin := func(s *cli.Streams) { s.In = strings.NewReader("x") }
	for _, c := range []struct{ args, sent string }{
		{"queue create http://127.0.0.1:10001/devstoreaccount1/orders", "127.0.0.1:10001/devstoreaccount1/orders false true"},
		{"queue send http://127.0.0.1:10001/devstoreaccount1/orders?" + signed(t) + " --file -", "127.0.0.1:10001/devstoreaccount1/orders/messages true false"},
		{"table create http://127.0.0.1:10002/devstoreaccount1/jobs", "127.0.0.1:10002/devstoreaccount1/Tables false true"},
		{"table insert http://127.0.0.1:10002/devstoreaccount1/jobs/eu/17 --set n=1", "127.0.0.1:10002/devstoreaccount1/jobs false true"},
		{"table get http://127.0.0.1:10002/devstoreaccount1/jobs(PartitionKey='eu',RowKey='17')?" + signed(t), "127.0.0.1:10002/devstoreaccount1/jobs(PartitionKey='eu',RowKey='17') true false"},
	} {
		sentTo = nil
		r := runOn(t.Context(), wire, stdin, nil, strings.Fields(c.args)...)
		if r.code != 0 || len(sentTo) == 0 || sentTo[0] != c.sent || strings.Contains(r.out+r.stderr, "sig=") {
			t.Errorf("azconc %s: exit %d, %s, sent to %q, want %q", c.args, r.code, r.stderr, sentTo, c.sent)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"queue show https://other.queue.core.windows.net/orders", "the URL names a different account"},
		{"queue show https://other.queue.core.windows.net/Or-Ders", "not a queue's name"},
		{"queue show https://%zz/orders", "not a valid URL"},
		{"queue redrive https://a.queue.core.windows.net/x-poison https://b.queue.core.windows.net/x", "two accounts"},
		{"table get https://other.table.core.windows.net/jobs", "is not of the form table/partition/row"},
	} {
		r := runOn(t.Context(), silent(t), nil, nil, strings.Fields(c.args)...)
		if r.code != fail.ExitUsage || !strings.Contains(r.stderr, c.want) {
			t.Errorf("azconc %s: exit %d, %s, want %q", c.args, r.code, r.stderr, c.want)
		}
	}
}
