package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/aztest/emulator"
)

// binaries is the variable with the folder of what scripts/cluster has built.
const binaries = "AZCONC_CLUSTER"

func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != inNamespace && os.Args[1] != candidate {
		os.Exit(m.Run())
	}
	become := map[string]func(args []string) error{inNamespace: become, candidate: stand}[os.Args[1]]
	if err := become(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// cluster is a control plane with nodes and a storage account.
type cluster struct {
	*fleet
	account string // a connection string
	table   string // what came of the scenes
}

func newCluster(t *testing.T) *cluster {
	bin := os.Getenv(binaries)
	if bin == "" {
		t.Skip("SKIP: there is no control plane: scripts/cluster builds it, and runs this test")
	}
	server, err := emulator.Start(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	p := startPlane(t, bin)
	f := &fleet{plane: p, effects: filepath.Join(p.dir, "effects"), nodes: map[string]*node{}, pods: map[types.UID]*pod{}, started: map[string]int{}, peak: map[string]int{}}
	p.write("effects", "")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(p.dir, "azconc"), "../../azconc")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Cleanup(func() {
		for _, n := range f.nodes {
			n.lose()
		}
		logs, _ := filepath.Glob(filepath.Join(p.dir, "*.pods.log"))
		for _, log := range logs {
			p.tail(log)
		}
	})
	f.boot("node-0")
	f.boot("node-1")
	c := &cluster{fleet: f, account: server.ConnectionString(), table: "\n" +
		"| scene | wanted | handled | twice, killed in between | twice, otherwise | kills | pods | at most | at the end |\n" +
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|\n"}
	c.apply(fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: storage}, stringData: {connection-string: %q}}", c.account))
	for _, name := range []string{"jobs", "election"} {
		blobs, err := container.NewClientFromConnectionString(c.account, name, nil)
		if err == nil {
			_, err = blobs.Create(t.Context(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// consume applies what azconc prints for a consumer whose handler takes so many seconds, with the intervals of a test.
func (c *cluster) consume(queue, manifest, image string, seconds float64, flags ...string) {
	c.t.Helper()
	var said bytes.Buffer
	handler := fmt.Sprintf(`sleep %g; echo "%s $AZCONC_KEY $HOSTNAME" >>%s`, seconds, queue, c.effects)
	cmd := exec.CommandContext(c.t.Context(), filepath.Join(c.dir, "azconc"), append([]string{"queue", "consume", queue, "--visibility=10s", "--poll=1s",
		"--exec", handler, "--manifest", manifest, "--image", image, "--secret", "storage"}, flags...)...)
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("%v\n%s", err, &said)
	}
	intervals := "pollingInterval: 1"
	if manifest == "keda" {
		intervals += "\n  cooldownPeriod: 5"
	}
	c.apply(strings.Replace(string(text), "pollingInterval: 30", intervals, 1))
}

func (c *cluster) queue(name string) *azqueue.QueueClient {
	c.t.Helper()
	q, err := azqueue.NewQueueClientFromConnectionString(c.account, name, nil)
	if err == nil {
		_, err = q.Create(c.t.Context(), nil)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return q
}

// send sends messages with the ids 0 to n-1, and each tenth one twice.
func (c *cluster) send(queue string, n int) {
	c.t.Helper()
	producer, err := idempotent.NewProducer(c.queue(queue), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	var all sync.WaitGroup
	for sender := range 8 {
		all.Go(func() {
			for i := sender; i < n; i += 8 {
				for range 1 + (i%10)/9 {
					if _, err := producer.Send(c.t.Context(), idempotent.Outgoing{ID: fmt.Sprint(i), Body: []byte("{}")}); err != nil {
						c.t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
}

// lines returns what is in the file of the effects.
func (c *cluster) lines() []string {
	c.t.Helper()
	data, err := os.ReadFile(c.effects)
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.Split(string(data), "\n")
}

func same(got, want int) error {
	if got != want {
		return fmt.Errorf("%d, want %d", got, want)
	}
	return nil
}

// reaches waits until a queue's messages have so many effects.
func (c *cluster) reaches(queue string, effects int) {
	c.t.Helper()
	until(c.t, 10*time.Minute, fmt.Sprintf("%d effects of %s", effects, queue), func(context.Context) error {
		return same(min(judge(c.lines(), queue).effects, effects), effects)
	})
}

// scaled waits until so many pods of an app run.
func (c *cluster) scaled(app string, pods int) {
	c.t.Helper()
	until(c.t, 3*time.Minute, fmt.Sprintf("%d pods of %s", pods, app), func(context.Context) error {
		return same(len(c.running(app)), pods)
	})
}

// handled waits until all messages of a queue are handled, copies too, and so many pods are left, judges, and adds a row to the table.
func (c *cluster) handled(scene, queue string, messages, kills, pods int) {
	c.t.Helper()
	c.reaches(queue, messages)
	left := func(queue *azqueue.QueueClient) error {
		p, err := queue.GetProperties(c.t.Context(), nil)
		if err != nil {
			return err
		}
		return same(int(*p.ApproximateMessagesCount), 0)
	}
	until(c.t, 10*time.Minute, "no message in "+queue, func(context.Context) error { return left(c.queue(queue)) })
	c.scaled(queue, pods)
	if err := left(c.queue(queue + "-poison")); err != nil {
		c.t.Errorf("poison messages of %s: %v", queue, err)
	}
	c.done(scene, queue, messages, kills, judge(c.lines(), queue))
}

// done adds a row to the table, and fails if it is not as it should be.
func (c *cluster) done(scene, app string, wanted, kills int, v verdict) {
	c.t.Helper()
	if v.effects != wanted || v.unexplained != 0 {
		c.t.Errorf("%s: %+v of %d", scene, v, wanted)
	}
	left := len(c.running(app))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table += fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %d | %d |\n",
		scene, wanted, v.effects, v.again, v.unexplained, kills, c.started[app], c.peak[app], left)
}

// drain does what kubectl drain does: no new pods, and an eviction for each that is there.
func (c *cluster) drain(name string) {
	c.t.Helper()
	_, err := c.client.CoreV1().Nodes().Patch(c.t.Context(), name, types.MergePatchType, []byte(`{"spec": {"unschedulable": true}}`), metav1.PatchOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	all, err := c.client.CoreV1().Pods("default").List(c.t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, o := range all.Items {
		if o.Status.Phase == corev1.PodRunning {
			if err := c.client.PolicyV1().Evictions("default").Evict(c.t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}); err != nil {
				c.t.Error(err)
			}
		}
	}
}
