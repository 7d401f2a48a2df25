//go:build unix && !race

// The race detector sees nothing of what goes on between processes: scripts/test runs this file without it.

package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"golang.org/x/sync/errgroup"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/azurite"
)

var (
	stormMessages = flag.Int("storm-messages", 60, "how many messages a storm of consumers has")
	stormSeed     = flag.Uint64("storm-seed", 1, "what happens in it, and when")
)

// TestAStormOfConsumers sends each message one to three times to three consumers, of which some are killed, some are stopped for
// longer than their messages are hidden, while Azurite is restarted. In every mode each message is handled, and none is poison;
// with an inbox each has one effect. More of it: go test -run Storm . -args -storm-messages 1000 -storm-seed 2
func TestAStormOfConsumers(t *testing.T) {
	t.Parallel()
	needAzurite(t)
	if testing.Short() {
		t.Skip("SKIP: it takes a hundred processes, and this is a short run")
	}
	for _, mode := range []struct {
		name  string
		args  []string
		exact bool
	}{
		{"owner", nil, false},
		{"inbox", []string{"--inbox", "effects/eu"}, true},
	} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			s := newStorm(t)
			s.send()
			s.blow(append([]string{"queue", "consume", "orders", "--concurrency", "4", "--visibility", "3s", "--quiet", "--poison", "orders-poison",
				"--exec", `echo "$AZCONC_KEY $PPID" >>runs; echo "{\"op\":\"insert\",\"row\":\"$AZCONC_KEY.$$.$PPID\",\"entity\":{\"n\":1}}"`}, mode.args...))
			runs := map[string]int{}
			fields := s.lines("runs")
			for i := 0; i+1 < len(fields); i += 2 {
				runs[fields[i]]++
			}
			again := len(fields)/2 - len(runs)
			t.Logf("%d messages, %d sent, %d runs beyond one each", *stormMessages, s.sent, again)
			if len(runs) != *stormMessages {
				t.Errorf("%d messages were handled, want %d", len(runs), *stormMessages)
			}
			if !mode.exact && again > s.sent-*stormMessages {
				t.Errorf("%d runs beyond one each, which is no better than without markers", again)
			}
			if mode.exact {
				s.effectsAre(t, *stormMessages)
			}
			if n := visible(t, s.client("orders-poison")); n != 0 {
				t.Errorf("%d messages are poison", n)
			}
		})
	}
}

// storm is an Azurite that can be restarted, and a shell.
type storm struct {
	shell
	options azurite.Options
	server  *azurite.Server
	random  *rand.Rand
	sent    int
	running map[int]*exec.Cmd
	all     sync.WaitGroup
}

func newStorm(t *testing.T) *storm {
	t.Helper()
	s := &storm{options: azurite.Options{Location: t.TempDir()}, random: rand.New(rand.NewPCG(*stormSeed, 0)), running: map[int]*exec.Cmd{}}
	s.start(t)
	t.Cleanup(func() {
		if err := s.server.Stop(); err != nil {
			t.Error(err)
		}
	})
	s.shell = newShell(t, s.server.ConnectionString())
	for _, args := range [][]string{{"queue", "create", "orders"}, {"queue", "create", "orders-poison"}, {"table", "create", "effects"}} {
		if code, _, said := s.run(args...); code != 0 {
			t.Fatal(said)
		}
	}
	return s
}

// start starts Azurite, the second time on the same ports.
func (s *storm) start(t *testing.T) {
	t.Helper()
	var err error
	if s.server, err = azurite.Start(t.Context(), &s.options); err != nil {
		t.Fatal(err)
	}
	a := s.server.Account()
	for url, port := range map[string]*int{a.BlobURL: &s.options.BlobPort, a.QueueURL: &s.options.QueuePort, a.TableURL: &s.options.TablePort} {
		if _, err := fmt.Sscanf(url, "http://127.0.0.1:%d/", port); err != nil {
			t.Fatalf("%s: %v", url, err)
		}
	}
}

func (s *storm) client(queue string) *azqueue.QueueClient {
	s.t.Helper()
	account := s.server.Account()
	credential, err := azqueue.NewSharedKeyCredential(account.Name, account.Key)
	if err != nil {
		s.t.Fatal(err)
	}
	client, err := azqueue.NewQueueClientWithSharedKeyCredential(account.QueueURL+"/"+queue, credential, &azqueue.ClientOptions{
		ClientOptions: policy.ClientOptions{PerRetryPolicies: []policy.Policy{idempotent.Policy()}}})
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// send sends each message one to three times, in any order.
func (s *storm) send() {
	s.t.Helper()
	producer, err := idempotent.NewProducer(s.client("orders"), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	var ids []string
	for i := range *stormMessages {
		for range 1 + s.random.IntN(3) {
			ids = append(ids, fmt.Sprintf("m%04d", i))
		}
	}
	s.sent = len(ids)
	s.random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	var sending errgroup.Group
	sending.SetLimit(16)
	for _, id := range ids {
		sending.Go(func() error {
			_, err := producer.Send(s.t.Context(), idempotent.Outgoing{ID: id, Body: []byte("x")})
			return err
		})
	}
	if err := sending.Wait(); err != nil {
		s.t.Fatal(err)
	}
}

// consumer starts one.
func (s *storm) consumer(args []string) {
	s.t.Helper()
	cmd, said := s.command(args...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	pid := cmd.Process.Pid
	s.running[pid] = cmd
	s.all.Go(func() {
		if code := codeOf(cmd.Wait()); code != 0 && code != -1 { // -1: ended by a signal
			s.t.Errorf("exit %d: %s", code, said)
		}
	})
}

// blow runs three consumers until the queue is empty. When an eighth of the messages are handled one of them is killed and another
// started; at a quarter one is stopped for longer than its messages are hidden; at the half Azurite is restarted; at three
// quarters another is killed.
func (s *storm) blow(args []string) {
	t := s.t
	t.Helper()
	for range 3 {
		s.consumer(args)
	}
	handled := func(part, of int) func() bool {
		return func() bool {
			if t.Failed() { // a consumer has ended
				t.FailNow()
			}
			return len(s.lines("runs"))/2 >= *stormMessages*part/of
		}
	}
	any := func() *exec.Cmd {
		n := s.random.IntN(len(s.running))
		for _, cmd := range s.running { // the order is any
			if n--; n < 0 {
				return cmd
			}
		}
		return nil
	}
	kill := func() {
		cmd := any()
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		delete(s.running, cmd.Process.Pid)
		s.consumer(args)
	}
	until(t, "an eighth is handled", handled(1, 8))
	kill()
	until(t, "a quarter is handled", handled(1, 4))
	stopped := any()
	_ = stopped.Process.Signal(syscall.SIGSTOP)
	goOn := time.After(5 * time.Second)
	until(t, "half is handled", handled(1, 2))
	if err := s.server.Stop(); err != nil {
		t.Error(err)
	}
	s.start(t)
	<-goOn
	_ = stopped.Process.Signal(syscall.SIGCONT)
	until(t, "three quarters are handled", handled(3, 4))
	kill()
	queue := s.client("orders")
	until(t, "the queue is empty", func() bool {
		p, err := queue.GetProperties(t.Context(), nil)
		return err == nil && *p.ApproximateMessagesCount == 0
	})
	for _, cmd := range s.running {
		_ = cmd.Process.Signal(os.Interrupt)
	}
	s.all.Wait()
}
