package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// plane is a control plane of Kubernetes with KEDA. Its programs are processes on loopback, which end with the test.
type plane struct {
	t       *testing.T
	bin     string // the folder with the programs
	dir     string
	client  *kubernetes.Clientset
	objects *dynamic.DynamicClient

	controllers   func() *exec.Cmd // starts kube-controller-manager, also again
	startOperator func()           // starts KEDA's operator, also again
	operator      *exec.Cmd
}

// start runs a program until the end of the test, with its output in a file.
func (p *plane) start(environ []string, name string, args ...string) *exec.Cmd {
	p.t.Helper()
	log, err := os.OpenFile(filepath.Join(p.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(p.bin, name), args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.dir, append(os.Environ(), environ...), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		end(cmd)
		p.tail(log.Name())
	})
	return cmd
}

// end kills a program, and returns when it has ended. It may be called again.
func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// tail prints the end of a file if the test has failed.
func (p *plane) tail(path string) {
	if data, err := os.ReadFile(path); p.t.Failed() {
		p.t.Logf("%s: %v\n%s", filepath.Base(path), err, data[max(0, len(data)-2000):])
	}
}

const loopback = "127.0.0.1:"

// free returns the number of a port that is free on loopback.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// until waits for something, and ends the test if it takes too long.
func until(t *testing.T, within time.Duration, what string, ok func(ctx context.Context) error) {
	t.Helper()
	var err error
	if wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		err = ok(ctx)
		return err == nil, nil
	}) != nil {
		t.Fatalf("%s: not within %v: %v", what, within, err)
	}
}

// startPlane returns when the API answers and KEDA's programs are started.
func startPlane(t *testing.T, bin string) *plane {
	p := &plane{t: t, bin: bin, dir: t.TempDir()}
	etcd, peers := "http://"+loopback+free(t), "http://"+loopback+free(t)
	p.start(nil, "etcd", "--data-dir=etcd", "--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers, "--unsafe-no-fsync")
	p.certificate()
	const token = "cluster"
	p.write("tokens.csv", token+`,admin,admin,"system:masters"`)
	port := free(t)
	p.start(nil, "kube-apiserver", "--etcd-servers="+etcd, "--secure-port="+port, "--bind-address=127.0.0.1",
		// It refuses to advertise loopback. Nothing connects to this address, of a network for documentation.
		"--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/24",
		"--tls-cert-file=tls.crt", "--tls-private-key-file=tls.key", "--token-auth-file=tokens.csv", "--authorization-mode=AlwaysAllow",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=tls.key", "--service-account-signing-key-file=tls.key",
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition")

	config := &rest.Config{Host: "https://" + loopback + port, BearerToken: token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(p.dir, "ca.crt")}}
	p.client, p.objects = kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	p.write("kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],
  clusters: [{name: c, cluster: {server: %q, certificate-authority: ca.crt}}], users: [{name: u, user: {token: %s}}]}`, config.Host, token))
	until(t, 2*time.Minute, "the API", func(ctx context.Context) error {
		_, err := p.client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err
	})

	configs := []string{"--kubeconfig=kubeconfig", "--authentication-kubeconfig=kubeconfig", "--authorization-kubeconfig=kubeconfig", "--leader-elect=false", "--secure-port=0"}
	p.controllers = func() *exec.Cmd {
		return p.start(nil, "kube-controller-manager", append(configs, "--service-account-private-key-file=tls.key",
			"--node-monitor-grace-period=24h", // the nodes of this test have no heartbeat: one that is lost is deleted
			"--horizontal-pod-autoscaler-sync-period=1s", "--horizontal-pod-autoscaler-downscale-stabilization=5s")...)
	}
	p.start(nil, "kube-scheduler", configs...)
	p.keda()
	return p
}

// keda starts KEDA's operator and its adapter of external metrics, and registers the adapter with the API.
func (p *plane) keda() {
	crds, err := filepath.Glob(filepath.Join(p.bin, "crds", "*.yaml"))
	if err != nil || len(crds) == 0 {
		p.t.Fatalf("KEDA's resources: %q, %v", crds, err)
	}
	for _, crd := range crds {
		data, err := os.ReadFile(crd)
		if err != nil {
			p.t.Fatal(err)
		}
		p.apply(string(data))
	}
	scaler, adapter := loopback+free(p.t), free(p.t)
	p.apply(fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: keda}}
---
{apiVersion: v1, kind: Service, metadata: {name: adapter, namespace: keda}, spec: {type: ExternalName, externalName: localhost}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.external.metrics.k8s.io}
spec:
  {group: external.metrics.k8s.io, version: v1beta1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true,
   service: {name: adapter, namespace: keda, port: %s}}`, adapter))
	environ := []string{"KUBECONFIG=kubeconfig", "KEDA_CLUSTER_OBJECT_NAMESPACE=keda", "POD_NAMESPACE=keda", "WATCH_NAMESPACE="}
	p.startOperator = func() {
		p.operator = p.start(environ, "operator", "--cert-dir="+p.dir, "--metrics-bind-address=0", "--health-probe-bind-address=0",
			"--metrics-service-bind-address="+scaler, "--enable-webhook-patching=false", "--enable-apiservice-patching=false")
	}
	p.startOperator()
	p.start(environ, "adapter", "--secure-port="+adapter, "--bind-address=127.0.0.1", "--tls-cert-file=tls.crt", "--tls-private-key-file=tls.key",
		"--cert-dir="+p.dir, "--metrics-service-address="+scaler, "--port=0", // its metrics, on every address: nobody asks for them
		"--authentication-kubeconfig=kubeconfig", "--authorization-kubeconfig=kubeconfig", "--lister-kubeconfig=kubeconfig")
}

// certificate writes a certificate for loopback, which is its own authority, and its key: for the API, for KEDA's programs among each
// other, and for the tokens of service accounts.
func (p *plane) certificate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cluster"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err1 := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	private, err2 := x509.MarshalECPrivateKey(key)
	if err := errors.Join(err1, err2); err != nil {
		p.t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
	p.write("tls.crt", text)
	p.write("ca.crt", text)
	p.write("tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})))
}

func (p *plane) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// apply does what kubectl apply --server-side does with a file. It tries again, because a resource may be new to the API.
func (p *plane) apply(text string) {
	p.t.Helper()
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096); ; {
		var o unstructured.Unstructured
		if err := documents.Decode(&o.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			p.t.Fatal(err)
		}
		if len(o.Object) == 0 {
			continue
		}
		kind, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		var in dynamic.ResourceInterface = p.objects.Resource(kind)
		if !slices.Contains([]string{"Namespace", "APIService", "CustomResourceDefinition"}, o.GetKind()) {
			in = p.objects.Resource(kind).Namespace(cmp.Or(o.GetNamespace(), "default"))
		}
		until(p.t, 30*time.Second, "apply "+o.GetKind(), func(ctx context.Context) error {
			_, err := in.Apply(ctx, o.GetName(), &o, metav1.ApplyOptions{FieldManager: "cluster", Force: true})
			return err
		})
	}
}
