package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
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
	t       *testing.T
	p       *plane
	effects string // the file of the effects and the kills

	mu        sync.Mutex
	pods      map[types.UID]*pod // until they are deleted
	started   map[string]int     // pods, by the label app
	peak      map[string]int     // how many ran at a time
	addresses int
}

// pod is a pod on a node.
type pod struct {
	*corev1.Pod
	app  string
	node *node
	ip   string
	end  context.Context // ends when the pod is to be deleted
	stop context.CancelFunc
	done chan struct{} // closed when nothing of it runs, or will

	process *process // guarded by fleet.mu; nil while none runs
}

// process is a command, and all that it has started.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// node is a kubelet: it runs the pods that the scheduler gives it.
type node struct {
	f     *fleet
	name  string
	ctx   context.Context // ends when the node crashes
	crash context.CancelFunc
	all   sync.WaitGroup
}

const heartbeat = 5 * time.Second

// boot registers a node, and runs its pods until it crashes.
func (f *fleet) boot(name string) *node {
	n := &node{f: f, name: name}
	n.ctx, n.crash = context.WithCancel(context.Background())
	capacity := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("500")}
	ready := func() corev1.NodeStatus {
		return corev1.NodeStatus{Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), Reason: "KubeletReady"}}}
	}
	nodes := f.p.client.CoreV1().Nodes()
	if _, err := nodes.Create(n.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: ready()}, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	n.all.Go(func() {
		for tick := time.NewTicker(heartbeat); n.ctx.Err() == nil; {
			patch, _ := json.Marshal(map[string]any{"status": ready()})
			_, _ = nodes.PatchStatus(n.ctx, name, patch)
			select {
			case <-n.ctx.Done():
			case <-tick.C:
			}
		}
	})
	mine := cache.NewListWatchFromClient(f.p.client.CoreV1().RESTClient(), "pods", "", fields.OneTermEqualSelector("spec.nodeName", name))
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: mine, ObjectType: &corev1.Pod{}, Handler: cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { n.sync(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { n.sync(o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(*corev1.Pod); ok {
				f.mu.Lock()
				delete(f.pods, gone.UID)
				f.mu.Unlock()
			}
		},
	}})
	n.all.Go(func() { informer.RunWithContext(n.ctx) })
	return n
}

// lose ends a node as a power failure does: all its processes at once. The node is gone from the API until it boots again, and then
// finds the pods that it had.
func (n *node) lose() (kills int) {
	n.crash()
	n.f.mu.Lock()
	var lost []*pod
	for id, p := range n.f.pods {
		if p.node == n {
			lost = append(lost, p)
			delete(n.f.pods, id)
		}
	}
	n.f.mu.Unlock()
	for _, p := range lost {
		if n.f.kill(p) {
			kills++
		}
	}
	n.all.Wait()
	_ = n.f.p.client.CoreV1().Nodes().Delete(context.Background(), n.name, metav1.DeleteOptions{})
	return kills
}

// kill ends the processes of a pod by KILL, and reports whether it had some.
func (f *fleet) kill(p *pod) bool {
	f.mu.Lock()
	process := p.process
	f.mu.Unlock()
	if process == nil {
		return false
	}
	process.kill()
	f.note("killed " + p.Name)
	return true
}

// note appends a line to the file of the effects.
func (f *fleet) note(line string) {
	file, err := os.OpenFile(f.effects, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = io.WriteString(file, line+"\n")
		file.Close()
	}
	if err != nil {
		f.t.Error(err)
	}
}

// running returns the pods of an app whose process runs, in a stable order.
func (f *fleet) running(app string) (found []*pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p := range maps.Values(f.pods) {
		if p.app == app && p.process != nil {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *pod) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// sync does what a pod's state in the API asks for.
func (n *node) sync(o *corev1.Pod) {
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	p, known := n.f.pods[o.UID]
	switch {
	case known && o.DeletionTimestamp != nil:
		p.stop()
	case known:
	case o.DeletionTimestamp != nil:
		n.all.Go(func() { n.remove(o) })
	case o.Status.Phase == corev1.PodRunning && o.Spec.RestartPolicy != corev1.RestartPolicyAlways: // its process was lost with the node
		n.all.Go(func() { n.report(&pod{Pod: o}, corev1.PodFailed, 137, 0) })
	case o.Status.Phase == corev1.PodPending || o.Status.Phase == corev1.PodRunning:
		n.f.addresses++
		p := &pod{Pod: o, app: o.Labels["app"], node: n, done: make(chan struct{}), ip: fmt.Sprintf("127.9.%d.%d", n.f.addresses/250, n.f.addresses%250+1)}
		p.end, p.stop = context.WithCancel(n.ctx)
		n.f.pods[o.UID] = p
		n.f.started[p.app]++
		n.all.Go(func() { n.run(p) })
	}
}

func (n *node) remove(o *corev1.Pod) {
	_ = n.f.p.client.CoreV1().Pods(o.Namespace).Delete(n.ctx, o.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(o.UID))})
}

