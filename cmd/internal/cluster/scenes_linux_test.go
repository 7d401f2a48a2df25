package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"

	azclientgo "github.com/azconc/azconc/pkg/adapters/clientgo"
)

// TestACluster plays the scenes one after the other, and CronJobs beside them. With -short it has fewer messages and kills, and
// no schedule is missed.
func TestACluster(t *testing.T) {
	c := newCluster(t)
	defer func() { t.Log(c.table) }()
	controllers := c.controllers()
	c.schedule(false)

	c.consume("orders", "keda-job", "orders:7", 0.1)
	c.send("orders", 200)
	c.handled("ScaledJob, 0 → N → 0", "orders", 200, 0, 0)

	c.storm()

	c.consume("rollout", "keda", "rollout:7", 0.3, "--max-replicas=6")
	c.scaled("rollout", 1)
	c.scaled("rollout", 0)
	c.send("rollout", 400)
	c.reaches("rollout", 100)
	c.consume("rollout", "keda", "rollout:8", 0.3, "--max-replicas=6")
	c.reaches("rollout", 250)
	c.drain("node-0") // for the rest of the test
	c.handled("Deployment, 0 → N → 0, a rollout and a drain", "rollout", 400, 0, 0)

	c.consume("steady", "keda", "steady:7", 0.5, "--min-replicas=1")
	c.scaled("steady", 1)
	c.send("steady", 600)
	c.scaled("steady", 10)
	c.handled("Deployment, 1 → 10 → 1", "steady", 600, 0, 1)

	c.election()
	c.group()

	missed := 0
	if !testing.Short() {
		missed = 2
		end(controllers)
		gone := time.Now()
		until(t, 4*time.Minute, "two schedules without a controller", func(context.Context) error {
			return same(min(int(time.Since(gone).Minutes()), missed+1), missed+1)
		})
		c.controllers()
	}
	c.scheduled(missed)
}

// storm kills pods, nodes and KEDA's operator while a ScaledJob works.
func (c *cluster) storm() {
	messages, kills := 10_000, 50
	if testing.Short() {
		messages, kills = 300, 3
	}
	c.consume("storm", "keda-job", "storm:7", 0.05, "--concurrency=2")
	c.send("storm", messages)
	killed := 0
	for i := range kills {
		c.reaches("storm", (i+1)*messages/(kills+1))
		var victim *pod
		until(c.t, 3*time.Minute, "a pod to kill", func(context.Context) error {
			pods := c.running("storm")
			if len(pods) > 0 {
				victim = pods[0]
			}
			return same(min(len(pods), 1), 1)
		})
		switch i % 10 {
		case 1:
			killed += victim.node.lose()
			c.boot(victim.node.name)
		case 2:
			end(c.operator)
			c.startOperator()
			killed++
		default:
			killed += c.kill(victim)
		}
	}
	c.handled("ScaledJob, storm of kills", "storm", messages, killed, 0)
}

// schedule creates three CronJobs for the same slots, with the command of .github/docs/clusters.md, or suspends them.
func (c *cluster) schedule(suspend bool) {
	c.t.Helper()
	command := `exec azconc once run jobs/report --slot '* * * * *' --catch-up all --at "$(date -u -d "@$((${JOB##*-} * 60))" +%Y-%m-%dT%H:%MZ)" ` +
		`-- sh -c 'echo "slots $AZCONC_ONCE_SLOT $HOSTNAME" >>` + c.effects + `'`
	for _, name := range []string{"report-a", "report-b", "report-c"} {
		c.apply(fmt.Sprintf(`apiVersion: batch/v1
kind: CronJob
metadata: {name: %s}
spec:
  schedule: '* * * * *'
  suspend: %v
  jobTemplate:
    spec:
      template:
        metadata: {labels: {app: slots}}
        spec:
          restartPolicy: Never
          containers:
            - name: report
              image: report:7
              command: [sh, -c, %q]
              env:
                - {name: AZURE_STORAGE_CONNECTION_STRING, valueFrom: {secretKeyRef: {name: storage, key: connection-string}}}
                - {name: JOB, valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-name']"}}}
`, name, suspend, strings.ReplaceAll(command, "$", "$$")))
	}
}

