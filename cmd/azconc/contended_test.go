package main

import (
	"context"
	"encoding/json"
	"errors"
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

// counter is a number that processes increment, in a blob or in an entity.
type counter struct {
	create [][]string // makes it; its content goes to stdin
	update []string
	get    []string
}

var counters = map[string]counter{
	"blob": {
		[][]string{{"container", "create", "counter"}, {"blob", "put", "counter/n.json", "--file", "-"}},
		[]string{"blob", "update", "counter/n.json", "--jq", ".n += 1", "-o", "json"},
		[]string{"blob", "get", "counter/n.json"},
	},
	"table": {
		[][]string{{"table", "create", "counter"}, {"table", "insert", "counter/p/r", "--file", "-"}},
		[]string{"table", "update", "counter/p/r", "--jq", ".n += 1", "-o", "json"},
		[]string{"table", "get", "counter/p/r"},
	},
}

// TestUpdatesOfEightProcessesAllCount is the promise of blob update and table update, made to processes that know
// nothing of each other.
func TestUpdatesOfEightProcessesAllCount(t *testing.T) {
	server := startAzurite(t)
	for name, c := range counters {
		t.Run(name, func(t *testing.T) {
			connection := connectionTo(server.BlobURL(), server.TableURL())
			got := contend(t, c, connection, connection)
			if got.ok != processes*runsEach || got.n != got.ok {
				t.Errorf("%+v, want %d updates, each applied once", got, processes*runsEach)
			}
		})
	}
}

// TestLostResponsesNeitherLoseNorRepeatAnUpdate loses one response in five from a real server. Exit code 0 means
// applied once; only a 5 leaves it open.
func TestLostResponsesNeitherLoseNorRepeatAnUpdate(t *testing.T) {
	server := startAzurite(t)
	for name, c := range counters {
		t.Run(name, func(t *testing.T) {
			lossy := connectionTo(lossyWay(t, server.BlobURL()), lossyWay(t, server.TableURL()))
			got := contend(t, c, connectionTo(server.BlobURL(), server.TableURL()), lossy)
			if got.n < got.ok || got.n > got.ok+got.unknown || got.ok+got.unknown != processes*runsEach {
				t.Errorf("%+v, want every exit 0 applied once, and nothing but 0 and 5", got)
			}
			// A lineage of 32 entries reaches back far enough but for the writer that has to wait longest.
			if got.unknown > processes*runsEach/10 || got.resolved == 0 {
				t.Errorf("%+v, want lost responses resolved", got)
			}
		})
	}
}

func connectionTo(blobs, tables string) string {
	return aztest.ConnectionString(strings.TrimSuffix(blobs, "/")) + "TableEndpoint=" + strings.TrimSuffix(tables, "/") + ";"
}

// lossyWay puts a proxy that loses one response in five in front of a service, and returns its URL.
func lossyWay(t *testing.T, service string) string {
	t.Helper()
	target, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	path := target.Path
	target.Path = ""
	proxy := aztest.NewProxy(target, 1, aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.2})
	t.Cleanup(proxy.Close)
	front := httptest.NewServer(proxy.Handler())
	t.Cleanup(front.Close)
	return front.URL + path
}

type contention struct {
	ok, conflict, unknown, other int
	resolved                     int
	n                            int
}

// contend has processes add 1 to a number through a connection and reads the number directly.
func contend(t *testing.T, c counter, direct, through string) contention {
	t.Helper()
	azconc, err := exec.LookPath("azconc")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	run := func(connection, stdin string, args ...string) ([]byte, int, string) {
		var stderr strings.Builder
		cmd := exec.CommandContext(ctx, azconc, args...)
		cmd.Env = append(os.Environ(), "AZURE_STORAGE_CONNECTION_STRING="+connection)
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
	for _, args := range c.create {
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
				out, code, said := run(through, "", c.update...)
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

	out, code, said := run(direct, "", c.get...)
	var doc struct{ N int }
	if err := json.Unmarshal(out, &doc); err != nil || code != 0 {
		t.Fatalf("get: exit %d: %v: %s", code, err, said)
	}
	got.n = doc.N
	t.Logf("%+v", got)
	return got
}

func startAzurite(t *testing.T) *azurite.Server {
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
	return server
}

// needAzurite skips a test if AZCONC_SKIP_AZURITE is set. Otherwise a missing Azurite is a failure.
func needAzurite(t *testing.T) {
	t.Helper()
	if os.Getenv(azuritetest.SkipVariable) == "1" {
		t.Skip("SKIP: " + azuritetest.SkipVariable + "=1")
	}
}
