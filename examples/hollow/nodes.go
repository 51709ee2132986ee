// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// VM is what a hollow Node needs to know of the VM that it is.
type VM struct {
	// ProviderID and NodeName of the VM.
	ProviderID, NodeName string
	// UpSince is when the VM began to run; zero means that it does not.
	UpSince time.Time
}

// Nodes plays the kubelets of VMs: a Node registers when its VM has been up for
// a while, becomes ready, and runs the pods that are bound to it. A Node whose
// VM is gone stays as it is: nobody is left there to say so. It is for one
// goroutine.
type Nodes struct {
	// Client of the cluster that the Nodes join.
	Client kubernetes.Interface
	// Clock of the Nodes.
	Clock clock.PassiveClock
	// VMs returns the VMs that exist.
	VMs func() []VM
	// JoinAfter is how long a VM takes from running to joining.
	JoinAfter time.Duration

	registered map[string]bool // by provider ID: a kubelet registers once
}

// Step brings Nodes and pods one step on. What fails is tried again at the next
// step; the errors are returned for the record.
func (n *Nodes) Step(ctx context.Context) error {
	if n.registered == nil {
		n.registered = map[string]bool{}
	}
	var errs []error
	up := map[string]bool{}
	for _, vm := range n.VMs() {
		if vm.UpSince.IsZero() || n.Clock.Since(vm.UpSince) < n.JoinAfter {
			continue
		}
		up[vm.NodeName] = true
		if !n.registered[vm.ProviderID] {
			err := n.register(ctx, vm)
			n.registered[vm.ProviderID] = err == nil
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, n.runPods(ctx, up))...)
}

// register makes the Node of a VM.
func (n *Nodes) register(ctx context.Context, vm VM) error {
	now := metav1.NewTime(n.Clock.Now())
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: vm.NodeName, Labels: map[string]string{corev1.LabelHostname: vm.NodeName}},
		Spec:       corev1.NodeSpec{ProviderID: vm.ProviderID},
		Status: corev1.NodeStatus{
			Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi")},
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
				LastHeartbeatTime: now, LastTransitionTime: now,
			}},
		},
	}
	_, err := n.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// runPods starts the pods that are bound to Nodes whose VM is up.
func (n *Nodes) runPods(ctx context.Context, up map[string]bool) error {
	pods, err := n.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for i := range pods.Items {
		p := &pods.Items[i]
		if !up[p.Spec.NodeName] || p.Status.Phase != corev1.PodPending || p.DeletionTimestamp != nil {
			continue
		}
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(n.Clock.Now()),
		}}
		_, err := n.Client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
