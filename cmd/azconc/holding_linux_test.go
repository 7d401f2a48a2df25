package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pkg/aztest"
)

// beat appends its name, its process id and the time to a file, ten times a second, whatever it is asked.
const beat = `#!/bin/sh
trap '' TERM INT HUP QUIT
while :; do echo "$1 $$ $(date +%s.%N)" >> beats; sleep 0.1; done
`

// family starts beats in every way to get away from a parent.
const family = `#!/bin/sh
timeout 600 ./beat timeout &
setsid ./beat setsid &
sh -c 'set -m; ./beat job & wait' &
azconc lock run locks/inner -- ./beat nested &
sh -c '(setsid ./beat fork &) &'
env -i PATH="$PATH" ./beat bare &
echo $PPID > watchdog
echo $$ > command
echo page
trap 'exit 5' TERM
while :; do sleep 0.05; done
`

var members = []string{"timeout", "setsid", "job", "nested", "fork", "bare"}

// pager changes the terminal, as pagers do, and shows what it reads.
const pager = `#!/bin/sh
stty -echo < /dev/tty
cat > shown
stty echo < /dev/tty
`

// holding is an azconc that holds locks/tree at a terminal, and what it runs.
type holding struct {
	shell
	service *aztest.Service
	server  *httptest.Server
	azconc  int
	wait    func() // for the end of the shell at the terminal
}

func hold(t *testing.T, flags string) *holding {
	t.Helper()
	service := aztest.New(nil)
	server := httptest.NewServer(service.BlobHandler())
	t.Cleanup(server.Close)
	h := &holding{shell: newShell(t, aztest.ConnectionString(server.URL+"/"+aztest.Account)), service: service, server: server}
	if code, _, said := h.run("container", "create", "locks"); code != 0 {
		t.Fatal(said)
	}
	for name, text := range map[string]string{"beat": beat, "family": family, "pager": pager} {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_, h.wait = interactive(t, h.shell, `(echo $(exec sh -c 'echo $PPID') > pid; exec azconc lock run locks/tree --duration 15s `+flags+` -- ./family 2> said) | ./pager`)
	until(t, "all members beat", func() bool { return len(h.last()) == len(members) })
	h.azconc, _ = strconv.Atoi(h.eventually("pid", 1)[0])
	t.Cleanup(func() { // of a test that has failed
		for _, b := range h.last() {
			_ = syscall.Kill(b.pid, syscall.SIGKILL)
		}
	})
	return h
}

func (h *holding) must(args ...string) {
	h.t.Helper()
	if code, _, said := h.run(args...); code != 0 {
		h.t.Fatal(said)
	}
}

func (h *holding) text(name string) string {
	text, _ := os.ReadFile(filepath.Join(h.dir, name))
	return string(text)
}

type beaten struct {
	pid int
	at  time.Time
}

// last returns the last beat of every member that has beaten.
func (h *holding) last() map[string]beaten {
	file, err := os.Open(filepath.Join(h.dir, "beats"))
	if err != nil {
		return nil
	}
	defer file.Close()
	last := map[string]beaten{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 {
			continue
		}
		pid, _ := strconv.Atoi(fields[1])
		seconds, fraction, _ := strings.Cut(fields[2], ".")
		s, _ := strconv.ParseInt(seconds, 10, 64)
		n, _ := strconv.ParseInt(fraction, 10, 64)
		if at := time.Unix(s, n); at.After(last[fields[0]].at) {
			last[fields[0]] = beaten{pid, at}
		}
	}
	return last
}

// next acquires the lease as soon as the service gives it, and delivers when the request was sent that got it.
func (h *holding) next() <-chan time.Time {
	client, err := lease.NewBlobClient(h.service.Container("locks").NewBlobClient("tree"), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	taken := make(chan time.Time, 1)
	go func() {
		defer close(taken)
		for began := time.Now(); time.Since(began) < patience; <-time.After(5 * time.Millisecond) {
			sent := time.Now()
			if _, err := client.AcquireLease(context.Background(), 15, nil); err == nil {
				taken <- sent
				return
			}
		}
	}()
	return taken
}

// judge fails if a member has beaten after another could hold the lock, or is still alive.
func (h *holding) judge(taken time.Time) {
	h.t.Helper()
	if taken.IsZero() {
		h.t.Error("the lease does not become free")
	}
	for name, b := range h.last() {
		margin := taken.Sub(b.at)
		h.t.Logf("%-8s last beat %v before the next holder", name, margin.Round(time.Millisecond))
		if margin < 0 {
			h.t.Errorf("%s has worked on for %v", name, -margin)
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.pid)); err == nil && !strings.Contains(string(stat), ") Z ") {
			h.t.Errorf("%s, process %d, is still alive", name, b.pid)
		}
	}
}

// What azconc has started must be gone before another can hold the lock, whatever happens to azconc.
func TestNothingOutlivesTheLock(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it takes as long as a lease, and this is a short run")
	}
	signalTo := func(pid func(*holding) int, s syscall.Signal) func(*holding) {
		return func(h *holding) {
			if err := syscall.Kill(pid(h), s); err != nil {
				h.t.Errorf("signal %v: %v", s, err)
			}
		}
	}
	azconc := func(h *holding) int { return h.azconc }
	written := func(name string) func(*holding) int {
		return func(h *holding) int {
			pid, _ := strconv.Atoi(h.eventually(name, 1)[0])
			return pid
		}
	}
	command, watchdog := written("command"), written("watchdog")
	unreachable := func(h *holding) {
		_ = h.server.Listener.Close()
		h.server.CloseClientConnections()
	}
	var judgements []func()
	for _, c := range []struct {
		name, flags string
		act         func(*holding)
	}{
		{"lost", "", unreachable},
		{"watchdog stopped, then lost", "", func(h *holding) {
			signalTo(watchdog, syscall.SIGSTOP)(h)
			unreachable(h)
		}},
		{"watchdog stopped", "", signalTo(watchdog, syscall.SIGSTOP)},
		{"stopped", "", signalTo(azconc, syscall.SIGSTOP)},
		{"killed", "", signalTo(azconc, syscall.SIGKILL)},
		{"broken", "--kill-after 2s", func(h *holding) { h.must("lock", "break", "locks/tree") }},
		{"broken soon", "", func(h *holding) { h.must("lock", "break", "locks/tree", "--period", "10s") }},
		{"watchdog killed", "", signalTo(watchdog, syscall.SIGKILL)},
		{"command killed", "--kill-after 2s", signalTo(command, syscall.SIGKILL)},
		{"terminated", "--kill-after 2s", signalTo(azconc, syscall.SIGTERM)},
	} {
		h := hold(t, c.flags)
		c.act(h)
		taken := h.next()
		judgements = append(judgements, func() {
			t.Run(c.name, func(t *testing.T) {
				h.t = t
				h.judge(<-taken)
				if c.name == "stopped" {
					signalTo(azconc, syscall.SIGCONT)(h)
				}
				h.wait()
				if shown := h.text("shown"); shown != "page\n" {
					t.Errorf("the pager was given %q", shown)
				}
				t.Logf("azconc said %q", h.text("said"))
			})
		})
	}
	for _, judge := range judgements {
		judge()
	}
}
