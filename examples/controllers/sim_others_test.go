// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Other clients: kubelets, the owner of the machines, and writers of the same objects.

// kubelets registers the Nodes of VMs that are up.
func (w *world) kubelets() {
	if !w.scenario.joins || w.scenario.noTarget {
		return
	}
	for _, v := range w.cloud.Snapshot().VMs {
		if v.State != drivertest.VMRunning || !v.Initialized || w.joined[v.ProviderID] {
			continue
		}
		w.joined[v.ProviderID] = true
		w.logf("kubelet %s joins", v.NodeName)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: v.NodeName},
			Spec: corev1.NodeSpec{
				ProviderID: v.ProviderID, Taints: []corev1.Taint{{Key: foreignKey, Effect: corev1.TaintEffectPreferNoSchedule}},
			},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.clock.Now())},
				{Type: foreignKey, Status: corev1.ConditionTrue},
			}},
		}
		foreign(&node.ObjectMeta)
		if w.scenario.foreignFinalizers {
			node.Finalizers = append(node.Finalizers, foreignKey)
		}
		if err := w.target.cluster.Add(node); err != nil { // an earlier VM had the same name
			w.logf("kubelet %s: %v", v.NodeName, err)
			continue
		}
		w.schedule(node.Name)
	}
}

// bindLate binds a pod to a Node at the moment of its cordon.
func (w *world) bindLate(a simCall) {
	if !w.scenario.latePod || a.site != w.target || a.resource != "nodes" || a.verb != "patch" || w.bound {
		return
	}
	if node := w.node(a.name); node != nil && !node.Spec.Unschedulable && node.DeletionTimestamp.IsZero() {
		w.bound = true
		must(w.target.cluster.Add(w.pod(a.name, "late")))
	}
}

// pod returns a pod that runs on a Node.
func (w *world) pod(node, suffix string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: node + "-" + suffix, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "rs", Controller: ptr.To(true),
		}}},
		Spec: corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: ptr.To(int64(30))},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// schedule creates pods on a Node. The second and later ones have a PodDisruptionBudget with
// minAvailable 1.
func (w *world) schedule(node string) {
	labels := map[string]string{"app": node}
	for i := range w.scenario.pods {
		pod := w.pod(node, fmt.Sprint(i))
		if i > 0 {
			pod.Labels = labels
		}
		if w.scenario.volumes {
			w.claim(pod)
		}
		must(w.target.cluster.Add(pod))
	}
	if w.scenario.pods > 1 {
		one := intstr.FromInt32(1)
		_ = w.target.cluster.Add(&policyv1.PodDisruptionBudget{ // an earlier VM may have created it
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: node},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}},
		})
	}
}

