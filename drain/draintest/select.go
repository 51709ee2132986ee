// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// selector selects the objects of a list or watch.
type selector struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

// newSelector parses the options of a list or watch. A malformed selector and an unsupported field are bad requests.
func newSelector(k *kind, namespace string, opts metav1.ListOptions) (selector, error) {
	byLabel, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return selector{}, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return selector{}, apierrors.NewBadRequest(err.Error())
	}
	for _, req := range byField.Requirements() {
		if !selectable(k, &metav1.ObjectMeta{}, nil).Has(req.Field) {
			return selector{}, apierrors.NewBadRequest("field label not supported: " + req.Field)
		}
	}
	return selector{namespace: namespace, labels: byLabel, fields: byField}, nil
}

// matches reports whether an object is selected. Nil is not.
func (s selector) matches(k *kind, obj runtime.Object) bool {
	if obj == nil {
		return false
	}
	m := metaOf(obj)
	if s.namespace != "" && m.GetNamespace() != s.namespace {
		return false
	}
	if !s.labels.Empty() && !s.labels.Matches(labels.Set(m.GetLabels())) {
		return false
	}
	if s.fields.Empty() {
		return true
	}
	return s.fields.Matches(selectable(k, m, obj))
}

// selectable returns the fields of field selectors of a kind, with their values in obj.
func selectable(k *kind, m metav1.Object, obj runtime.Object) fields.Set {
	set := fields.Set{"metadata.name": m.GetName()}
	if !k.clusterScoped {
		set["metadata.namespace"] = m.GetNamespace()
	}
	if k.isPod() {
		pod := orNil[corev1.Pod](obj)
		if pod == nil {
			pod = &corev1.Pod{}
		}
		set["spec.nodeName"], set["status.phase"] = pod.Spec.NodeName, string(pod.Status.Phase)
	}
	return set
}

// list serves a list request. The caller holds c.mu.
func (c *Cluster) list(k *kind, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	sel, err := newSelector(k, namespace, opts)
	if err != nil {
		return nil, err
	}
	list, err := c.candidates(k, namespace, sel)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if !sel.labels.Empty() || !sel.fields.Empty() {
		if list, err = filtered(k, list, sel); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	m.SetResourceVersion(formatVersion(c.version))
	return list, nil
}

// candidates returns a new list of all objects that may be selected. It uses the index of pods by node.
func (c *Cluster) candidates(k *kind, namespace string, sel selector) (runtime.Object, error) {
	node, one := sel.fields.RequiresExactMatch("spec.nodeName")
	if !k.isPod() || !one {
		return c.tracker.List(k.gvr, k.gvk, namespace)
	}
	list := &corev1.PodList{}
	for _, key := range ordered(c.index.nodes[node]) {
		if namespace == "" || namespace == key.namespace {
			list.Items = append(list.Items, *c.index.pods[key.namespace][key.name].DeepCopy())
		}
	}
	return list, nil
}

// filtered removes the items of a list that do not match.
func filtered(k *kind, list runtime.Object, sel selector) (runtime.Object, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	kept := make([]runtime.Object, 0, len(items))
	for _, item := range items {
		if sel.matches(k, item) {
			kept = append(kept, item)
		}
	}
	return list, meta.SetList(list, kept)
}
