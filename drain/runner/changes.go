// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"maps"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/drain"
)

// OnChange has a function called with the name of every Node whose drain may go on after an
// event, so that nothing has to be polled:
//
//   - of a Node, or of a pod, volume attachment or claim in use on it;
//   - of a budget that allows more than before, or was written, made or deleted, if it
//     covers a pod on the Node;
//   - of a DaemonSet that came or went, if it has pods on the Node;
//   - of an attachment elsewhere of a volume that was detached from the Node, and of such a
//     volume that came, went, or is in another phase.
//
// What the informers are asked does not change which Nodes events concern. Volumes that were detached
// before OnChange was called are not known: such a drain looks again at its NextCheck.
//
// At the beginning it is called once for each Node there is. It may be called for Nodes
// that nobody drains, several times, and by several goroutines of the informers, which
// wait for it: it is to put the name into a queue. An error says that an informer has been stopped.
func (i *Informers) OnChange(changed func(node string)) error {
	if i == nil || changed == nil {
		return nil
	}
	c := changes{informers: i, tell: changed}
	for _, source := range slices.Sorted(maps.Keys(i.by)) {
		handler := c.handler(source)
		if handler == nil {
			continue
		}
		if _, err := i.by[source].AddEventHandler(handler); err != nil {
			return observeError(source, err)
		}
	}
	return nil
}

// changes finds the Nodes that an event concerns.
type changes struct {
	informers *Informers
	tell      func(node string)
}

// handler returns what is called with the events of a source, or nil if there is no such
// source.
func (c changes) handler(source drain.Source) cache.ResourceEventHandler {
	switch source {
	case sourceNodes:
		return onEvent(true, c.node)
	case sourcePods:
		return onEvent(false, c.pod)
	case drain.SourceBudgets:
		return onEvent(false, c.budget)
	case drain.SourceDaemonSets:
		return onEvent(false, c.daemonSet)
	case drain.SourceAttachments:
		return onEvent(false, c.attachment)
	case drain.SourceClaims:
		return onEvent(false, c.claim)
	case drain.SourceVolumes:
		return onEvent(false, c.volume)
	default:
		return nil
	}
}

// onEvent turns events into what was there before and what is there now; nil is
// nothing. Objects that an informer finds at its beginning count if initial says so.
func onEvent[T metav1.Object](initial bool, changed func(before, after T)) cache.ResourceEventHandler {
	var nothing T
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			if after, ok := obj.(T); ok && (initial || !isInInitialList) {
				changed(nothing, after)
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
				changed(before, nothing)
			}
		},
	}
}

func (c changes) node(before, after *corev1.Node) {
	if after == nil {
		c.informers.detached.forget(before.Name)
		c.tell(before.Name)
		return
	}
	c.tell(after.Name)
}

func (c changes) pod(before, after *corev1.Pod) {
	nodes := map[string]struct{}{}
	for _, pod := range []*corev1.Pod{before, after} {
		if pod != nil && pod.Spec.NodeName != "" {
			nodes[pod.Spec.NodeName] = struct{}{}
		}
	}
	c.tellAll(nodes)
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

// allowsMore says whether a pod may be evicted after a change that was not before, or
// whether the budget was written anew.
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
	claim := after
	if claim == nil {
		claim = before
	}
	c.podsIn(claim.Namespace, func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return drain.ClaimName(pod, &v) == claim.Name
		})
	})
}

func (c changes) attachment(before, after *storagev1.VolumeAttachment) {
	nodes, detached := map[string]struct{}{}, &c.informers.detached
	for _, attachment := range []*storagev1.VolumeAttachment{before, after} {
		if attachment == nil {
			continue
		}
		nodes[attachment.Spec.NodeName] = struct{}{}
		detached.addTo(nodes, attachedVolumeName(attachment))
	}
	if before != nil && c.knowsNode(before.Spec.NodeName) {
		detached.add(before.Spec.NodeName, attachedVolumeName(before))
	}
	if after != nil {
		detached.attached(after.Spec.NodeName, attachedVolumeName(after))
	}
	c.tellAll(nodes)
}

// knowsNode reports whether the Node exists, and so will be forgotten when it goes.
func (c changes) knowsNode(name string) bool {
	_, known, err := c.informers.by[sourceNodes].GetIndexer().GetByKey(name)
	return known && err == nil
}

// volume tells the Nodes that a volume was detached from, and whose drains may wait for it to
// be used elsewhere: one that is released, or deleted, will not be.
func (c changes) volume(before, after *corev1.PersistentVolume) {
	if before != nil && after != nil && before.UID == after.UID && before.Status.Phase == after.Status.Phase {
		return
	}
	volume := after
	if volume == nil {
		volume = before
	}
	nodes := map[string]struct{}{}
	c.informers.detached.addTo(nodes, volume.Name)
	c.tellAll(nodes)
}

// podsIn tells the Nodes of the pods of a namespace that are chosen.
func (c changes) podsIn(namespace string, chosen func(pod *corev1.Pod) bool) {
	objs, err := c.informers.by[sourcePods].GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return // the index is there
	}
	nodes := map[string]struct{}{}
	for _, obj := range objs {
		if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" && chosen(pod) {
			nodes[pod.Spec.NodeName] = struct{}{}
		}
	}
	c.tellAll(nodes)
}

func (c changes) tellAll(nodes map[string]struct{}) {
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		c.tell(node)
	}
}

// mostDetached is how many detached volumes are remembered of a Node: more than can be attached
// to one at a time.
const mostDetached = 256

// detachedVolumes remembers from which Nodes volumes were detached, as long as the Nodes
// exist. Nothing but events of the informers changes it.
type detachedVolumes struct {
	mu    sync.Mutex
	left  map[string][]string            // by Node, the latest last
	nodes map[string]map[string]struct{} // by volume
}

// add remembers that a volume was detached from a Node.
func (d *detachedVolumes) add(node, volume string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.nodes[volume][node]; known {
		return
	}
	if d.left == nil {
		d.left, d.nodes = map[string][]string{}, map[string]map[string]struct{}{}
	}
	if d.nodes[volume] == nil {
		d.nodes[volume] = map[string]struct{}{}
	}
	d.nodes[volume][node] = struct{}{}
	d.left[node] = append(d.left[node], volume)
	if len(d.left[node]) > mostDetached {
		d.remove(node, d.left[node][0])
	}
}

// attached forgets a volume that is attached to the Node again.
func (d *detachedVolumes) attached(node, volume string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.nodes[volume][node]; known {
		d.remove(node, volume)
	}
}

// forget forgets a Node.
func (d *detachedVolumes) forget(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.left[node]) > 0 {
		d.remove(node, d.left[node][0])
	}
}

// remove forgets a volume of a Node.
func (d *detachedVolumes) remove(node, volume string) {
	d.left[node] = slices.DeleteFunc(d.left[node], func(v string) bool { return v == volume })
	if len(d.left[node]) == 0 {
		delete(d.left, node)
	}
	delete(d.nodes[volume], node)
	if len(d.nodes[volume]) == 0 {
		delete(d.nodes, volume)
	}
}

// addTo adds the Nodes that a volume was detached from.
func (d *detachedVolumes) addTo(nodes map[string]struct{}, volume string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.Copy(nodes, d.nodes[volume])
}
