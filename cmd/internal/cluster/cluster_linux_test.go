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

// binaries names the folder with what scripts/cluster has built.
const binaries = "AZCONC_CLUSTER"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == inNamespace {
		fmt.Fprintln(os.Stderr, become(os.Args[2:]))
		os.Exit(127)
	}
	if len(os.Args) > 2 && os.Args[1] == candidate {
		if err := stand(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// cluster is a control plane with nodes and a storage account.
type cluster struct {
	*fleet
	account string // a connection string
	nodes   []*node
	rows    []row
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
	c := &cluster{account: server.ConnectionString(), fleet: &fleet{
		t: t, p: p, effects: filepath.Join(p.dir, "effects"), pods: map[types.UID]*pod{}, started: map[string]int{}, peak: map[string]int{}}}
	c.note("begin")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(p.dir, "azconc"), ".")
	build.Dir = "../../azconc"
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	p.apply(fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: storage}, stringData: {connection-string: %q}}", c.account))
	t.Cleanup(func() {
		for _, n := range c.nodes {
			n.lose()
		}
		logs, _ := filepath.Glob(filepath.Join(p.dir, "*.pods.log"))
		for _, log := range logs {
			if t.Failed() {
				t.Logf("%s: %s", filepath.Base(log), tail(log))
			}
		}
	})
	c.nodes = []*node{c.boot("node-0"), c.boot("node-1")}
	return c
}

// azconc runs the command line, and returns what it prints.
func (c *cluster) azconc(args ...string) string {
	c.t.Helper()
	var said bytes.Buffer
	cmd := exec.CommandContext(c.t.Context(), filepath.Join(c.p.dir, "azconc"), args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "AZURE_STORAGE_CONNECTION_STRING="+c.account), &said
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("azconc %q: %v\n%s", args, err, &said)
	}
	return string(out)
}

// consume applies what azconc prints for a consumer whose handler takes so many seconds, with the intervals of a test.
func (c *cluster) consume(queue, manifest, image string, seconds float64, flags ...string) {
	c.t.Helper()
	handler := fmt.Sprintf(`sleep %g; echo "%s $AZCONC_KEY $HOSTNAME" >>%s`, seconds, queue, c.effects)
	text := c.azconc(append([]string{"queue", "consume", queue, "--create", "--visibility=10s", "--poll=1s", "--exec", handler,
		"--manifest", manifest, "--image", image, "--secret", "storage"}, flags...)...)
	intervals := "pollingInterval: 1"
	if manifest == "keda" {
		intervals += "\n  cooldownPeriod: 5"
	}
	c.p.apply(strings.Replace(text, "pollingInterval: 30", intervals, 1))
}

// send sends messages with the ids 0 to n-1, and each tenth one twice.
func (c *cluster) send(queue string, n int) {
	c.t.Helper()
	q, err := azqueue.NewQueueClientFromConnectionString(c.account, queue, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := q.Create(c.t.Context(), nil); err != nil {
		c.t.Fatal(err)
	}
	producer, err := idempotent.NewProducer(q, nil)
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

// container creates a container of blobs.
func (c *cluster) container(name string) {
	c.t.Helper()
	blobs, err := container.NewClientFromConnectionString(c.account, name, nil)
	if err == nil {
		_, err = blobs.Create(c.t.Context(), nil)
	}
	if err != nil {
		c.t.Fatal(err)
	}
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

// reaches waits until a queue's messages have so many effects.
func (c *cluster) reaches(queue string, effects int) {
	c.t.Helper()
	until(c.t, 10*time.Minute, fmt.Sprintf("%d effects of %s", effects, queue), func(context.Context) bool {
		return judge(c.lines(), queue).effects >= effects
	})
}

// scaled waits until so many pods of a queue run.
func (c *cluster) scaled(queue string, pods int) {
	c.t.Helper()
	until(c.t, 3*time.Minute, fmt.Sprintf("%d pods of %s", pods, queue), func(context.Context) bool { return len(c.running(queue)) == pods })
}

// done judges a scene, and adds its row to the table.
func (c *cluster) done(scene, queue string, wanted, kills int) {
	c.t.Helper()
	r := row{scene: scene, wanted: wanted, verdict: judge(c.lines(), queue), kills: kills, atEnd: len(c.running(queue))}
	c.mu.Lock()
	r.pods, r.peak = c.started[queue], c.peak[queue]
	c.mu.Unlock()
	c.rows = append(c.rows, r)
	if r.verdict.effects != wanted || r.verdict.unexplained != 0 {
		c.t.Errorf("%s: %+v of %d", scene, r.verdict, wanted)
	}
}

// empty fails unless a queue and its poison queue are.
func (c *cluster) empty(queue string) {
	c.t.Helper()
	for _, name := range []string{queue, queue + "-poison"} {
		q, err := azqueue.NewQueueClientFromConnectionString(c.account, name, nil)
		if err != nil {
			c.t.Fatal(err)
		}
		if p, err := q.GetProperties(c.t.Context(), nil); err == nil && *p.ApproximateMessagesCount != 0 {
			c.t.Errorf("%d messages are left in %s", *p.ApproximateMessagesCount, name)
		}
	}
}

// drain does what kubectl drain does: no new pods, and an eviction for each that is there.
func (c *cluster) drain(n *node) {
	c.t.Helper()
	c.cordon(n, true)
	all, err := c.p.client.CoreV1().Pods("default").List(c.t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.name})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, o := range all.Items {
		if o.Status.Phase == corev1.PodRunning {
			if err := c.p.client.PolicyV1().Evictions("default").Evict(c.t.Context(), &policyv1.Eviction{ObjectMeta: o.ObjectMeta}); err != nil {
				c.t.Error(err)
			}
		}
	}
}

func (c *cluster) cordon(n *node, unschedulable bool) {
	c.t.Helper()
	patch := fmt.Appendf(nil, `{"spec": {"unschedulable": %v}}`, unschedulable)
	if _, err := c.p.client.CoreV1().Nodes().Patch(c.t.Context(), n.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		c.t.Fatal(err)
	}
}
