package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestALogOfManyProcesses: writers that are a process for each record append to one log, over a way that loses a fifth of the
// responses, and some of them are killed. Each record that was acknowledged is printed once, in its writer's order, and by one that
// follows too.
func TestALogOfManyProcesses(t *testing.T) {
	account := emulated(t)
	s := newShell(t, account.ConnectionString())
	if code, _, said := s.run("container", "create", "logs"); code != 0 {
		t.Fatal(said)
	}
	follower, followed := s.command("blob", "records", "logs/app", "--follow")
	out, err := os.Create(filepath.Join(s.dir, "followed"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	follower.Stdout = out
	if err := follower.Start(); err != nil {
		t.Fatal(err)
	}
	lossy := newShell(t, lossy(t, account))
	const records = 8
	var mu sync.Mutex
	acked := map[string]string{} // positions by record
	var all sync.WaitGroup
	for me := range 3 {
		all.Go(func() {
			for n := range records {
				record := fmt.Sprintf("%d/%d", me, n)
				cmd, said := lossy.command("blob", "append", "logs/app", "--roll", "--max-size", "200", "--record", "--file", "-", "--query", "position", "-o", "tsv")
				cmd.Stdin = strings.NewReader(record)
				var at strings.Builder
				cmd.Stdout = &at
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				if me == 0 && n%3 == 1 {
					_ = cmd.Process.Kill()
				}
				switch code := codeOf(cmd.Wait()); {
				case code == 0:
					mu.Lock()
					acked[record] = strings.TrimSpace(at.String())
					mu.Unlock()
				case code != -1 && code != 5:
					t.Errorf("%s: exit code %d: %s", record, code, said)
				}
			}
		})
	}
	all.Wait()
	code, text, said := s.run("blob", "records", "logs/app")
	if code != 0 {
		t.Fatal(said)
	}
	last, blobs := map[byte]string{}, map[string]bool{}
	seen := map[string]string{}
	for line := range strings.Lines(text) {
		var r struct{ Position, Data string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if me := r.Data[0]; seen[r.Data] != "" || r.Data <= last[me] {
			t.Errorf("%s comes after %s", r.Data, last[me])
		} else {
			last[me] = r.Data
		}
		seen[r.Data], blobs[r.Position[:6]] = r.Position, true
	}
	for record, at := range acked {
		if seen[record] != at {
			t.Errorf("%s was acknowledged at %s, and is at %q", record, at, seen[record])
		}
	}
	if len(acked) < 2*records || len(blobs) < 3 {
		t.Errorf("too tame: %d records, %d blobs", len(acked), len(blobs))
	}
	ended := make(chan error, 1)
	go func() { ended <- follower.Wait() }()
	until(t, "the follower has seen all", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("the follower has ended: %v, %s", err, followed)
		default:
		}
		got, err := os.ReadFile(out.Name())
		return err == nil && strings.HasPrefix(string(got), text) // the request of a writer that was killed may have come late
	})
	_ = follower.Process.Kill()
	<-ended
	if followed.Len() > 0 {
		t.Error(followed)
	}
}
