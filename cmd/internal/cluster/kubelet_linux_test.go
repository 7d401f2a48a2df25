package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// fleet is the nodes, and what they know together.
type fleet struct {
	*plane
	effects string // the file of the effects and the kills

	mu        sync.Mutex
	nodes     map[string]*node
	pods      map[types.UID]*pod
	started   map[string]int // pods, by the label app
	peak      map[string]int // how many ran at a time
	addresses int
}

// node is a kubelet: it runs the pods that the scheduler gives it.
type node struct {
	*fleet
	name  string
	ctx   context.Context // ends when the node crashes
	crash context.CancelFunc
	all   sync.WaitGroup
}

// pod is a pod on a node.
type pod struct {
	*corev1.Pod
	app  string
	node *node
	ip   string
	end  context.Context // ends when the pod is to be deleted, or the node crashes
	stop context.CancelFunc

	cmd    *exec.Cmd // guarded by fleet.mu; nil while nothing runs
	exited chan struct{}
}

// boot registers a node, and runs its pods until it crashes.
func (f *fleet) boot(name string) {
	n := &node{fleet: f, name: name}
	n.ctx, n.crash = context.WithCancel(context.Background())
	capacity := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("500")}
	if _, err := f.client.CoreV1().Nodes().Create(n.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	mine := cache.NewListWatchFromClient(f.client.CoreV1().RESTClient(), "pods", "", fields.OneTermEqualSelector("spec.nodeName", name))
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: mine, ObjectType: &corev1.Pod{}, Handler: cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { n.sync(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { n.sync(o.(*corev1.Pod)) },
	}})
	n.all.Go(func() { informer.RunWithContext(n.ctx) })
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[name] = n
}

// lose ends a node as a power failure does, with all its processes at once. The node is gone from the API until it boots again, and
// then finds the pods that it had.
func (n *node) lose() (kills int) {
	n.crash()
	n.mu.Lock()
	var lost []*pod
	for id, p := range n.pods {
		if p.node == n {
			lost = append(lost, p)
			delete(n.pods, id)
		}
	}
	n.mu.Unlock()
	for _, p := range lost {
		kills += n.kill(p)
	}
	n.all.Wait()
	_ = n.client.CoreV1().Nodes().Delete(context.Background(), n.name, metav1.DeleteOptions{})
	return kills
}

// kill ends the processes of a pod by KILL, and returns 1 if it had some.
func (f *fleet) kill(p *pod) int {
	f.mu.Lock()
	cmd, exited := p.cmd, p.exited
	f.mu.Unlock()
	if cmd == nil {
		return 0
	}
	_ = cmd.Process.Kill()
	<-exited
	if err := note(f.effects, "killed "+p.Name); err != nil {
		f.t.Error(err)
	}
	return 1
}

// running returns the pods of an app whose process runs.
func (f *fleet) running(app string) []*pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.alive(app)
}

// alive is running for those who hold mu.
func (f *fleet) alive(app string) (found []*pod) {
	for _, p := range f.pods {
		if p.app == app && p.cmd != nil {
			found = append(found, p)
		}
	}
	return found
}

// sync does what a pod's state in the API asks for.
func (n *node) sync(o *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, known := n.pods[o.UID]
	switch {
	case n.ctx.Err() != nil:
	case known && o.DeletionTimestamp != nil:
		p.stop()
	case known:
	case o.DeletionTimestamp != nil:
		n.all.Go(func() { n.remove(o) })
	case o.Status.Phase == corev1.PodRunning && o.Spec.RestartPolicy != corev1.RestartPolicyAlways: // it was lost with the node
		n.all.Go(func() { n.report(&pod{Pod: o}, corev1.PodFailed, false) })
	case o.Status.Phase == corev1.PodPending || o.Status.Phase == corev1.PodRunning:
		n.addresses++
		p = &pod{Pod: o, app: o.Labels["app"], node: n, ip: fmt.Sprintf("127.9.%d.%d", n.addresses/250, n.addresses%250+1)}
		p.end, p.stop = context.WithCancel(n.ctx)
		n.pods[o.UID] = p
		n.started[p.app]++
		n.all.Go(func() { n.run(p) })
	}
}

func (n *node) remove(o *corev1.Pod) {
	_ = n.client.CoreV1().Pods(o.Namespace).Delete(n.ctx, o.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(o.UID))})
}

