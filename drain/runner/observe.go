// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/claims"
	"github.com/machinist-dev/machinist/internal/objects"
)

// The required lists.
const (
	sourceNodes drain.Source = "nodes"
	sourcePods  drain.Source = "pods"
)

// objectsOf has an object of the type of each list.
var objectsOf = map[drain.Source]machinist.Object{
	sourceNodes: &corev1.Node{}, sourcePods: &corev1.Pod{}, drain.SourceBudgets: &policyv1.PodDisruptionBudget{},
	drain.SourceDaemonSets: &appsv1.DaemonSet{}, drain.SourceAttachments: &storagev1.VolumeAttachment{},
	drain.SourceClaims: &corev1.PersistentVolumeClaim{}, drain.SourceVolumes: &corev1.PersistentVolume{},
}

// Indexes returns the indexes that a Reader needs for drains: of pods and VolumeAttachments.
func Indexes() []machinist.Index {
	return []machinist.Index{
		index(objects.OnNode, nodeOfPod), index(objects.OnNode, nodeOfAttachment), index(objects.OfVolume, volumeOfAttachment),
	}
}

// index returns an index by a name in each object. Objects without the name are not in it.
func index[P objects.Pointer[T], T any](by string, name func(o P) string) machinist.Index {
	return machinist.Index{Name: by, Of: P(new(T)), Target: true, Keys: func(o machinist.Object) []string {
		if typed, ok := o.(P); ok && name(typed) != "" {
			return []string{name(typed)}
		}
		return nil
	}}
}

func nodeOfPod(pod *corev1.Pod) string { return pod.Spec.NodeName }

func nodeOfAttachment(attachment *storagev1.VolumeAttachment) string { return attachment.Spec.NodeName }

// volumeOfAttachment returns the name of the PersistentVolume of an attachment, or "".
func volumeOfAttachment(attachment *storagev1.VolumeAttachment) string {
	if name := attachment.Spec.Source.PersistentVolumeName; name != nil {
		return *name
	}
	return ""
}

func observeError(source drain.Source, err error) error {
	return fmt.Errorf("drain: observe %s: %w", source, err)
}

// Observe reads the Node, its pods, and the lists that the policy needs. The state has the volumes
// of earlier pods.
//
// A list is incomplete if the client may not read it (403), the API server does not serve it (404),
// or the Reader does not have it ([machinist.ErrNotCached]). It is then in
// [drain.Decision.NotEvaluated]. All other errors, and all errors of the Node and the pods, are returned
// with the zero Observation. The reachability is that of [drain.ReachabilityOf]. A caller may change it.
func Observe(ctx context.Context, from machinist.Reader, node string, p drain.Policy, past drain.State) (drain.Observation, error) {
	switch {
	case from == nil:
		return drain.Observation{}, missing("reader")
	case node == "":
		return drain.Observation{}, missing("name of a node")
	}
	found, err := objects.Get[*corev1.Node](ctx, from, "", node)
	if err != nil {
		return drain.Observation{}, observeError(sourceNodes, refusal("get", "nodes", "", err))
	}
	if found == nil {
		return drain.Observation{Looked: true}, nil
	}
	pods, err := objects.List[*corev1.Pod](ctx, from, objects.OnNode, node)
	if err != nil {
		return drain.Observation{}, observeError(sourcePods, refusal("list", "pods", "", err))
	}
	in := drain.Observation{Looked: true, Node: found, Reachability: drain.ReachabilityOf(found), Pods: drain.All(pods...)}
	var errs []error
	for _, source := range p.Sources() {
		errs = append(errs, observeList(ctx, from, source, &in, past))
	}
	if err := errors.Join(errs...); err != nil {
		return drain.Observation{}, err
	}
	return in, nil
}

