package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

const (
	processes = 8
	runsEach  = 15
)

// TestUpdatesOfEightProcessesAllCount is the promise of blob update, made to processes that know nothing of each other.
func TestUpdatesOfEightProcessesAllCount(t *testing.T) {
	endpoint := startAzurite(t)
	got := contend(t, endpoint, endpoint)
	if got.ok != processes*runsEach || got.n != got.ok {
		t.Errorf("%+v, want %d updates, each applied once", got, processes*runsEach)
	}
}

// TestLostAnswersNeitherLoseNorRepeatAnUpdate loses one answer in five on the way to a real server. Exit code 0 means
// applied once; only a 5 leaves it open.
func TestLostAnswersNeitherLoseNorRepeatAnUpdate(t *testing.T) {
	endpoint := startAzurite(t)
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	target.Path = ""
	proxy := aztest.NewProxy(target, 1, aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.2})
	defer proxy.Close()
	server := httptest.NewServer(proxy.Handler())
	defer server.Close()
	got := contend(t, endpoint, server.URL+"/"+aztest.Account)
	if got.n < got.ok || got.n > got.ok+got.unknown || got.ok+got.unknown != processes*runsEach {
		t.Errorf("%+v, want every exit 0 applied once, and nothing but 0 and 5", got)
	}
	// A lineage of 32 entries reaches back far enough but for the writer that has to wait longest.
	if got.unknown > processes*runsEach/10 || got.resolved == 0 {
		t.Errorf("%+v, want lost answers resolved", got)
	}
}

type contention struct {
	ok, conflict, unknown, other int
	resolved                     int
	n                            int
}

// contend has processes add 1 to a number through endpoint and reads the number directly.
func contend(t *testing.T, direct, endpoint string) contention {
	t.Helper()
	azconc, err := exec.LookPath("azconc")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	run := func(endpoint string, stdin string, args ...string) ([]byte, int, string) {
		var stderr strings.Builder
		cmd := exec.CommandContext(ctx, azconc, args...)
		cmd.Env = append(os.Environ(), "AZURE_STORAGE_CONNECTION_STRING="+aztest.ConnectionString(endpoint))
		cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), &stderr
		out, err := cmd.Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return out, exit.ExitCode(), stderr.String()
		}
		if err != nil {
			return out, -1, err.Error()
		}
		return out, 0, stderr.String()
	}
	for _, args := range [][]string{{"container", "create", "counter"}, {"blob", "put", "counter/n.json", "--file", "-"}} {
		if _, code, said := run(direct, `{"n":0}`, args...); code != 0 {
			t.Fatalf("azconc %s: exit %d: %s", strings.Join(args, " "), code, said)
		}
	}

	var mu sync.Mutex
	var got contention
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			for range runsEach {
				out, code, said := run(endpoint, "", "blob", "update", "counter/n.json", "--jq", ".n += 1", "-o", "json")
				var result struct{ Resolved int }
				err := json.Unmarshal(out, &result)
				mu.Lock()
				switch code {
				case 0:
					got.ok++
				case 4:
					got.conflict++
				case 5:
					got.unknown++
					t.Logf("%s", said)
				default:
					got.other++
				}
				got.resolved += result.Resolved
				mu.Unlock()
				if code != 0 && code != 5 || err != nil {
					t.Errorf("exit %d: %s %s %v", code, out, said, err)
				}
			}
		})
	}
	wg.Wait()

	out, code, said := run(direct, "", "blob", "get", "counter/n.json")
	var doc struct{ N int }
	if err := json.Unmarshal(out, &doc); err != nil || code != 0 {
		t.Fatalf("blob get: exit %d: %v: %s", code, err, said)
	}
	got.n = doc.N
	t.Log(fmt.Sprintf("%+v", got))
	return got
}

func startAzurite(t *testing.T) string {
	t.Helper()
	needAzurite(t)
	server, err := azurite.Start(t.Context(), nil)
	if err != nil {
		t.Fatalf("start Azurite: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("stop Azurite: %v", err)
		}
	})
	return strings.TrimSuffix(server.BlobURL(), "/")
}

// needAzurite skips a test where somebody has chosen to do without Azurite. Anywhere else its absence is a failure.
func needAzurite(t *testing.T) {
	t.Helper()
	if os.Getenv(azuritetest.SkipVariable) == "1" {
		t.Skip("SKIP: " + azuritetest.SkipVariable + "=1")
	}
}
