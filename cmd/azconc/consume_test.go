//go:build unix

package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

// until waits for something, and looks no more than a fifth of the time, as a look may start a process. If it never comes, until shows the
// processes: one of them may be stopped, or have ended.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	began, looked := time.Now(), time.Now()
	for !is() {
		if time.Since(began) > patience {
			all, _ := exec.Command("ps", "-eo", "pid,ppid,pgid,tty,stat,etime,args").Output()
			t.Fatalf("it does not come to pass that %s, with these processes:\n%s", what, all)
		}
		<-time.After(10*time.Millisecond + 4*time.Since(looked))
		looked = time.Now()
	}
}

// effectsAre counts the rows that were inserted, each of which has the name of the message and of the run in it.
func (s shell) effectsAre(t *testing.T, n int) {
	t.Helper()
	code, out, said := s.run("table", "query", "effects", "--filter", "n eq 1", "--select", "RowKey")
	if code != 0 {
		t.Fatal(said)
	}
	of, rows := map[string]int{}, 0
	for _, part := range strings.Split(out, `"RowKey":"`)[1:] {
		key, _, _ := strings.Cut(part, ".")
		of[key]++
		rows++
	}
	if rows != n || len(of) != n {
		t.Errorf("%d effects of %d messages, want one for each of %d", rows, len(of), n)
	}
}

// visible counts the messages that can be received.
func visible(t *testing.T, queue *azqueue.QueueClient) int {
	t.Helper()
	most := int32(32)
	answer, err := queue.PeekMessages(t.Context(), &azqueue.PeekMessagesOptions{NumberOfMessages: &most})
	if err != nil {
		t.Fatal(err)
	}
	return len(answer.Messages)
}
