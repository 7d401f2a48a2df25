//go:build !race

// The race detector sees nothing of what goes on between processes: scripts/test runs this file without it.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

const processes = 8

// runsEach is how many updates each of the processes makes.
func runsEach() int {
	if testing.Short() {
		return 5
	}
	return 16
}

// counter is a number that processes increment, in a blob or in an entity. Their attempts have a bound of their own: 30 seconds, the default,
// are too short where 32 processes at a time have two processors that others use, too.
type counter struct {
	create [][]string // makes it; its content goes to stdin
	update []string
	get    []string
}

var counters = map[string]counter{
	"blob": {
		[][]string{{"container", "create", "counter"}, {"blob", "put", "counter/n.json", "--file", "-"}},
		[]string{"blob", "update", "counter/n.json", "--jq", ".n += 1", "--max-attempts", "1000", "-o", "json"},
		[]string{"blob", "get", "counter/n.json"},
	},
	"table": {
		[][]string{{"table", "create", "counter"}, {"table", "insert", "counter/p/r", "--file", "-"}},
		[]string{"table", "update", "counter/p/r", "--jq", ".n += 1", "--max-attempts", "1000", "-o", "json"},
		[]string{"table", "get", "counter/p/r"},
	},
}

// TestUpdatesOfManyProcessesAllCount is the promise of blob update and table update, made to loops that start a process for every update and
// know nothing of each other: without a fault, each gets a success for each, whatever their number.
func TestUpdatesOfManyProcessesAllCount(t *testing.T) {
	t.Parallel()
	for name, loops := range map[string]int{"blob": 32, "table": processes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && name != "blob" {
				t.Skip("SKIP: a blob stands for both, and this is a short run")
			}
			connection := emulated(t).ConnectionString()
			if testing.Short() {
				loops /= 2
			}
			updates := max(2, runsEach()*processes/loops)
			got := contend(t, counters[name], connection, connection, loops, updates)
			if got.unknown > 0 || got.ok != loops*updates || got.n != got.ok {
				t.Errorf("%+v, want %d updates, each applied once, and none unknown", got, loops*updates)
			}
		})
	}
}

// TestLostResponsesNeitherLoseNorRepeatAnUpdate loses one response in five. Exit code 0 means
// applied once; only a 5 leaves it open.
func TestLostResponsesNeitherLoseNorRepeatAnUpdate(t *testing.T) {
	t.Parallel()
	for name, c := range counters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && name != "blob" {
				t.Skip("SKIP: a blob stands for both, and this is a short run")
			}
			account := emulated(t)
			got := contend(t, c, account.ConnectionString(), lossy(t, account), processes, runsEach())
			if got.n < got.ok || got.n > got.ok+got.unknown || got.ok+got.unknown != processes*runsEach() {
				t.Errorf("%+v, want every exit 0 applied once, and nothing but 0 and 5", got)
			}
			// A lineage of 32 entries reaches back far enough but for the writer that has to wait longest.
			if got.unknown > processes*runsEach()/10 || got.resolved == 0 {
				t.Errorf("%+v, want lost responses resolved", got)
			}
		})
	}
}

type contention struct {
	ok, conflict, unknown, other int
	resolved                     int
	n                            int
}

// contend runs loops that add 1 to a number through a connection, by a process for each of their updates, and reads the
// number directly.
func contend(t *testing.T, c counter, direct, through string, loops, updates int) contention {
	t.Helper()
	azconc, err := exec.LookPath("azconc")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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
	for range loops {
		wg.Go(func() {
			for range updates {
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
