// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// NodeSource knows Nodes.
type NodeSource interface {
	// Node returns the Node of this name, or nil if there is none.
	Node(ctx context.Context, name string) (*corev1.Node, error)
}

// PodSource knows the pods of Nodes.
type PodSource interface {
	// PodsOn returns all pods that are bound to a Node.
	PodsOn(ctx context.Context, node string) ([]*corev1.Pod, error)
}

// BudgetSource knows disruption budgets.
type BudgetSource interface {
	// BudgetsIn returns all budgets of these namespaces.
	BudgetsIn(ctx context.Context, namespaces []string) ([]*policyv1.PodDisruptionBudget, error)
}

// NamespaceSource knows namespaces.
type NamespaceSource interface {
	// NamespacesOf returns the namespaces of these names, without those that are not there.
	NamespacesOf(ctx context.Context, names []string) ([]*corev1.Namespace, error)
}

// DaemonSetSource knows DaemonSets.
type DaemonSetSource interface {
	// DaemonSetsIn returns all DaemonSets of these namespaces.
	DaemonSetsIn(ctx context.Context, namespaces []string) ([]*appsv1.DaemonSet, error)
}

// AttachmentSource knows volume attachments.
type AttachmentSource interface {
	// AttachmentsOf returns all attachments of a Node, and those of these persistent
	// volumes to other Nodes.
	AttachmentsOf(ctx context.Context, node string, volumes []string) ([]*storagev1.VolumeAttachment, error)
}

// ClaimSource knows persistent volume claims.
type ClaimSource interface {
	// ClaimsOf returns these claims, without those that are not there.
	ClaimsOf(ctx context.Context, claims []types.NamespacedName) ([]*corev1.PersistentVolumeClaim, error)
}

// VolumeSource knows persistent volumes.
type VolumeSource interface {
	// VolumesOf returns these volumes, without those that are not there.
	VolumesOf(ctx context.Context, names []string) ([]*corev1.PersistentVolume, error)
}

// Sources are where an [Observation] comes from. Only Nodes and Pods are necessary;
// every other source may be nil. [Informers] and [Live] are all of them. What sources
// return is read and never changed, and they need not copy it.
type Sources struct {
	// Nodes know the Node; necessary.
	Nodes NodeSource
	// Pods know the pods on it; necessary.
	Pods PodSource
	// Budgets know what limits evictions, or nil.
	Budgets BudgetSource
	// Namespaces know the labels that rules select by, or nil.
	Namespaces NamespaceSource
	// DaemonSets know which pods nobody brings back, or nil.
	DaemonSets DaemonSetSource
	// Attachments know which volumes are attached where, or nil.
	Attachments AttachmentSource
	// Claims know the volumes of pods, or nil.
	Claims ClaimSource
	// Volumes know what volumes are called in the status of the Node, or nil.
	Volumes VolumeSource
}

// The sources that are necessary.
const (
	SourceNodes Source = "nodes"
	SourcePods  Source = "pods"
)

var (
	// ErrNoSource is the error of a source that is necessary and not there.
	ErrNoSource = errors.New("drain: no such source")
	// ErrNoNodeName is the error of whoever asks for a drain and does not say of which Node.
	ErrNoNodeName = errors.New("drain: no name of a node")
)

// SourceError says which source could not be asked.
type SourceError struct {
	// Source that failed.
	Source Source
	// Err is why.
	Err error
}

// Error returns the name of the source and why it failed.
func (e *SourceError) Error() string { return fmt.Sprintf("drain: observe %s: %v", e.Source, e.Err) }

// Unwrap returns why the source failed.
func (e *SourceError) Unwrap() error { return e.Err }

// Observe asks the sources what is known of a Node, of its pods and of what belongs
// to them, and of nothing else. The state says which volumes of pods that have gone
// still matter.
//
// A source that is nil, or that may not be asked (403) or is not served (404), leaves
// its list incomplete: the plan then says that it was not evaluated. Any other error is a
// *[SourceError], and so is every error of Nodes and Pods; with it comes the zero
// Observation, on which nothing is ever done. The Node's reachability is that of
// [ReachOf]; whoever knows better sets it.
func (s Sources) Observe(ctx context.Context, node string, past State) (Observation, error) {
	switch {
	case node == "":
		return Observation{}, ErrNoNodeName
	case s.Nodes == nil:
		return Observation{}, &SourceError{Source: SourceNodes, Err: ErrNoSource}
	case s.Pods == nil:
		return Observation{}, &SourceError{Source: SourcePods, Err: ErrNoSource}
	}
	found, err := s.Nodes.Node(ctx, node)
	if err != nil {
		return Observation{}, &SourceError{Source: SourceNodes, Err: err}
	}
	if found == nil {
		return Observation{Looked: true, Reach: ReachOf(nil)}, nil
	}
	pods, err := s.Pods.PodsOn(ctx, node)
	if err != nil {
		return Observation{}, &SourceError{Source: SourcePods, Err: err}
	}
	in := Observation{Looked: true, Node: found, Reach: ReachOf(found), Pods: All(pods...)}
	if err := s.observeMore(ctx, &in, past); err != nil {
		return Observation{}, err
	}
	return in, nil
}

