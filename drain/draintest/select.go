// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// selector says which objects a list or watch sees.
type selector struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

// newSelector parses the options of a list or watch. A malformed selector, and a field that the kind does not
// offer, is a bad request.
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
		if req.Field == "metadata.name" || req.Field == "metadata.namespace" && k.namespaced {
			continue
		}
		if _, known := extraFields(k, nil)[req.Field]; !known {
			return selector{}, apierrors.NewBadRequest("field label not supported: " + req.Field)
		}
	}
	return selector{namespace: namespace, labels: byLabel, fields: byField}, nil
}

// matches is total: an object without metadata matches nothing, nil included.
func (s selector) matches(k *kind, obj runtime.Object) bool {
	if obj == nil {
		return false
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return false
	}
	if s.namespace != "" && m.GetNamespace() != s.namespace {
		return false
	}
	if !s.labels.Empty() && !s.labels.Matches(labels.Set(m.GetLabels())) {
		return false
	}
	if s.fields.Empty() {
		return true
	}
	set := extraFields(k, obj)
	if set == nil {
		set = fields.Set{}
	}
	set["metadata.name"], set["metadata.namespace"] = m.GetName(), m.GetNamespace()
	return s.fields.Matches(set)
}

// extraFields returns the fields that a kind can be selected by besides its name and namespace, with their values in
// obj; with a nil obj the values mean nothing and only the keys count.
func extraFields(k *kind, obj runtime.Object) fields.Set {
	switch k.gvk.GroupKind() {
	case corev1.SchemeGroupVersion.WithKind("Pod").GroupKind():
		return podFields(orZero[corev1.Pod](obj))
	case corev1.SchemeGroupVersion.WithKind("Node").GroupKind():
		return fields.Set{"spec.unschedulable": strconv.FormatBool(orZero[corev1.Node](obj).Spec.Unschedulable)}
	case corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind():
		return fields.Set{"status.phase": string(orZero[corev1.Namespace](obj).Status.Phase)}
	case corev1.SchemeGroupVersion.WithKind("Secret").GroupKind():
		return fields.Set{"type": string(orZero[corev1.Secret](obj).Type)}
	case corev1.SchemeGroupVersion.WithKind("Event").GroupKind():
		return eventFields(orZero[corev1.Event](obj))
	default:
		return nil
	}
}

// orZero returns obj as a *T, or an empty *T for anything else.
func orZero[T any](obj runtime.Object) *T {
	if typed, ok := any(obj).(*T); ok && typed != nil {
		return typed
	}
	return new(T)
}

func podFields(pod *corev1.Pod) fields.Set {
	return fields.Set{
		"spec.nodeName":            pod.Spec.NodeName,
		"spec.restartPolicy":       string(pod.Spec.RestartPolicy),
		"spec.schedulerName":       pod.Spec.SchedulerName,
		"spec.serviceAccountName":  pod.Spec.ServiceAccountName,
		"spec.hostNetwork":         strconv.FormatBool(pod.Spec.HostNetwork),
		"status.phase":             string(pod.Status.Phase),
		"status.podIP":             pod.Status.PodIP,
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
	}
}

func eventFields(ev *corev1.Event) fields.Set {
	return fields.Set{
		"involvedObject.kind":            ev.InvolvedObject.Kind,
		"involvedObject.namespace":       ev.InvolvedObject.Namespace,
		"involvedObject.name":            ev.InvolvedObject.Name,
		"involvedObject.uid":             string(ev.InvolvedObject.UID),
		"involvedObject.apiVersion":      ev.InvolvedObject.APIVersion,
		"involvedObject.resourceVersion": ev.InvolvedObject.ResourceVersion,
		"involvedObject.fieldPath":       ev.InvolvedObject.FieldPath,
		"reason":                         ev.Reason,
		"reportingComponent":             ev.ReportingController,
		"source":                         ev.Source.Component,
		"type":                           ev.Type,
	}
}

// list answers a list request. The caller holds c.mu.
func (c *Cluster) list(k *kind, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	sel, err := newSelector(k, namespace, opts)
	if err != nil {
		return nil, err
	}
	if err := c.checkListVersion(opts); err != nil {
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

// candidates returns a list, which the caller owns, with everything that may be selected: of the pods of one node no
// others, by the index that servers have as well.
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

// filtered keeps the matching items of a list that the caller owns.
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

// checkListVersion refuses what the cluster cannot answer: a version of the future, and an exact one of the past.
func (c *Cluster) checkListVersion(opts metav1.ListOptions) error {
	asked, err := parseVersion(opts.ResourceVersion)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	switch {
	case asked > c.version:
		return tooLarge(asked, c.version)
	case opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact && asked != c.version:
		return apierrors.NewResourceExpired("The provided resource version is too old; this cluster keeps only the latest state")
	default:
		return nil
	}
}

// tooLarge is the refusal of a resource version that the server has not reached.
func tooLarge(asked, current uint64) error {
	err := apierrors.NewTimeoutError("Too large resource version: "+formatVersion(asked)+", current: "+formatVersion(current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}
