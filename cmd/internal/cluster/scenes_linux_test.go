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
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/leaderelection"

	azclientgo "github.com/azconc/azconc/pkg/adapters/clientgo"
)

// TestACluster plays the scenes one after the other, and CronJobs beside them. With -short it has fewer messages and kills, and
// no schedule is missed.
func TestACluster(t *testing.T) {
	c := newCluster(t)
	defer func() { t.Logf("\n%s", table(c.rows)) }()
	controllers, operator := c.p.controllers(), c.p.operator()
	messages, kills := 10_000, 50
	if testing.Short() {
		messages, kills = 300, 3
	}
	c.schedule()

	c.consume("orders", "keda-job", "orders:7", 0.1)
	c.send("orders", 200)
	c.reaches("orders", 200)
	c.scaled("orders", 0)
	c.empty("orders")
	c.done("ScaledJob, 0 → N → 0", "orders", 200, 0)

	c.consume("storm", "keda-job", "storm:7", 0.05, "--concurrency=2")
	c.send("storm", messages)
	killed := 0
	for i := range kills {
		c.reaches("storm", (i+1)*messages/(kills+1))
		switch {
		case i%10 == 1: // a node, with all that runs on it
			c.scaledUp("storm")
			lost := c.nodes[0]
			killed += lost.lose()
			c.nodes = []*node{c.nodes[1], c.boot(lost.name)}
		case i%10 == 2:
			kill(operator)
			operator = c.p.operator()
			killed++
		default:
			killed += c.killOne("storm")
		}
	}
	c.reaches("storm", messages)
	c.scaled("storm", 0)
	c.empty("storm")
	c.done("ScaledJob, storm of kills", "storm", messages, killed)

	c.consume("rollout", "keda", "rollout:7", 0.3, "--max-replicas=6")
	c.scaled("rollout", 0)
	c.send("rollout", 400)
	c.reaches("rollout", 100)
	c.consume("rollout", "keda", "rollout:8", 0.3, "--max-replicas=6")
	c.reaches("rollout", 250)
	c.drain(c.nodes[0])
	c.reaches("rollout", 400)
	c.scaled("rollout", 0)
	c.cordon(c.nodes[0], false)
	c.empty("rollout")
	c.done("Deployment, 0 → N → 0, a rollout and a drain", "rollout", 400, 0)

	c.consume("steady", "keda", "steady:7", 0.5, "--min-replicas=1")
	c.scaled("steady", 1)
	c.send("steady", 600)
	c.scaled("steady", 10)
	c.reaches("steady", 600)
	c.scaled("steady", 1)
	c.empty("steady")
	c.done("Deployment, 1 → 10 → 1", "steady", 600, 0)

	c.election()

	missed := 0
	if !testing.Short() {
		before := len(c.slots())
		kill(controllers)
		gone := time.Now()
		until(t, 4*time.Minute, "three minutes without a controller", func(context.Context) bool { return time.Since(gone) > 3*time.Minute })
		if missed = 2; len(c.slots()) > before+1 {
			t.Errorf("%d slots were completed without a controller", len(c.slots())-before)
		}
		controllers = c.p.controllers()
	}
	c.scheduled(missed)
}

// scaledUp waits until some pods of a queue run.
func (c *cluster) scaledUp(queue string) {
	c.t.Helper()
	until(c.t, 3*time.Minute, "a pod of "+queue, func(context.Context) bool { return len(c.running(queue)) > 0 })
}

// killOne kills a pod of a queue, by KILL.
func (c *cluster) killOne(queue string) int {
	c.t.Helper()
	until(c.t, 3*time.Minute, "a pod to kill", func(context.Context) bool {
		pods := c.running(queue)
		return len(pods) > 0 && c.kill(pods[len(pods)/2])
	})
	return 1
}

// jobs are CronJobs of one schedule, which stand for the schedulers of three clusters.
var jobs = []string{"report-a", "report-b", "report-c"}

// schedule creates the CronJobs, as .github/docs/clusters.md has them.
func (c *cluster) schedule() {
	c.t.Helper()
	c.container("jobs")
	command := `exec azconc once run jobs/report --slot '* * * * *' --catch-up all --at "$(date -u -d "@$((${JOB##*-} * 60))" +%Y-%m-%dT%H:%MZ)" ` +
		`-- sh -c 'echo "slots $AZCONC_ONCE_SLOT $HOSTNAME" >>` + c.effects + `'`
	for _, name := range jobs {
		c.p.apply(fmt.Sprintf(`apiVersion: batch/v1
kind: CronJob
metadata: {name: %s}
spec:
  schedule: '* * * * *'
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
`, name, strings.ReplaceAll(command, "$", "$$")))
	}
}