// observeMore asks the sources that are not necessary.
func (s Sources) observeMore(ctx context.Context, in *Observation, past State) error {
	namespaces := namespacesOf(in.Pods.Items)
	var errs []error
	if s.Budgets != nil {
		budgets, err := s.Budgets.BudgetsIn(ctx, namespaces)
		errs = append(errs, answered(&in.Budgets, SourceBudgets, budgets, err))
	}
	if s.Namespaces != nil {
		found, err := s.Namespaces.NamespacesOf(ctx, namespaces)
		errs = append(errs, answered(&in.Namespaces, SourceNamespaces, found, err))
	}
	if s.DaemonSets != nil {
		sets, err := s.DaemonSets.DaemonSetsIn(ctx, namespaces)
		errs = append(errs, answered(&in.DaemonSets, SourceDaemonSets, sets, err))
	}
	if s.Attachments != nil {
		attachments, err := s.Attachments.AttachmentsOf(ctx, in.Node.Name, past.volumesUnderWay())
		errs = append(errs, answered(&in.Attachments, SourceAttachments, attachments, err))
	}
	if s.Claims != nil {
		claims, err := s.Claims.ClaimsOf(ctx, claimsOf(in.Pods.Items))
		errs = append(errs, answered(&in.Claims, SourceClaims, claims, err))
	}
	if s.Volumes != nil {
		volumes, err := s.Volumes.VolumesOf(ctx, volumesOf(in.Claims.Items, past))
		errs = append(errs, answered(&in.Volumes, SourceVolumes, volumes, err))
	}
	return errors.Join(errs...)
}

// answered notes what a source said.
func answered[T any](into *List[T], source Source, items []T, err error) error {
	if err == nil {
		*into = All(items...)
		return nil
	}
	for _, one := range joined(err) {
		if !apierrors.IsForbidden(one) && !apierrors.IsNotFound(one) {
			return &SourceError{Source: source, Err: err}
		}
	}
	return nil
}

// joined returns the errors that are joined in err, at any depth, without what wraps them.
// Each is to be classified by itself: [errors.As] finds the first of its type.
func joined(err error) []error {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case interface{ Unwrap() []error }:
		var all []error
		for _, one := range e.Unwrap() {
			all = append(all, joined(one)...)
		}
		return all
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return joined(inner)
		}
	}
	return []error{err}
}

// namespacesOf returns the namespaces of pods, in order.
func namespacesOf(pods []*corev1.Pod) []string {
	var namespaces []string
	for _, pod := range pods {
		if pod == nil {
			continue
		}
		if at, known := slices.BinarySearch(namespaces, pod.Namespace); !known {
			namespaces = slices.Insert(namespaces, at, pod.Namespace)
		}
	}
	return namespaces
}

// claimsOf returns the claims of pods, in order.
func claimsOf(pods []*corev1.Pod) []types.NamespacedName {
	var claims []types.NamespacedName
	for _, pod := range pods {
		if pod == nil {
			continue
		}
		for i := range pod.Spec.Volumes {
			if name, _ := claimOf(pod, &pod.Spec.Volumes[i]); name != "" {
				claims = append(claims, types.NamespacedName{Namespace: pod.Namespace, Name: name})
			}
		}
	}
	slices.SortFunc(claims, func(a, b types.NamespacedName) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return slices.Compact(claims)
}

// volumesOf returns the volumes of claims and those that the drain remembers, in
// order.
func volumesOf(claims []*corev1.PersistentVolumeClaim, past State) []string {
	volumes := past.volumesUnderWay()
	for _, claim := range claims {
		if claim != nil && claim.Spec.VolumeName != "" {
			volumes = append(volumes, claim.Spec.VolumeName)
		}
	}
	slices.Sort(volumes)
	return slices.Compact(volumes)
}

// volumesUnderWay returns the volumes that the drain still waits for, in order.
func (s State) volumesUnderWay() []string {
	var volumes []string
	for name, volume := range s.Volumes {
		if !volume.Done && !isUnique(name) {
			volumes = append(volumes, name)
		}
	}
	for _, pod := range s.Pods {
		volumes = append(volumes, pod.Volumes...)
	}
	slices.Sort(volumes)
	return slices.Compact(volumes)
}