// run runs the container of a pod, again and again if its policy says so, until the pod is deleted or the node crashes.
func (n *node) run(p *pod) {
	always := p.Spec.RestartPolicy == corev1.RestartPolicyAlways
	for again := true; again && p.end.Err() == nil; again = always {
		if err := n.launch(p); n.ctx.Err() == nil && err != nil {
			n.t.Errorf("pod %s: %v", p.Name, err)
		}
		if p.cmd == nil {
			break
		}
		n.watch(p)
		phase := corev1.PodFailed
		if p.cmd.ProcessState.Success() {
			phase = corev1.PodSucceeded
		}
		n.mu.Lock()
		p.cmd = nil
		n.mu.Unlock()
		if !always {
			n.report(p, phase, false)
		}
	}
	<-p.end.Done()
	n.remove(p.Pod)
}

// watch reports a process as running, and as ready while its probe succeeds, and returns when it has ended.
func (n *node) watch(p *pod) {
	probe := p.Spec.Containers[0].ReadinessProbe
	ready := probe == nil
	n.report(p, corev1.PodRunning, ready)
	for tick := time.NewTicker(500 * time.Millisecond); ; {
		select {
		case <-p.exited:
			return
		case <-tick.C:
			if now := probe == nil || n.probe(p, probe.HTTPGet); now != ready {
				ready = now
				n.report(p, corev1.PodRunning, ready)
			}
		case <-p.end.Done():
			if n.ctx.Err() == nil { // otherwise it is killed with the node
				_ = p.cmd.Process.Signal(syscall.SIGTERM)
			}
			select {
			case <-p.exited:
			case <-time.After(time.Duration(*p.Spec.TerminationGracePeriodSeconds) * time.Second):
				n.t.Errorf("pod %s did not end within its grace", p.Name)
				n.kill(p)
			}
			return
		}
	}
}

func (n *node) probe(p *pod, get *corev1.HTTPGetAction) bool {
	client := http.Client{Timeout: time.Second}
	response, err := client.Get(fmt.Sprintf("http://%s:%d%s", p.ip, get.Port.IntValue(), get.Path))
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// report writes the status of a pod, unless the node has crashed or the pod is gone.
func (n *node) report(p *pod, phase corev1.PodPhase, ready bool) {
	condition := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	if ready {
		condition.Status = corev1.ConditionTrue
	}
	patch, err := json.Marshal(map[string]any{"status": corev1.PodStatus{Phase: phase, PodIP: p.ip, Conditions: []corev1.PodCondition{condition}}})
	if err != nil {
		n.t.Error(err)
	}
	_, _ = n.client.CoreV1().Pods(p.Namespace).Patch(n.ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
}

// reference is $(NAME), or $$ for a dollar.
var reference = regexp.MustCompile(`\$\$|\$\([A-Za-z_]\w*\)`)

// launch starts the command of a pod's container, as the first process of a namespace: when it ends, all others in it are killed.
func (n *node) launch(p *pod) error {
	c := p.Spec.Containers[0]
	environ := map[string]string{"HOSTNAME": p.Name, "TMPDIR": n.dir, "PATH": n.dir + ":" + os.Getenv("PATH")}
	for _, e := range c.Env {
		environ[e.Name] = e.Value
		if from := e.ValueFrom; from != nil && from.SecretKeyRef != nil {
			secret, err := n.client.CoreV1().Secrets(p.Namespace).Get(n.ctx, from.SecretKeyRef.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			environ[e.Name] = string(secret.Data[from.SecretKeyRef.Key])
		} else if from != nil {
			environ[e.Name] = p.Labels[strings.TrimSuffix(strings.TrimPrefix(from.FieldRef.FieldPath, "metadata.labels['"), "']")]
		}
	}
	args := []string{inNamespace}
	for _, arg := range slices.Concat(c.Command, c.Args) {
		arg = reference.ReplaceAllStringFunc(arg, func(r string) string {
			if r == "$$" {
				return "$"
			}
			return environ[strings.Trim(r, "$()")]
		})
		// Where pods have networks of their own, all of them can listen on one port.
		args = append(args, strings.Replace(arg, "--metrics=:", "--metrics="+p.ip+":", 1))
	}
	log, err := os.OpenFile(filepath.Join(n.dir, p.app+".pods.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = n.dir, log, log
	for name, value := range environ {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.ctx.Err(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	p.cmd, p.exited = cmd, exited
	n.peak[p.app] = max(n.peak[p.app], len(n.alive(p.app)))
	return nil
}

// inNamespace is the first argument of this program where it is to become the first process of a pod.
const inNamespace = "become-the-first-process-of-a-pod"

// become has /proc show the processes of the pod alone, and turns this process into its command.
func become(args []string) error {
	err1 := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	err2 := syscall.Mount("proc", "/proc", "proc", 0, "")
	path, err3 := exec.LookPath(args[0])
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	return syscall.Exec(path, args, os.Environ())
}
