package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// waiterBesideALoop has a loop that acquires a lock again and again, a process for each turn, and a waiter that comes during the first. It
// prints a word for each turn.
const waiterBesideALoop = `
azconc container create locks >&2 || exit 99
touch go turns
(while [ -e go ]; do azconc lock run locks/x -- sh -c 'echo loop >>turns; sleep 0.5' || exit; done) &
until grep -q loop turns; do sleep 0.02; done
azconc lock run --wait 320s locks/x -- sh -c 'echo waiter >>turns'
code=$?
rm go
wait
cat turns
exit $code
`

// TestAWaiterHasItsTurnBesideAShellLoop: such a loop once had 31 turns on Azurite while the waiter gave up. On a machine that is too
// busy to start the waiter's next request within a second, others have another turn.
func TestAWaiterHasItsTurnBesideAShellLoop(t *testing.T) {
	t.Parallel()
	account := emulated(t)
	azconc, err := exec.LookPath("azconc")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", waiterBesideALoop)
	shell.Dir, shell.WaitDelay = t.TempDir(), 5*time.Second
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	shell.Env = append(os.Environ(), "AZURE_STORAGE_CONNECTION_STRING="+account.ConnectionString(),
		"PATH="+filepath.Dir(azconc)+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := shell.Output()
	turns := strings.Join(strings.Fields(string(out)), " ")
	before, _, had := strings.Cut(turns, "waiter")
	if err != nil || !had || strings.Count(before, "loop") > 6 {
		t.Errorf("%v: the turns were: %s", err, out)
	}
	t.Logf("turns: %s", turns)
}
