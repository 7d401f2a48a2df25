//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// TestATermDrainsAndASecondOneHurries: the first one lets the command finish, and no other begins; the second one ends it,
// and its message is there again at once.
func TestATermDrainsAndASecondOneHurries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		terms   int
		command string
		left    int // messages
	}{
		{"one", 1, `echo started >>log; until test -e go; do sleep 0.02; done; echo done >>log`, 1},
		{"two", 2, `echo started >>log; sleep 600; echo done >>log`, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			service := aztest.New(nil)
			queues := httptest.NewServer(service.QueueHandler())
			t.Cleanup(queues.Close)
			queue := service.Queue("orders")
			for range 2 {
				if _, err := queue.EnqueueMessage(t.Context(), "x", nil); err != nil {
					t.Fatal(err)
				}
			}
			s := newShell(t, fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;QueueEndpoint=%s/%s;", aztest.Account, aztest.Key, queues.URL, aztest.Account))
			cmd, said := s.command("queue", "consume", "orders", "--exec", c.command, "--dedupe", "none", "--soft-stop", "10m")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			s.eventually("log", 1)
			term := func() {
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
					t.Error(err)
				}
			}
			term()
			until(t, "the other message is given back", func() bool { return visible(t, queue) == 1 })
			if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
				t.Error(err)
			}
			ended := make(chan int, 1)
			go func() { ended <- codeOf(cmd.Wait()) }()
			for code := -1; code < 0; {
				select {
				case code = <-ended:
					if code != 0 {
						t.Fatalf("exit %d: %s", code, said)
					}
				case <-time.After(50 * time.Millisecond):
					// Two that come before the first is taken note of are one. One that comes after the message was given back may
					// find a command that is about to end, and end it.
					if c.terms > 1 && visible(t, queue) < c.left {
						term()
					}
				}
			}
			if done := strings.Contains(fmt.Sprint(s.lines("log")), "done"); done != (c.terms == 1) {
				t.Errorf("the command came to its end: %t", done)
			}
			if n := visible(t, queue); n != c.left {
				t.Errorf("%d messages can be received, want %d: %s", n, c.left, said)
			}
		})
	}
}

// TestAnInterruptWhileNothingAnswersEndsTheCommand: no request of the start is answered, and the command ends as it does when it is idle.
func TestAnInterruptWhileNothingAnswersEndsTheCommand(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the end of the connection is noticed only after the body
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(hanging.Close)
	s := newShell(t, fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;QueueEndpoint=%[3]s/q;TableEndpoint=%[3]s/t;", aztest.Account, aztest.Key, hanging.URL))
	cmd, said := s.command("queue", "consume", "orders", "--exec", "true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if code := codeOf(cmd.Wait()); code != 0 || strings.Contains(said.String(), "hint") {
		t.Errorf("exit %d: %s", code, said)
	}
}
