// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"time"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var kindScenarios = []scenario{
	{"leases", leases},
	{"empty-and-absent", emptyAndAbsent},
	{"what-is-not-served", whatIsNotServed},
}

func leases(w *world) {
	api := w.kube.CoordinationV1().Leases(w.ns)
	at := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC))
	l, err := api.Create(w.ctx(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("me"), RenewTime: &at, LeaseDurationSeconds: new(int32(15)), LeaseTransitions: new(int32(0)),
	}}, metav1.CreateOptions{})
	w.got("created", l, err, "spec/holderIdentity", "spec/leaseTransitions", "metadata/generation")
	w.say("microseconds are kept: %v", l.Spec.RenewTime.Equal(&at))
	l.Spec.HolderIdentity = new("")
	l, err = api.Update(w.ctx(), l, metav1.UpdateOptions{})
	w.got("released", l, err, "spec/holderIdentity")
	w.did("deleted", api.Delete(w.ctx(), "l", metav1.DeleteOptions{}))
	_, err = api.Patch(w.ctx(), "missing", types.MergePatchType, []byte(`{"spec":{"holderIdentity":"me"}}`), metav1.PatchOptions{})
	w.did("patch of what is not there", err)
}

// emptyAndAbsent shows how empty and absent fields are encoded. Typed clients cannot tell them apart.
func emptyAndAbsent(w *world) {
	m := w.machine("m", func(m *v1alpha1.Machine) {
		m.Labels, m.Annotations, m.Finalizers, m.OwnerReferences = map[string]string{}, map[string]string{}, []string{}, []metav1.OwnerReference{}
		m.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{}
		m.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{}
	})
	w.say("nil: labels %v annotations %v finalizers %v owners %v taints %v configuration %v",
		m.Labels == nil, m.Annotations == nil, m.Finalizers == nil, m.OwnerReferences == nil, m.Spec.NodeTemplateSpec.Spec.Taints == nil, m.Spec.MachineConfiguration == nil)
	m, err := w.machineAPI().Patch(w.ctx(), "m", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{},"annotations":{},"finalizers":[],"ownerReferences":[]},"spec":{"nodeTemplate":{"spec":{"taints":[]}}}}`), metav1.PatchOptions{})
	w.got("patch with what is empty", m, err, "metadata/generation")
	again, err := w.machineAPI().Update(w.ctx(), m, metav1.UpdateOptions{})
	w.got("update with what is empty", again, err, "metadata/generation")
	w.version("update with what is empty", m, again)
	again, err = w.machineAPI().Update(w.ctx(), again, metav1.UpdateOptions{})
	w.got("update with what is absent", again, err, "metadata/generation")
	w.say("nil: labels %v annotations %v finalizers %v owners %v taints %v",
		m.Labels == nil, m.Annotations == nil, m.Finalizers == nil, m.OwnerReferences == nil, m.Spec.NodeTemplateSpec.Spec.Taints == nil)
	m = again
	m.Status.Addresses = []corev1.NodeAddress{}
	m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{}
	m, err = w.machineAPI().UpdateStatus(w.ctx(), m, metav1.UpdateOptions{})
	w.got("status with what is empty", m, err, "status/currentStatus")
	if err == nil {
		w.say("nil: addresses %v expiry %v", m.Status.Addresses == nil, m.Status.CurrentStatus.PreserveExpiryTime == nil)
	}
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 999, time.FixedZone("x", 3600)))
	m, err = w.machineAPI().Get(w.ctx(), "m", metav1.GetOptions{})
	w.did("get", err)
	m.Status.CurrentStatus.LastUpdateTime = at
	m, err = w.machineAPI().UpdateStatus(w.ctx(), m, metav1.UpdateOptions{})
	w.did("status with a time", err)
	w.say("whole seconds: %v", m.Status.CurrentStatus.LastUpdateTime.Equal(&metav1.Time{Time: at.Truncate(time.Second)}))

	s := w.secret("s", func(s *corev1.Secret) {
		s.Labels, s.Finalizers, s.Data = map[string]string{}, []string{}, map[string][]byte{}
	})
	w.say("secret nil: labels %v finalizers %v data %v", s.Labels == nil, s.Finalizers == nil, s.Data == nil)
	n := w.node("n", func(n *corev1.Node) { n.Status.Conditions = []corev1.NodeCondition{} })
	w.say("node nil: conditions %v", n.Status.Conditions == nil)
}

func whatIsNotServed(w *world) {
	_, err := w.secretAPI().Patch(w.ctx(), "s", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, "status")
	w.did("status of a secret", err)
	w.secret("s")
	_, err = w.secretAPI().Patch(w.ctx(), "s", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, "status")
	w.did("status of a secret that is there", err)
	_, err = w.podAPI().Get(w.ctx(), "", metav1.GetOptions{})
	w.say("get without name fails: %v", err != nil)
}
