package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// toil starts processes that write, each to a file of its own, without a pause and whatever they are asked. The kernel notes when.
const toil = `trap '' TERM; mkdir beats
for i in $(seq $0); do sh -c 'while :; do echo > beats/$0; done' $i & done; wait`

// A watchdog shares the limit of its container with what it has to kill. Under a fifth of a processor its timer was up to 0.8 s late
// beside 50 busy processes, and one look at /proc took 1.7 s: the command went on for 5.8 s after the lock was free. For a table, the
// variable has the limits in percent of a processor, the numbers of processes, and the seconds of leases: "20,50,100 1,4,50 15,30".
func TestNothingOutlivesTheLockUnderALimitOfTheProcessor(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it takes as long as a lease, and this is a short run")
	}
	table := os.Getenv("AZCONC_TEST_LIMITS")
	if table == "" {
		table = "20 50 15"
	}
	var lists [3][]int
	for i, list := range strings.Fields(table) {
		for _, word := range strings.Split(list, ",") {
			n, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			lists[i] = append(lists[i], n)
		}
	}
	for _, seconds := range lists[2] {
		for _, percent := range lists[0] {
			for _, n := range lists[1] {
				var judgements []func()
				for what, act := range map[string]func(*holding){
					"lost": func(h *holding) {
						_ = h.server.Listener.Close()
						h.server.CloseClientConnections()
					},
					"stopped": func(h *holding) { _ = syscall.Kill(h.azconc, syscall.SIGSTOP) },
					"killed":  func(h *holding) { _ = syscall.Kill(h.azconc, syscall.SIGKILL) },
				} {
					h, end := toiling(t, percent, n, seconds)
					act(h)
					taken := h.next()
					judgements = append(judgements, func() {
						t.Run(fmt.Sprintf("%d%% of a processor, %d processes, %d s, %s", percent, n, seconds, what), func(t *testing.T) {
							at := <-taken
							h.t = t
							h.judgeToil(at)
							end()
						})
					})
				}
				for _, judge := range judgements {
					judge()
				}
			}
		}
	}
}

// toiling is an azconc in a small container, without the right to come before others, whose command's processes are all busy.
func toiling(t *testing.T, percent, n, seconds int) (h *holding, end func()) {
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("SKIP: no setpriv here, which takes a right away")
	}
	small := newCrowd(t, cpuLimit(percent), memoryLimit)
	service := aztest.New(nil)
	server := httptest.NewServer(service.BlobHandler())
	t.Cleanup(server.Close)
	h = &holding{shell: newShell(t, aztest.ConnectionString(server.URL+"/"+aztest.Account)), service: service, server: server}
	h.must("container", "create", "locks")
	azconc, _ := h.command("lock", "run", "locks/tree", "--duration", fmt.Sprint(seconds, "s"), "--", "sh", "-c", toil, fmt.Sprint(n))
	cmd := small.command(append([]string{setpriv, "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"}, azconc.Args...)...)
	cmd.Dir, cmd.Env = h.dir, h.env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h.azconc = cmd.Process.Pid
	until(t, "all processes are busy", func() bool { return len(h.beats()) == n })
	return h, func() {
		_ = syscall.Kill(h.azconc, syscall.SIGCONT)
		_ = cmd.Wait()
		h.t.Logf("azconc said %.300q", h.text("said"))
	}
}

func (h *holding) beats() []os.DirEntry {
	files, _ := os.ReadDir(filepath.Join(h.dir, "beats"))
	return files
}

// judgeToil fails if a process has written after another could hold the lock.
func (h *holding) judgeToil(taken time.Time) {
	h.t.Helper()
	if taken.IsZero() {
		h.t.Error("the lease does not become free")
	}
	<-time.After(200 * time.Millisecond) // for what goes on to write
	var last time.Time
	for _, f := range h.beats() {
		if info, err := f.Info(); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	margin := taken.Sub(last).Round(10 * time.Millisecond)
	if h.t.Logf("the last sign of life came %v before the next holder", margin); margin < 0 {
		h.t.Errorf("the command has worked on for %v", -margin)
	}
}
