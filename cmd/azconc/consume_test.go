//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"golang.org/x/sync/errgroup"

	"github.com/azconc/azconc/idempotent"
)

// TestConsumersOfWhichOneIsKilled: messages that were all sent twice, three consumers, one of which is killed and started
// anew. With an inbox every message has its effect once; with markers a command is run twice only for what the killed one
// had in its hands.
func TestConsumersOfWhichOneIsKilled(t *testing.T) {
	account := startAzurite(t).Account()
	connection := account.ConnectionString()
	credential, err := azqueue.NewSharedKeyCredential(account.Name, account.Key)
	if err != nil {
		t.Fatal(err)
	}
	s := newShell(t, connection)
	for _, table := range []string{"markers", "effects"} {
		if code, _, said := s.run("table", "create", table); code != 0 {
			t.Fatal(said)
		}
	}
	const n = 500
	for _, mode := range []struct {
		name string
		args []string
	}{
		{"inbox", []string{"--inbox", "effects/eu"}},
		{"owner", []string{"--markers", "markers"}},
	} {
		t.Run(mode.name, func(t *testing.T) {
			s := newShell(t, connection)
			queue, err := azqueue.NewQueueClientWithSharedKeyCredential(account.QueueURL+"/"+mode.name, credential, &azqueue.ClientOptions{
				ClientOptions: policy.ClientOptions{PerRetryPolicies: []policy.Policy{idempotent.Policy()}}})
			if err != nil {
				t.Fatal(err)
			}
			sendTwice(t, queue, n)
			s.consumeWithADeath(t, queue, append([]string{"queue", "consume", mode.name, "--concurrency", "4", "--visibility", "10s", "--quiet",
				"--exec", `echo "$AZCONC_KEY $AZCONC_PID" >>runs; echo "{\"op\":\"insert\",\"row\":\"$AZCONC_KEY.$$.$AZCONC_PID\",\"entity\":{\"n\":1}}"`}, mode.args...))
			if mode.name == "inbox" {
				s.effectsAre(t, n)
				return
			}
			s.runsAre(t, n)
		})
	}
}

func sendTwice(t *testing.T, queue *azqueue.QueueClient, n int) {
	t.Helper()
	if _, err := queue.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	producer, err := idempotent.NewProducer(queue, nil)
	if err != nil {
		t.Fatal(err)
	}
	var sending errgroup.Group
	sending.SetLimit(16)
	for i := range 2 * n {
		sending.Go(func() error {
			_, err := producer.Send(t.Context(), idempotent.Outgoing{ID: fmt.Sprintf("m%03d", i%n), Body: []byte("x")})
			return err
		})
	}
	if err := sending.Wait(); err != nil {
		t.Fatal(err)
	}
}

// consumeWithADeath runs three consumers until the queue is empty. One is killed when it has run something, and started
// anew. The file "killed" then has its process id.
func (s shell) consumeWithADeath(t *testing.T, queue *azqueue.QueueClient, args []string) {
	t.Helper()
	var all sync.WaitGroup
	start := func() *exec.Cmd {
		cmd, said := s.command(args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if code := codeOf(cmd.Wait()); code != 0 && code != -1 { // -1: ended by a signal
				t.Errorf("exit %d: %s", code, said)
			}
		})
		return cmd
	}
	one, two, dying := start(), start(), start()
	own := fmt.Sprintf(" %d\n", dying.Process.Pid)
	until(t, "the one that is to die does something", func() bool {
		text, _ := os.ReadFile(filepath.Join(s.dir, "runs"))
		return strings.Count(string(text), own) > 10
	})
	if err := dying.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "killed"), []byte(strings.TrimSpace(own)), 0o600); err != nil {
		t.Error(err)
	}
	again := start()
	until(t, "the queue is empty", func() bool {
		p, err := queue.GetProperties(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return *p.ApproximateMessagesCount == 0
	})
	for _, cmd := range []*exec.Cmd{one, two, again} {
		_ = cmd.Process.Signal(os.Interrupt)
	}
	all.Wait()
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatalf("it does not come to pass that %s", what)
		case <-time.After(50 * time.Millisecond):
		}
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

// runsAre counts runs: two are only for messages that the killed process has run as well.
func (s shell) runsAre(t *testing.T, n int) {
	t.Helper()
	killed := s.lines("killed")[0]
	runs, his := map[string]int{}, map[string]int{}
	fields := s.lines("runs")
	for i := 0; i+1 < len(fields); i += 2 {
		runs[fields[i]]++
		if fields[i+1] == killed {
			his[fields[i]]++
		}
	}
	twice := 0
	for key, r := range runs {
		if r == 1 {
			continue
		}
		if twice++; r > 2 || his[key] != 1 {
			t.Errorf("%s was run %d times, %d of them by the one that was killed", key, r, his[key])
		}
	}
	// Four commands run at a time, and of up to 64 more that have ended it may not have been written down yet.
	if len(runs) != n || twice > 4+64 {
		t.Errorf("%d messages were run, want %d; %d of them twice, want no more than the killed one had in its hands", len(runs), n, twice)
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