// observeList reads an optional list.
func observeList(ctx context.Context, from machinist.Reader, source drain.Source, in *drain.Observation, past drain.State) error {
	switch source {
	case drain.SourceBudgets:
		return observeEach(&in.Budgets, source, namespacesOf(in.Pods.Items), func(namespace string) ([]*policyv1.PodDisruptionBudget, error) {
			return objects.In[*policyv1.PodDisruptionBudget](ctx, from, namespace)
		})
	case drain.SourceDaemonSets:
		return observeEach(&in.DaemonSets, source, namespacesOf(in.Pods.Items), func(namespace string) ([]*appsv1.DaemonSet, error) {
			all, err := objects.In[*appsv1.DaemonSet](ctx, from, namespace)
			if apierrors.IsForbidden(err) {
				return daemonSetsOf(ctx, from, namespace, in.Pods.Items)
			}
			return all, err
		})
	case drain.SourceAttachments:
		attachments, err := objects.Attachments(ctx, from, in.Node.Name, past.VolumesUnderWay()...)
		return setList(&in.Attachments, source, attachments, err)
	case drain.SourceClaims:
		return observeEach(&in.Claims, source, claimsOf(in.Pods.Items), func(key types.NamespacedName) ([]*corev1.PersistentVolumeClaim, error) {
			return one(objects.Get[*corev1.PersistentVolumeClaim](ctx, from, key.Namespace, key.Name))
		})
	case drain.SourceVolumes:
		return observeEach(&in.Volumes, source, volumesOf(in.Claims.Items, past), func(name string) ([]*corev1.PersistentVolume, error) {
			return one(objects.Get[*corev1.PersistentVolume](ctx, from, "", name))
		})
	default:
		return observeError(source, machinist.ErrNotCached)
	}
}

// daemonSetsOf reads the DaemonSets of the pods of a namespace, one by one.
func daemonSetsOf(ctx context.Context, from machinist.Reader, namespace string, pods []*corev1.Pod) ([]*appsv1.DaemonSet, error) {
	names := sets.New[string]()
	for _, pod := range pods {
		if owner := metav1.GetControllerOfNoCopy(pod); pod.Namespace == namespace && owner != nil && owner.Kind == "DaemonSet" {
			names.Insert(owner.Name)
		}
	}
	var all []*appsv1.DaemonSet
	for _, name := range sets.List(names) {
		found, err := one(objects.Get[*appsv1.DaemonSet](ctx, from, namespace, name))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// one returns a list of an object, and an empty one if there is none.
func one[P objects.Pointer[T], T any](o P, err error) ([]P, error) {
	if o == nil || err != nil {
		return nil, err
	}
	return []P{o}, nil
}

// observeEach reads a list of the observation for each key.
func observeEach[K any, P objects.Pointer[T], T any](
	into *drain.List[P], source drain.Source, keys []K, read func(key K) ([]P, error),
) error {
	var all []P
	for _, key := range keys {
		some, err := read(key)
		if err != nil {
			return setList(into, source, all, err)
		}
		all = append(all, some...)
	}
	return setList(into, source, all, nil)
}

// setList sets a list of the observation. An unavailable list stays incomplete.
func setList[T any](into *drain.List[T], source drain.Source, items []T, err error) error {
	switch {
	case err == nil:
		*into = drain.All(items...)
		return nil
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), errors.Is(err, machinist.ErrNotCached):
		return nil
	default:
		return observeError(source, err)
	}
}

// namespacesOf returns the namespaces of pods, sorted.
func namespacesOf(pods []*corev1.Pod) []string {
	namespaces := sets.New[string]()
	for _, pod := range pods {
		if pod != nil {
			namespaces.Insert(pod.Namespace)
		}
	}
	return sets.List(namespaces)
}

// claimsOf returns the claims of pods, sorted.
func claimsOf(pods []*corev1.Pod) []types.NamespacedName {
	found := sets.New[types.NamespacedName]()
	for _, pod := range pods {
		if pod == nil {
			continue
		}
		for i := range pod.Spec.Volumes {
			if name := claims.Name(pod, &pod.Spec.Volumes[i]); name != "" {
				found.Insert(types.NamespacedName{Namespace: pod.Namespace, Name: name})
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// volumesOf returns the volumes of claims and those of the state, sorted.
func volumesOf(claims []*corev1.PersistentVolumeClaim, past drain.State) []string {
	volumes := sets.New(past.VolumesUnderWay()...)
	for _, claim := range claims {
		if claim != nil && claim.Spec.VolumeName != "" {
			volumes.Insert(claim.Spec.VolumeName)
		}
	}
	return sets.List(volumes)
}
