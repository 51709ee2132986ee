// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/claims"
	"github.com/machinist-dev/machinist/internal/objects"
)

// Affected returns the names of the Nodes whose drain may continue after a change, in order:
//
//   - of the Node, or of a pod, VolumeAttachment or used claim of the Node;
//   - of a PodDisruptionBudget of a pod on the Node: it allows more, its spec changed, or it was
//     created or deleted;
//   - of a DaemonSet with pods on the Node that was created or deleted.
//
// There are none when a volume is attached to another Node: decide again at NextCheck. The objects
// are those before and after the change; the one that does not exist is nil.
func Affected(ctx context.Context, r machinist.Reader, before, after metav1.Object) []string {
	nodes := sets.New[string]()
	for _, node := range objects.Versions[*corev1.Node](before, after) {
		nodes.Insert(node.Name)
	}
	for _, pod := range objects.Versions[*corev1.Pod](before, after) {
		nodes.Insert(nodeOfPod(pod))
	}
	for _, attachment := range objects.Versions[*storagev1.VolumeAttachment](before, after) {
		nodes.Insert(nodeOfAttachment(attachment))
	}
	podsIn := podsIn(func(namespace string, selected func(pod *corev1.Pod) bool) {
		if r == nil {
			return
		}
		pods, _ := objects.In[*corev1.Pod](ctx, r, namespace)
		for _, pod := range pods {
			if selected(pod) {
				nodes.Insert(pod.Spec.NodeName)
			}
		}
	})
	podsIn.budget(objects.Both[*policyv1.PodDisruptionBudget](before, after))
	podsIn.daemonSet(objects.Both[*appsv1.DaemonSet](before, after))
	podsIn.claim(objects.Both[*corev1.PersistentVolumeClaim](before, after))
	return sets.List(nodes.Delete(""))
}

// podsIn adds the Nodes of the selected pods of a namespace.
type podsIn func(namespace string, selected func(pod *corev1.Pod) bool)

func (add podsIn) budget(before, after *policyv1.PodDisruptionBudget) {
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
		add(budget.Namespace, func(pod *corev1.Pod) bool { return covered.Matches(labels.Set(pod.Labels)) })
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

func (add podsIn) daemonSet(before, after *appsv1.DaemonSet) {
	for _, set := range []*appsv1.DaemonSet{before, after} {
		if set == nil || before != nil && after != nil && before.UID == after.UID {
			continue
		}
		add(set.Namespace, func(pod *corev1.Pod) bool {
			owner := metav1.GetControllerOfNoCopy(pod)
			return owner != nil && owner.UID == set.UID
		})
	}
}

func (add podsIn) claim(before, after *corev1.PersistentVolumeClaim) {
	if before != nil && after != nil && before.UID == after.UID && before.Spec.VolumeName == after.Spec.VolumeName {
		return
	}
	claim := cmp.Or(after, before)
	if claim == nil {
		return
	}
	add(claim.Namespace, func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return claims.Name(pod, &v) == claim.Name
		})
	})
}
