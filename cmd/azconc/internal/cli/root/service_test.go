package root

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// ran is the result of a command line.
type ran struct {
	code        int
	out, stderr string
}

func (r ran) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(r.out), &v); err != nil {
		t.Fatalf("stdout is not one JSON object: %v: %q (stderr %q)", err, r.out, r.stderr)
	}
	return v
}

// runOn runs a command line in this process, with wire in place of the network.
func runOn(ctx context.Context, wire policy.Transporter, streams func(*cli.Streams), env cli.Env, args ...string) ran {
	s, _, out, stderr := cli.TestStreams()
	if streams != nil {
		streams(s)
	}
	env = append(cli.Env{"AZURE_STORAGE_CONNECTION_STRING=UseDevelopmentStorage=true", "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}, env...)
	code := run(ctx, args, s, env, wire)
	return ran{code, out.String(), stderr.String()}
}

// allServices is an account with a File service, too.
var allServices = cli.Env{"AZURE_STORAGE_CONNECTION_STRING=" + aztest.ConnectionString("http://127.0.0.1:10000/"+aztest.Account) +
	"QueueEndpoint=http://127.0.0.1:10001/" + aztest.Account + ";TableEndpoint=http://127.0.0.1:10002/" + aztest.Account +
	";FileEndpoint=http://127.0.0.1:10004/" + aztest.Account}

// transport makes a function a policy.Transporter.
type transport func(*http.Request) (*http.Response, error)

func (t transport) Do(r *http.Request) (*http.Response, error) { return t(r) }

func TestACreateWhoseResponseIsLostIsProved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Create Container"), Count: 1})
		r := runOn(t.Context(), s, nil, nil, "container", "create", "jobs", "-o", "json")
		v := r.json(t)
		if r.code != 0 || v["outcome"] != "created" || v["ambiguous"] != 1.0 || v["resolved"] != 1.0 || v["requests"] != 2.0 {
			t.Errorf("exit %d, %v, want it created, as its id proves", r.code, v)
		}
	})
}

func TestAContainerThatWasThereBeforeIsNotOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		if r := runOn(t.Context(), s, nil, nil, "container", "create", "jobs"); r.code != 0 {
			t.Fatal(r)
		}
		bubble.Sleep(time.Minute)
		s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 500, Code: "InternalError", Match: aztest.Op("Create Container"), Count: 1})
		r := runOn(t.Context(), s, nil, nil, "container", "create", "jobs", "-o", "json")
		if v := r.json(t); r.code != 7 || v["outcome"] != "exists" {
			t.Errorf("exit %d, %v, want 7: it is older than our first request", r.code, v)
		}
	})
}

// A container that another client created (or stamped again) after our response was lost may have been ours in between.
func TestAContainerMadeMeanwhileProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		sent := 0
		wire := transport(func(r *http.Request) (*http.Response, error) {
			resp, err := s.Do(r)
			if sent++; sent == 1 {
				if _, err := s.Container("jobs").SetMetadata(r.Context(), nil); err != nil {
					t.Error(err)
				}
			}
			return resp, err
		})
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Create Container"), Count: 1})
		r := runOn(t.Context(), wire, nil, nil, "container", "create", "jobs", "-o", "json")
		if v := r.json(t); r.code != 5 || v["outcome"] != "unknown" {
			t.Errorf("exit %d, %v, want 5", r.code, v)
		}
	})
}

func TestAServerThatIsNotThereIsAPlainFailure(t *testing.T) {
	for _, args := range [][]string{
		{"container", "create", "jobs"}, {"container", "delete", "jobs"}, {"blob", "update", "jobs/a", "--jq", "."}, {"blob", "delete", "jobs/a"}, {"blob", "show", "jobs/a"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(nil)
			s.SetFaults(aztest.Fault{Kind: aztest.Refuse})
			r := runOn(t.Context(), s, nil, nil, args...)
			if r.code != 1 || r.out != "" || !strings.Contains(r.stderr, "refused") || !strings.Contains(r.stderr, "azconc: hint: is the address right") {
				t.Errorf("azconc %v: exit %d, %q %q, want 1: nothing was sent", args, r.code, r.out, r.stderr)
			}
		})
	}
}

func TestASignalEndsACommandWithItsOwnCode(t *testing.T) {
	for signal, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(nil)
			s.SetFaults(aztest.Fault{Kind: aztest.Hang})
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(&fail.SignalError{Signal: signal}) })
			r := runOn(ctx, s, nil, nil, "blob", "show", "jobs/a", "-o", "json")
			if v := r.json(t); r.code != code || v["outcome"] != "interrupted" {
				t.Errorf("%v: exit %d, %v, want %d", signal, r.code, v, code)
			}
		})
	}
}

func TestATimeoutIsForTheWholeCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		s.SetFaults(aztest.Fault{Kind: aztest.Hang})
		began := time.Now()
		r := runOn(t.Context(), s, nil, nil, "blob", "get", "jobs/a", "--timeout", "5s")
		if took := time.Since(began); r.code != 124 || took != 5*time.Second || r.stderr != "azconc: blob get jobs/a: timed out after 5s\n" {
			t.Errorf("exit %d after %v, %q", r.code, took, r.stderr)
		}
	})
}

