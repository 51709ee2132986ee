// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Trim removes from an object what no runner reads of it, so that a cache takes less memory: the managed
// fields, which take more than a third of a Machine, and most of a Node, of a pod and of a
// PersistentVolumeClaim. The API server keeps all, because an update without managed fields does not
// change them, and Nodes are patched. What is left has each common text once.
//
// Use it as the transform of informers, or of the cache of controller-runtime. It changes its argument, and
// returns no error. It is safe for concurrent use.
func Trim(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		if facts.IsNil(m) {
			return o, nil
		}
		m.SetManagedFields(nil)
		shared.metadata(m)
	}
	switch o := o.(type) {
	case *v1alpha1.Machine:
		shared.conditions(o.Status.Conditions)
	case *corev1.Node:
		s := o.Status
		shared.conditions(s.Conditions)
		o.Status = corev1.NodeStatus{Conditions: s.Conditions, Capacity: s.Capacity, VolumesAttached: s.VolumesAttached, Phase: s.Phase}
	case *corev1.Pod:
		s, t := o.Spec, o.Status
		o.Spec = corev1.PodSpec{
			NodeName: s.NodeName, Volumes: s.Volumes, Tolerations: s.Tolerations, Priority: s.Priority, TerminationGracePeriodSeconds: s.TerminationGracePeriodSeconds,
		}
		o.Status = corev1.PodStatus{Phase: t.Phase, Conditions: t.Conditions, StartTime: t.StartTime, ObservedGeneration: t.ObservedGeneration}
	case *corev1.PersistentVolumeClaim:
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: o.Spec.VolumeName},
		}, nil
	}
	return o, nil
}

// shared has the texts that all objects have in common, each once: a decoder makes a copy for each object.
var shared texts

// texts has one copy of each text. It is safe for concurrent use.
type texts struct {
	mu  sync.Mutex
	all map[string]string
}

// mostTexts is how many texts are kept. The memory of a text that many objects share matters; those of a few are
// forgotten together with the others.
const mostTexts = 10_000

// one returns the copy of a text that is kept.
func (t *texts) one(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kept, ok := t.all[text]; ok {
		return kept
	}
	if t.all == nil || len(t.all) >= mostTexts {
		t.all = map[string]string{}
	}
	t.all[text] = text
	return text
}

// metadata replaces texts of an object by the copies that are kept, as conditions does.
func (t *texts) metadata(o metav1.Object) {
	o.SetNamespace(t.one(o.GetNamespace()))
	for _, of := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
		for key, value := range of {
			of[t.one(key)] = value
		}
	}
	for i, finalizer := range o.GetFinalizers() {
		o.GetFinalizers()[i] = t.one(finalizer)
	}
	for i, owner := range o.GetOwnerReferences() {
		owner.APIVersion, owner.Kind, owner.Name, owner.UID = t.one(owner.APIVersion), t.one(owner.Kind), t.one(owner.Name), types.UID(t.one(string(owner.UID)))
		o.GetOwnerReferences()[i] = owner
	}
}

func (t *texts) conditions(all []corev1.NodeCondition) {
	for i, c := range all {
		all[i].Type, all[i].Reason, all[i].Message = corev1.NodeConditionType(t.one(string(c.Type))), t.one(c.Reason), t.one(c.Message)
	}
}