// slots returns the slots that are completed, in order.
func (c *cluster) slots() (slots []string) {
	for _, line := range c.lines() {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "slots" {
			slots = append(slots, f[1])
		}
	}
	slices.Sort(slots)
	return slices.Compact(slots)
}

// scheduled ends the CronJobs after one more slot, and judges all from the first one on.
func (c *cluster) scheduled(missed int) {
	c.t.Helper()
	before := len(c.slots())
	until(c.t, 3*time.Minute, "more slots", func(context.Context) bool { return len(c.slots()) > before+missed })
	for _, name := range jobs {
		if _, err := c.p.client.BatchV1().CronJobs("default").Patch(c.t.Context(), name, types.MergePatchType, []byte(`{"spec": {"suspend": true}}`), metav1.PatchOptions{}); err != nil {
			c.t.Fatal(err)
		}
	}
	until(c.t, 2*time.Minute, "the last jobs", func(ctx context.Context) bool {
		all, err := c.p.client.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{})
		return err == nil && !slices.ContainsFunc(all.Items, func(j batchv1.Job) bool {
			return strings.HasPrefix(j.Name, "report-") && !slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
				return c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed
			})
		})
	})
	slots := c.slots()
	first, err1 := time.Parse(time.RFC3339, slots[0])
	last, err2 := time.Parse(time.RFC3339, slots[len(slots)-1])
	if err := errors.Join(err1, err2); err != nil {
		c.t.Fatal(err)
	}
	c.done(fmt.Sprintf("three CronJobs, %d schedules missed", missed), "slots", int(last.Sub(first).Minutes())+1, 0)
}

// candidate is the first argument of this program where it is to stand for election.
const candidate = "stand-for-election"

// election kills the leader of three candidates by KILL, and its successor by TERM.
func (c *cluster) election() {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	c.container("election")
	c.p.apply(fmt.Sprintf(`apiVersion: apps/v1
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
	led := func(n int) (name string) {
		until(c.t, time.Minute, fmt.Sprintf("leader %d", n), func(context.Context) bool {
			leaders, _ := terms(c.lines())
			if len(leaders) == n {
				name = leaders[n-1]
			}
			return name != ""
		})
		return name
	}
	leads := led(1)
	for _, p := range c.running("leader") {
		if p.Name == leads {
			c.kill(p)
		}
	}
	if err := c.p.client.CoreV1().Pods("default").Delete(c.t.Context(), led(2), metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	led(3)
	c.scaled("leader", 3)
	leaders, overlaps := terms(c.lines())
	if overlaps != 0 {
		c.t.Errorf("led by %q: %d terms began while another lasted", leaders, overlaps)
	}
	c.mu.Lock()
	c.rows = append(c.rows, row{scene: "election, terms", wanted: 3, verdict: verdict{effects: len(leaders), unexplained: overlaps}, kills: 1, pods: c.started["leader"], peak: c.peak["leader"], atEnd: 3})
	c.mu.Unlock()
	if err := c.p.client.AppsV1().Deployments("default").Delete(c.t.Context(), "leader", metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// stand runs for the lead until TERM, and appends a line to a file when it begins to lead and when it ends.
func stand(effects string) error {
	name := os.Getenv("HOSTNAME")
	blob, err := blockblob.NewClientFromConnectionString(os.Getenv("AZURE_STORAGE_CONNECTION_STRING"), "election", "leader", nil)
	if err != nil {
		return err
	}
	lock, err := azclientgo.New(blob, fmt.Sprint(name, "_", time.Now().UnixNano()), nil)
	if err != nil {
		return err
	}
	note := func(what string) {
		file, err := os.OpenFile(effects, os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintf(file, "leader %s %s\n", what, name)
			file.Close()
		}
		if err != nil {
			panic(err) // it must not lead unseen
		}
	}
	term, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	run, end := context.WithCancel(context.Background()) // the election ends after the work
	defer end()
	var leads sync.Mutex // held while this candidate does the leader's work
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
				if term.Err() != nil {
					return
				}
				note("begin")
				select {
				case <-lead.Done():
				case <-term.Done():
				}
				note("end")
			},
			OnStoppedLeading: func() {},
		},
	})
	if term.Err() == nil {
		return errors.New("the lead was lost")
	}
	return nil
}
