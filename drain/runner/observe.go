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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/claims"
)

// Reader reads the objects of a drain. [Live] and [Informers] are readers. The results are not
// changed and need not be copies. Objects that do not exist are left out.
type Reader interface {
	// Node returns the Node of this name, or nil if it does not exist.
	Node(ctx context.Context, name string) (*corev1.Node, error)
	// PodsOn returns all pods that are bound to a Node.
	PodsOn(ctx context.Context, node string) ([]*corev1.Pod, error)
	// BudgetsIn returns all PodDisruptionBudgets of these namespaces.
	BudgetsIn(ctx context.Context, namespaces []string) ([]*policyv1.PodDisruptionBudget, error)
	// DaemonSetsIn returns all DaemonSets of these namespaces.
	DaemonSetsIn(ctx context.Context, namespaces []string) ([]*appsv1.DaemonSet, error)
	// AttachmentsOf returns all VolumeAttachments of a Node, and those of these
	// PersistentVolumes to other Nodes.
	AttachmentsOf(ctx context.Context, node string, volumes []string) ([]*storagev1.VolumeAttachment, error)
	// ClaimsOf returns these PersistentVolumeClaims.
	ClaimsOf(ctx context.Context, claims []types.NamespacedName) ([]*corev1.PersistentVolumeClaim, error)
	// VolumesOf returns these PersistentVolumes.
	VolumesOf(ctx context.Context, names []string) ([]*corev1.PersistentVolume, error)
}

// errNotSynced is the error of an informer without its first list.
var errNotSynced = errors.New("drain: the informer has not synced")

// errNotWatched is the error of a list that the reader does not have.
var errNotWatched = errors.New("drain: not watched")

func observeError(source drain.Source, err error) error {
	return fmt.Errorf("drain: observe %s: %w", source, err)
}

// Observe reads the Node, its pods, and the lists that the policy needs. The state has the volumes
// of earlier pods.
//
// A list is incomplete if the client may not read it (403), the API server does not serve it (404),
// or the informers do not watch it. It is then in [drain.Decision.NotEvaluated]. All other errors,
// and all errors of the Node and the pods, are returned with the zero Observation. The reachability
// is that of [drain.ReachabilityOf]. A caller may change it.
func Observe(ctx context.Context, from Reader, node string, p drain.Policy, past drain.State) (drain.Observation, error) {
	switch {
	case from == nil:
		return drain.Observation{}, missing("reader")
	case node == "":
		return drain.Observation{}, missing("name of a node")
	}
	found, err := from.Node(ctx, node)
	if err != nil {
		return drain.Observation{}, observeError(sourceNodes, err)
	}
	if found == nil {
		return drain.Observation{Looked: true}, nil
	}
	pods, err := from.PodsOn(ctx, node)
	if err != nil {
		return drain.Observation{}, observeError(sourcePods, err)
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
func observeList(ctx context.Context, from Reader, source drain.Source, in *drain.Observation, past drain.State) error {
	switch source {
	case drain.SourceBudgets:
		budgets, err := from.BudgetsIn(ctx, namespacesOf(in.Pods.Items))
		return setList(&in.Budgets, source, budgets, err)
	case drain.SourceDaemonSets:
		sets, err := from.DaemonSetsIn(ctx, namespacesOf(in.Pods.Items))
		return setList(&in.DaemonSets, source, sets, err)
	case drain.SourceAttachments:
		attachments, err := from.AttachmentsOf(ctx, in.Node.Name, past.VolumesUnderWay())
		return setList(&in.Attachments, source, attachments, err)
	case drain.SourceClaims:
		claims, err := from.ClaimsOf(ctx, claimsOf(in.Pods.Items))
		return setList(&in.Claims, source, claims, err)
	case drain.SourceVolumes:
		volumes, err := from.VolumesOf(ctx, volumesOf(in.Claims.Items, past))
		return setList(&in.Volumes, source, volumes, err)
	default:
		return observeError(source, errNotWatched)
	}
}

// setList sets a list of the observation. An unavailable list stays incomplete.
func setList[T any](into *drain.List[T], source drain.Source, items []T, err error) error {
	switch {
	case err == nil:
		*into = drain.All(items...)
		return nil
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), errors.Is(err, errNotWatched):
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