// scheduled waits for one more slot than those that were missed, ends the CronJobs, and judges all slots from the first one on.
func (c *cluster) scheduled(missed int) {
	c.t.Helper()
	c.reaches("slots", judge(c.lines(), "slots").effects+missed+1)
	c.schedule(true)
	until(c.t, 3*time.Minute, "the last jobs", func(ctx context.Context) error {
		all, err := c.client.BatchV1().CronJobs("default").List(ctx, metav1.ListOptions{})
		for _, job := range all.Items {
			err = errors.Join(err, same(len(job.Status.Active), 0))
		}
		return err
	})
	var slots []string
	for _, line := range c.lines() {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "slots" {
			slots = append(slots, f[1])
		}
	}
	first, err1 := time.Parse(time.RFC3339, slices.Min(slots))
	last, err2 := time.Parse(time.RFC3339, slices.Max(slots))
	if err := errors.Join(err1, err2); err != nil {
		c.t.Fatal(err)
	}
	c.done(fmt.Sprintf("three CronJobs, %d schedules missed", missed), "slots", int(last.Sub(first).Minutes())+1, 0, judge(c.lines(), "slots"))
}

// candidate is the first argument of this program where it is to stand for election.
const candidate = "stand-for-election"

// election kills the leader of three candidates by KILL, and deletes the pod of its successor.
func (c *cluster) election() {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	c.apply(fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: leader}
spec:
  replicas: 3
  selector: {matchLabels: {app: leader}}
  template:
    metadata: {labels: {app: leader}}
    spec:
      containers:
        - name: candidate
          image: candidate:7
          command: [%q, %q, %q]
          env: [{name: AZURE_STORAGE_CONNECTION_STRING, valueFrom: {secretKeyRef: {name: storage, key: connection-string}}}]
`, self, candidate, c.effects))
	c.scaled("leader", 3)
	leader := func(term int) string {
		c.t.Helper()
		var leaders []string
		until(c.t, time.Minute, fmt.Sprintf("term %d", term), func(context.Context) error {
			leaders, _ = terms(c.lines())
			return same(len(leaders), term)
		})
		return leaders[term-1]
	}
	first, killed := leader(1), 0
	for _, p := range c.running("leader") {
		if p.Name == first {
			killed += c.kill(p)
		}
	}
	if err := c.client.CoreV1().Pods("default").Delete(c.t.Context(), leader(2), metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	leader(3)
	c.scaled("leader", 3)
	leaders, overlaps := terms(c.lines())
	c.done("election, terms", "leader", 3, killed, verdict{effects: len(leaders), unexplained: overlaps})
}

// stand runs for the lead until TERM, and appends a line to a file when it begins to lead and when it ends.
func stand(args []string) error {
	name := os.Getenv("HOSTNAME")
	blob, err := blockblob.NewClientFromConnectionString(os.Getenv("AZURE_STORAGE_CONNECTION_STRING"), "election", "leader", nil)
	if err != nil {
		return err
	}
	lock, err := azclientgo.New(blob, fmt.Sprint(name, "_", time.Now().UnixNano()), nil)
	if err != nil {
		return err
	}
	term, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	run, end := context.WithCancel(context.Background())
	defer end()
	var leads sync.Mutex // held while this candidate does the leader's work, which ends before the lead is handed over
	context.AfterFunc(term, func() {
		leads.Lock()
		end()
	})
	leaderelection.RunOrDie(run, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(lead context.Context) {
				leads.Lock()
				defer leads.Unlock()
				if err := note(args[0], "leader begin "+name); err != nil {
					panic(err) // it must not lead unseen
				}
				select {
				case <-lead.Done():
				case <-term.Done():
				}
				_ = note(args[0], "leader end "+name)
			},
			OnStoppedLeading: func() {},
		},
	})
	if term.Err() == nil {
		return errors.New("the lead was lost")
	}
	return nil
}