// A blob of two ranges that changes between them must not come out as half of each.
func TestATornReadIsNeverLeftBehind(t *testing.T) {
	const size = 9 << 20
	old, fresh := bytes.Repeat([]byte("a"), size), bytes.Repeat([]byte("b"), size)
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	if err := os.WriteFile(in, fresh, 0o600); err != nil {
		t.Fatal(err)
	}
	// torn changes the blob after the first of the ranges, every time or once.
	torn := func(t *testing.T, always bool) (*aztest.Service, policy.Transporter) {
		s := aztest.New(nil)
		put := func(content []byte) {
			if _, err := s.BlockBlob("jobs", "big").UploadBuffer(context.Background(), content, nil); err != nil {
				t.Error(err)
			}
		}
		put(old)
		var changed atomic.Bool
		return s, transport(func(r *http.Request) (*http.Response, error) {
			first := r.Method == http.MethodGet && strings.HasPrefix(strings.Join(r.Header["x-ms-range"], ""), "bytes=0-")
			resp, err := s.Do(r)
			if first && (always || !changed.Swap(true)) {
				put(fresh)
			}
			return resp, err
		})
	}

	out := filepath.Join(dir, "out")
	_, wire := torn(t, false)
	if r := runOn(t.Context(), wire, nil, nil, "blob", "get", "jobs/big", "--file", out, "-o", "json"); r.code != 0 || r.json(t)["restarts"] != 1.0 {
		t.Errorf("into a file: exit %d, %s %s, want the read started over", r.code, r.out, r.stderr)
	}
	if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, fresh) {
		t.Errorf("the file is not the new version whole: %d bytes, %v", len(got), err)
	}

	_, wire = torn(t, false)
	if r := runOn(t.Context(), wire, nil, nil, "blob", "get", "jobs/big"); r.code != 4 {
		t.Errorf("to stdout: exit %d, %s, want 4: what is written cannot be taken back", r.code, r.stderr)
	}

	_, wire = torn(t, true)
	if r := runOn(t.Context(), wire, nil, nil, "blob", "get", "jobs/big", "--file", out); r.code != 4 {
		t.Errorf("a blob that changes always: exit %d, %s, want 4", r.code, r.stderr)
	}
	if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, fresh) {
		t.Errorf("the file from before is gone or torn: %d bytes, %v", len(got), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("%d files, want in and out: a part is left behind", len(entries))
	}
}

func TestLargeContentIsStoredAndReadWhole(t *testing.T) {
	s := aztest.New(nil)
	if r := runOn(t.Context(), s, nil, nil, "container", "create", "jobs"); r.code != 0 {
		t.Fatal(r)
	}
	content := bytes.Repeat([]byte("0123456789abcdef"), 20<<16)
	stdin := func(s *cli.Streams) { s.In = bytes.NewReader(content) }
	if r := runOn(t.Context(), s, stdin, nil, "blob", "put", "jobs/big", "--file", "-", "--if-none-match", "*"); r.code != 0 {
		t.Fatalf("put: exit %d: %s", r.code, r.stderr)
	}
	if r := runOn(t.Context(), s, nil, nil, "blob", "get", "jobs/big"); r.code != 0 || r.out != string(content) {
		t.Errorf("get: exit %d, %d bytes of %d: %s", r.code, len(r.out), len(content), r.stderr)
	}
}

// Every request of a write path is sent once: azconc does its own retries, so it knows which outcomes are ambiguous.
func TestWritesAreCountedToTheRequest(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, []byte(`{"n":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := aztest.New(nil)
	for _, c := range []struct {
		args string
		want int
	}{
		{"container create jobs", 1},
		{"blob put jobs/a --file " + file, 2},
		{"blob update jobs/a --jq .n+=1", 2},
		{"blob update jobs/a --jq .", 1},
		{"blob update jobs/a --jq .n+=1 --dry-run", 1},
		{"blob metadata update jobs/a x=1", 2},
		{"blob metadata set jobs/a x=1", 1},
		{"blob get jobs/a", 1},
		{"blob show jobs/a", 1},
		{"blob list jobs", 1},
		{"blob delete jobs/a", 1},
		{"container delete jobs", 1},
	} {
		s.Reset()
		if r := runOn(t.Context(), s, nil, nil, strings.Fields(c.args)...); r.code != 0 {
			t.Fatalf("azconc %s: exit %d: %s", c.args, r.code, r.stderr)
		}
		if got := s.Requests(); got != c.want {
			t.Errorf("azconc %s: %d requests, want %d: %v", c.args, got, c.want, s.Log())
		}
	}
}

// TestTheAgeOfTheOldestMessageIsTheServices: both times are the service's, of whole seconds, whatever the clock of this machine.
func TestTheAgeOfTheOldestMessageIsTheServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		age := func() any {
			return runOn(t.Context(), s, nil, nil, "queue", "show", "orders", "-o", "json").json(t)["oldest_ms"]
		}
		if r := runOn(t.Context(), s, nil, nil, "queue", "create", "orders"); r.code != 0 || age() != nil {
			t.Fatal(r)
		}
		for range 2 {
			if _, err := s.Queue("orders").EnqueueMessage(t.Context(), "x", nil); err != nil {
				t.Fatal(err)
			}
			bubble.Sleep(time.Minute)
		}
		if got := age(); got != 120_000.0 {
			t.Errorf("%v ms, want two minutes", got)
		}
	})
}
