// Package cluster runs what azconc queue consume --manifest prints, and jobs on a schedule, on a real control plane of Kubernetes and
// on KEDA, without containers. It is a test alone: scripts/cluster builds etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler and KEDA's two programs, and runs it.
//
// Everything runs on loopback and in a temporary folder. The storage account is aztest's emulator. A kubelet in the test runs each
// pod's command as the first process of a PID namespace of its own, so that a KILL ends all that the pod has started, as it does in
// a container. Pods share the network and the files of the machine: each has its own address on loopback.
//
// A handler appends a line to a file for each effect, and the test a line for each pod that it kills. The judge reads both: a message
// without a line is lost, and an effect that is there twice must be explained by a kill between the two.
package cluster