// run runs the container of a pod, again and again if its policy says so, until the pod is deleted or the node crashes.
func (n *node) run(p *pod) {
	defer p.stop()
	always := p.Spec.RestartPolicy == corev1.RestartPolicyAlways
	for restarts := 0; p.end.Err() == nil && (restarts == 0 || always); restarts++ {
		process, err := n.launch(p)
		if n.ctx.Err() != nil {
			break
		}
		if err != nil {
			n.f.t.Errorf("pod %s: %v", p.Name, err)
			n.report(p, corev1.PodFailed, 128, restarts)
			break
		}
		n.wait(p, process, restarts)
		n.f.mu.Lock()
		p.process = nil
		n.f.mu.Unlock()
		if code := process.cmd.ProcessState.ExitCode(); !always && code == 0 {
			n.report(p, corev1.PodSucceeded, 0, restarts)
		} else if !always {
			n.report(p, corev1.PodFailed, (code+256)%256, restarts)
		}
	}
	<-p.end.Done()
	n.remove(p.Pod)
}

// wait reports a process as running, and ready when its probe succeeds, and returns when it has ended.
func (n *node) wait(p *pod, process *process, restarts int) {
	probe, ready := p.Spec.Containers[0].ReadinessProbe, false
	n.report(p, corev1.PodRunning, readyIf(probe == nil), restarts)
	for tick := time.NewTicker(500 * time.Millisecond); ; {
		select {
		case <-process.exited:
			return
		case <-tick.C:
			if now := probe != nil && n.probe(p, probe.HTTPGet); now != ready {
				ready = now
				n.report(p, corev1.PodRunning, readyIf(ready), restarts)
			}
		case <-p.end.Done():
			if n.ctx.Err() == nil {
				_ = process.cmd.Process.Signal(syscall.SIGTERM)
			} // otherwise it is killed with the node
			select {
			case <-process.exited:
			case <-time.After(time.Duration(*p.Spec.TerminationGracePeriodSeconds) * time.Second):
				n.f.t.Errorf("pod %s did not end within its grace", p.Name)
				n.f.kill(p)
			}
			return
		}
	}
}

func (n *node) probe(p *pod, get *corev1.HTTPGetAction) bool {
	ctx, cancel := context.WithTimeout(n.ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s:%d%s", p.ip, get.Port.IntValue(), get.Path), nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// notReady and isReady stand for the exit code of a process that runs.
const (
	notReady = -1
	isReady  = -2
)

func readyIf(ok bool) int {
	if ok {
		return isReady
	}
	return notReady
}

// report writes the status of a pod, unless the node has crashed.
func (n *node) report(p *pod, phase corev1.PodPhase, code, restarts int) {
	ready, state := corev1.ConditionFalse, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	if code == isReady {
		ready = corev1.ConditionTrue
	}
	if code >= 0 {
		state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(code), FinishedAt: metav1.Now()}}
	}
	now := metav1.Now()
	status := corev1.PodStatus{Phase: phase, StartTime: &now, PodIP: p.ip,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: now}, {Type: corev1.ContainersReady, Status: ready, LastTransitionTime: now}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name, Image: p.Spec.Containers[0].Image, Ready: code == isReady,
			RestartCount: int32(restarts), State: state}}}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		n.f.t.Error(err)
	}
	for range 10 { // its pod may be gone, and then it stays so
		if _, err = n.f.p.client.CoreV1().Pods(p.Namespace).Patch(n.ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err == nil {
			return
		}
	}
}

// reference is $(NAME), or $$ for a dollar.
var reference = regexp.MustCompile(`\$\$|\$\([A-Za-z_]\w*\)`)

// launch starts the command of a pod's container.
func (n *node) launch(p *pod) (*process, error) {
	c := p.Spec.Containers[0]
	environ := map[string]string{"HOSTNAME": p.Name, "TMPDIR": n.f.p.dir, "PATH": n.f.p.dir + ":" + os.Getenv("PATH")}
	for _, e := range c.Env {
		switch from := e.ValueFrom; {
		case from == nil:
			environ[e.Name] = e.Value
		case from.SecretKeyRef != nil:
			secret, err := n.f.p.client.CoreV1().Secrets(p.Namespace).Get(n.ctx, from.SecretKeyRef.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			environ[e.Name] = string(secret.Data[from.SecretKeyRef.Key])
		case from.FieldRef != nil:
			label := strings.TrimSuffix(strings.TrimPrefix(from.FieldRef.FieldPath, "metadata.labels['"), "']")
			environ[e.Name] = p.Labels[label]
		}
	}
	args := []string{inNamespace}
	for _, arg := range slices.Concat(c.Command, c.Args) {
		arg = reference.ReplaceAllStringFunc(arg, func(r string) string {
			if value, ok := environ[strings.Trim(r, "$()")]; ok {
				return value
			}
			return strings.Replace(r, "$$", "$", 1)
		})
		// Where containers have networks of their own, all may listen on one port.
		args = append(args, strings.Replace(arg, "--metrics=:", "--metrics="+p.ip+":", 1))
	}
	log, err := os.OpenFile(filepath.Join(n.f.p.dir, p.app+".pods.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = n.f.p.dir, log, log
	for name, value := range environ {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}}
	}
	process := &process{cmd: cmd, exited: make(chan struct{})}
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	if err := n.ctx.Err(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		close(process.exited)
	}()
	p.process = process
	alive := 0
	for _, other := range n.f.pods {
		if other.app == p.app && other.process != nil {
			alive++
		}
	}
	n.f.peak[p.app] = max(n.f.peak[p.app], alive)
	return process, nil
}

// inNamespace is the first argument of this program where it is to become the first process of a pod.
const inNamespace = "become-the-first-process-of-a-pod"

// become has the kernel show the processes of the pod alone, and turns this process into its command.
func become(args []string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	return syscall.Exec(path, args, os.Environ())
}
