// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/claims"
)

// OnChange calls a function with the name of each Node whose drain may continue after an event:
//
//   - of the Node, or of a pod, VolumeAttachment or used claim of the Node;
//   - of a PodDisruptionBudget of a pod on the Node: it allows more, its spec changed, or it was
//     created or deleted;
//   - of a DaemonSet with pods on the Node that was created or deleted.
//
// It is not called when a volume is attached to another Node: decide again at NextCheck.
//
// It is first called once for each existing Node. It may be called for Nodes without a drain, several
// times, and concurrently. The informers wait for it: add the name to a queue. The error means that
// an informer was stopped.
func (i *Informers) OnChange(changed func(node string)) error {
	if i == nil || changed == nil {
		return nil
	}
	c := changes{informers: i, changed: changed}
	for source, handler := range map[drain.Source]cache.ResourceEventHandler{
		sourceNodes:             onEvent(true, func(before, after *corev1.Node) { c.changed(cmp.Or(after, before).Name) }),
		sourcePods:              onEvent(false, onNodes(c, nodeOfPod)),
		drain.SourceBudgets:     onEvent(false, c.budget),
		drain.SourceDaemonSets:  onEvent(false, c.daemonSet),
		drain.SourceAttachments: onEvent(false, onNodes(c, nodeOfAttachment)),
		drain.SourceClaims:      onEvent(false, c.claim),
	} {
		if i.by[source] == nil {
			continue
		}
		if _, err := i.by[source].AddEventHandler(handler); err != nil {
			return observeError(source, err)
		}
	}
	return nil
}

// changes calls changed with the Nodes of an event.
type changes struct {
	informers *Informers
	changed   func(node string)
}

// onEvent returns a handler that calls changed with the object before and after an event. Nil means
// that it did not or does not exist. initial means that it is also called for the first list.
func onEvent[T metav1.Object](initial bool, changed func(before, after T)) cache.ResourceEventHandler {
	var none T
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			if after, ok := obj.(T); ok && (initial || !isInInitialList) {
				changed(none, after)
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			before, ok1 := oldObj.(T)
			after, ok2 := newObj.(T)
			if ok1 && ok2 && before.GetResourceVersion() != after.GetResourceVersion() {
				changed(before, after)
			}
		},
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if before, ok := obj.(T); ok {
				changed(before, none)
			}
		},
	}
}

// onNodes calls changed with the Node of an object before and after an event.
func onNodes[T any](c changes, node func(*T) string) func(before, after *T) {
	return func(before, after *T) {
		nodes := sets.New[string]()
		for _, obj := range []*T{before, after} {
			if obj != nil && node(obj) != "" {
				nodes.Insert(node(obj))
			}
		}
		c.changedAll(nodes)
	}
}

func (c changes) budget(before, after *policyv1.PodDisruptionBudget) {
	if before != nil && after != nil && !allowsMore(before, after) {
		return
	}
	for _, budget := range []*policyv1.PodDisruptionBudget{before, after} {
		if budget == nil || budget == before && after != nil && before.UID == after.UID && before.Generation == after.Generation {
			continue
		}
		covered, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			continue
		}
		c.podsIn(budget.Namespace, func(pod *corev1.Pod) bool { return covered.Matches(labels.Set(pod.Labels)) })
	}
}

// allowsMore reports whether a budget may allow an eviction after a change that it did not allow
// before.
func allowsMore(before, after *policyv1.PodDisruptionBudget) bool {
	healthy := func(b *policyv1.PodDisruptionBudget) bool { return b.Status.CurrentHealthy >= b.Status.DesiredHealthy }
	return before.UID != after.UID || before.Generation != after.Generation ||
		before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
		before.Status.DisruptionsAllowed < after.Status.DisruptionsAllowed || healthy(after) && !healthy(before)
}

func (c changes) daemonSet(before, after *appsv1.DaemonSet) {
	for _, set := range []*appsv1.DaemonSet{before, after} {
		if set == nil || before != nil && after != nil && before.UID == after.UID {
			continue
		}
		c.podsIn(set.Namespace, func(pod *corev1.Pod) bool {
			owner := metav1.GetControllerOfNoCopy(pod)
			return owner != nil && owner.UID == set.UID
		})
	}
}

func (c changes) claim(before, after *corev1.PersistentVolumeClaim) {
	if before != nil && after != nil && before.UID == after.UID && before.Spec.VolumeName == after.Spec.VolumeName {
		return
	}
	claim := cmp.Or(after, before)
	c.podsIn(claim.Namespace, func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return claims.Name(pod, &v) == claim.Name
		})
	})
}

// podsIn calls changed with the Nodes of the selected pods of a namespace.
func (c changes) podsIn(namespace string, selected func(pod *corev1.Pod) bool) {
	objs, err := c.informers.by[sourcePods].GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return // addIndexes has added the index
	}
	nodes := sets.New[string]()
	for _, obj := range objs {
		if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" && selected(pod) {
			nodes.Insert(pod.Spec.NodeName)
		}
	}
	c.changedAll(nodes)
}

func (c changes) changedAll(nodes sets.Set[string]) {
	for _, node := range sets.List(nodes) {
		c.changed(node)
	}
}