// report writes the Ready condition of a Node.
func (w *world) report(node string, ready corev1.ConditionStatus) {
	w.logf("node %s is ready: %s", node, ready)
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q,"lastTransitionTime":%q}]}}`,
		ready, w.clock.Now().UTC().Format(time.RFC3339))
	_, _ = w.nodes.CoreV1().Nodes().Patch(context.Background(), node, types.StrategicMergePatchType, []byte(patch), // the Node may be deleted
		metav1.PatchOptions{}, "status")
}

// react makes the writes of other clients that follow a write.
func (w *world) react(write draintest.Write) {
	if w.onWrite != nil {
		w.onWrite(write)
	}
	if write.After == nil {
		if _, ok := write.Before.(*corev1.Node); ok {
			w.later(5*time.Second, func() { w.sweep(ofOthers, write.Name) })
		}
		return
	}
	if n, ok := write.After.(*corev1.Node); ok {
		was, _ := write.Before.(*corev1.Node)
		w.agent(was, n)
	}
	m, ok := write.After.(*v1alpha1.Machine)
	if ok {
		was, _ := write.Before.(*v1alpha1.Machine)
		if was == nil || was.Status.CurrentStatus.Phase != m.Status.CurrentStatus.Phase ||
			!was.Status.CurrentStatus.PreserveExpiryTime.Equal(m.Status.CurrentStatus.PreserveExpiryTime) {
			w.reactToPhase(m)
		}
	}
	o, err := meta.Accessor(write.After)
	must(err)
	ourOwn := slices.ContainsFunc(o.GetFinalizers(), func(f string) bool { return f != foreignKey })
	if o.GetDeletionTimestamp() != nil && !ourOwn && slices.Contains(o.GetFinalizers(), foreignKey) {
		w.later(2*time.Second, func() { w.removeForeignFinalizer(write) })
	}
}

// reactToPhase simulates the owner of a machine and the health of its Node.
func (w *world) reactToPhase(m *v1alpha1.Machine) {
	w.followUpdate(m)
	switch m.Status.CurrentStatus.Phase { //nolint:exhaustive // other phases change nothing
	case v1alpha1.MachineFailed:
		if w.scenario.rollout != nil {
			return // the set deletes it
		}
		w.later(3*time.Second, func() {
			if m := w.machine(m.Name); m != nil && m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed && m.Status.CurrentStatus.PreserveExpiryTime == nil {
				w.remove(m.Name)
			}
		})
	case v1alpha1.MachineRunning:
		if w.scenario.deleteRunning > 0 {
			w.later(w.scenario.deleteRunning, func() { w.remove(m.Name) })
		}
		if w.scenario.ill && !w.judge.fellIll[m.Name] {
			w.judge.fellIll[m.Name] = true
			w.later(10*time.Second, func() { w.report(m.Name, corev1.ConditionFalse) })
			w.later(50*time.Second, func() { w.report(m.Name, corev1.ConditionUnknown) })
			if w.scenario.recovers {
				w.later(cmp.Or(w.scenario.recoversAfter, 5*time.Minute), func() { w.report(m.Name, corev1.ConditionTrue) })
			}
		}
	}
}

// removeForeignFinalizer removes the finalizer of another client.
func (w *world) removeForeignFinalizer(write draintest.Write) {
	ctx, patch := context.Background(), []byte(`{"metadata":{"finalizers":null}}`)
	var err error
	switch write.After.(type) {
	case *v1alpha1.Machine:
		_, err = w.machines.MachineV1alpha1().Machines(ns).Patch(ctx, write.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	case *corev1.Node:
		_, err = w.nodes.CoreV1().Nodes().Patch(ctx, write.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	case *storagev1.VolumeAttachment:
		_, err = w.nodes.StorageV1().VolumeAttachments().Patch(ctx, write.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	w.logf("another client removes its finalizer from %s: %v", write.Name, err)
}

// writeConcurrently changes the machine as another client, and the object that the controller
// is about to write.
func (w *world) writeConcurrently(a simCall) {
	ctx, name, key := context.Background(), w.machineFor(a), fmt.Sprintf("example.com/x-%d", a.n)
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"theirs"},"annotations":{%q:"theirs"}}}`, key, key)
	_, err := w.machines.MachineV1alpha1().Machines(ns).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	w.logf("another client writes machine %s: %v", name, err)
	if a.site == nil {
		return
	}
	switch a.resource {
	case "nodes":
		err = w.changeNode(a.name, key)
	case "machinesets":
		_, err = w.machines.MachineV1alpha1().MachineSets(ns).Patch(ctx, a.name, types.MergePatchType, patch, metav1.PatchOptions{})
	case "machinedeployments":
		_, err = w.machines.MachineV1alpha1().MachineDeployments(ns).Patch(ctx, a.name, types.MergePatchType, patch, metav1.PatchOptions{})
	case "machineclasses":
		_, err = w.machines.MachineV1alpha1().MachineClasses(ns).Patch(ctx, a.name, types.MergePatchType, patch, metav1.PatchOptions{})
	case "secrets":
		_, err = w.secrets.CoreV1().Secrets(ns).Patch(ctx, a.name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	w.logf("another client writes %s %s: %v", a.resource, a.name, err)
	w.collect(others)
}

// changeNode adds a label, a taint, a condition and maybe a finalizer to a Node.
func (w *world) changeNode(name, key string) error {
	ctx, nodes := context.Background(), w.nodes.CoreV1().Nodes()
	node, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	metav1.SetMetaDataLabel(&node.ObjectMeta, key, "theirs")
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectPreferNoSchedule})
	if node.DeletionTimestamp.IsZero() && w.scenario.foreignFinalizers && !slices.Contains(node.Finalizers, foreignKey) {
		node.Finalizers = append(node.Finalizers, foreignKey)
	}
	if node, err = nodes.Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		return err
	}
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(key), Status: corev1.ConditionTrue})
	_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}
