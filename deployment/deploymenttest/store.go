// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// The kinds of objects.
const (
	kindDeployment = "MachineDeployment"
	kindSet        = v1alpha1.MachineSetKind
	kindMachine    = v1alpha1.MachineKind
	kindNode       = facts.NodeKind
)

func resource(k string) schema.GroupResource {
	switch k {
	case kindNode:
		return schema.GroupResource{Resource: "nodes"}
	case kindSet:
		return v1alpha1.SchemeGroupVersion.WithResource("machinesets").GroupResource()
	case kindMachine:
		return v1alpha1.SchemeGroupVersion.WithResource("machines").GroupResource()
	default:
		return v1alpha1.SchemeGroupVersion.WithResource("machinedeployments").GroupResource()
	}
}

// An object is an object of one of the four kinds.
type object interface {
	comparable
	metav1.Object
}

var (
	errChanged  = errors.New("the object has been modified")
	errDeleting = errors.New("no new finalizers can be added if the object is being deleted")
)

// part is the part of an object that is written.
type part int

const (
	metadataAndSpec part = iota
	status
)

// shelf stores the objects of one kind with the rules of an API server.
type shelf[T object] struct {
	w    *World
	kind string
	get  func(name string) T
	put  func(name string, next T) // a zero value removes
	// copied returns a shallow copy.
	copied func(T) T
	// same reports whether a part of two objects is equal, metadata apart.
	same func(a, b T, p part) bool
	// keep gives next what before has of the other part.
	keep func(next, before T, p part)
}

func (s *shelf[T]) create(by string, o T) (T, error) {
	var none T
	if s.get(o.GetName()) != none {
		return none, apierrors.NewAlreadyExists(resource(s.kind), o.GetName())
	}
	next := s.copied(o)
	s.w.serial++
	next.SetUID(types.UID(fmt.Sprintf("%s-%d", resource(s.kind).Resource, s.w.serial)))
	next.SetCreationTimestamp(metav1.NewTime(s.w.now))
	next.SetGeneration(1)
	s.store(by, none, next)
	return next, nil
}

// write stores a part of an object. Resource version and UID are preconditions unless they are
// empty.
func (s *shelf[T]) write(by string, o T, p part) (T, error) {
	var none T
	before := s.get(o.GetName())
	switch {
	case before == none:
		return none, apierrors.NewNotFound(resource(s.kind), o.GetName())
	case cmp.Or(o.GetUID(), before.GetUID()) != before.GetUID(),
		cmp.Or(o.GetResourceVersion(), before.GetResourceVersion()) != before.GetResourceVersion():
		return none, apierrors.NewConflict(resource(s.kind), o.GetName(), errChanged)
	}
	next := s.copied(o)
	if p == status {
		restoreMetadata(next, before)
	} else if err := s.metadata(next, before); err != nil {
		return none, err
	}
	s.keep(next, before, p)
	unchanged := s.same(next, before, p)
	if unchanged && (p == status || sameMetadata(next, before)) {
		return before, nil
	}
	if p == metadataAndSpec && !unchanged && s.kind != kindNode {
		next.SetGeneration(before.GetGeneration() + 1)
	}
	s.store(by, before, next)
	return next, nil
}

// remove deletes an object, or marks it if it has finalizers.
func (s *shelf[T]) remove(by, name string, uid types.UID, resourceVersion string) error {
	var none T
	before := s.get(name)
	switch {
	case before == none:
		return apierrors.NewNotFound(resource(s.kind), name)
	case cmp.Or(uid, before.GetUID()) != before.GetUID(),
		cmp.Or(resourceVersion, before.GetResourceVersion()) != before.GetResourceVersion():
		return apierrors.NewConflict(resource(s.kind), name, errChanged)
	case before.GetDeletionTimestamp() != nil:
		return nil
	}
	next := s.copied(before)
	at := metav1.NewTime(s.w.now)
	next.SetDeletionTimestamp(&at)
	next.SetGeneration(before.GetGeneration() + 1)
	s.store(by, before, next)
	return nil
}

// metadata checks and completes the metadata of an update.
func (s *shelf[T]) metadata(next, before T) error {
	next.SetUID(before.GetUID())
	next.SetGeneration(before.GetGeneration())
	next.SetCreationTimestamp(before.GetCreationTimestamp())
	next.SetDeletionTimestamp(before.GetDeletionTimestamp())
	if before.GetDeletionTimestamp() == nil {
		return nil
	}
	had := map[string]bool{}
	for _, f := range before.GetFinalizers() {
		had[f] = true
	}
	for _, f := range next.GetFinalizers() {
		if !had[f] {
			return apierrors.NewForbidden(resource(s.kind), next.GetName(), errDeleting)
		}
	}
	return nil
}

// store sets the resource version of an object and announces the change. An object that is being
// deleted ends with its last finalizer.
func (s *shelf[T]) store(by string, before, next T) {
	var none T
	s.w.version++
	next.SetResourceVersion(strconv.Itoa(s.w.version))
	name := next.GetName()
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 {
		next = none
	}
	s.put(name, next)
	change := Change{At: s.w.now, By: by, Kind: s.kind, Name: name}
	if before != none {
		change.Before = before
	}
	if next != none {
		change.After = next
	}
	s.w.changed(change)
}

func restoreMetadata[T object](next, before T) {
	next.SetLabels(before.GetLabels())
	next.SetAnnotations(before.GetAnnotations())
	next.SetFinalizers(before.GetFinalizers())
	next.SetOwnerReferences(before.GetOwnerReferences())
	next.SetUID(before.GetUID())
	next.SetGeneration(before.GetGeneration())
	next.SetCreationTimestamp(before.GetCreationTimestamp())
	next.SetDeletionTimestamp(before.GetDeletionTimestamp())
}

func sameMetadata[T object](a, b T) bool {
	return equality.Semantic.DeepEqual(a.GetLabels(), b.GetLabels()) &&
		equality.Semantic.DeepEqual(a.GetAnnotations(), b.GetAnnotations()) &&
		equality.Semantic.DeepEqual(a.GetFinalizers(), b.GetFinalizers()) &&
		equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences())
}

// newShelf completes a shelf from the functions for spec and status.
func newShelf[T object, Spec, Status any](s shelf[T], spec func(T) *Spec, state func(T) *Status) *shelf[T] {
	s.same = func(a, b T, p part) bool {
		if p == status {
			return equality.Semantic.DeepEqual(state(a), state(b))
		}
		return equality.Semantic.DeepEqual(spec(a), spec(b))
	}
	s.keep = func(next, before T, p part) {
		if p == status {
			*spec(next) = *spec(before)
		} else {
			*state(next) = *state(before)
		}
	}
	return &s
}

func (w *World) openShelves() {
	w.deployments = newShelf(shelf[*v1alpha1.MachineDeployment]{
		w: w, kind: kindDeployment,
		get: func(name string) *v1alpha1.MachineDeployment {
			if w.deployment == nil || w.deployment.Name != name {
				return nil
			}
			return w.deployment
		},
		put:    func(_ string, next *v1alpha1.MachineDeployment) { w.deployment = next },
		copied: func(o *v1alpha1.MachineDeployment) *v1alpha1.MachineDeployment { c := *o; return &c },
	},
		func(o *v1alpha1.MachineDeployment) *v1alpha1.MachineDeploymentSpec { return &o.Spec },
		func(o *v1alpha1.MachineDeployment) *v1alpha1.MachineDeploymentStatus { return &o.Status })
	w.sets = newShelf(shelf[*v1alpha1.MachineSet]{
		w: w, kind: kindSet, get: w.truth.sets.get,
		put:    func(name string, next *v1alpha1.MachineSet) { w.truth.show(news{kind: kindSet, name: name, set: next}) },
		copied: func(o *v1alpha1.MachineSet) *v1alpha1.MachineSet { c := *o; return &c },
	},
		func(o *v1alpha1.MachineSet) *v1alpha1.MachineSetSpec { return &o.Spec },
		func(o *v1alpha1.MachineSet) *v1alpha1.MachineSetStatus { return &o.Status })
	w.machines = newShelf(shelf[*v1alpha1.Machine]{
		w: w, kind: kindMachine, get: w.truth.machines.get,
		put: func(name string, next *v1alpha1.Machine) {
			w.truth.show(news{kind: kindMachine, name: name, machine: next})
		},
		copied: func(o *v1alpha1.Machine) *v1alpha1.Machine { c := *o; return &c },
	},
		func(o *v1alpha1.Machine) *v1alpha1.MachineSpec { return &o.Spec },
		func(o *v1alpha1.Machine) *v1alpha1.MachineStatus { return &o.Status })
	w.nodes = newShelf(shelf[*corev1.Node]{
		w: w, kind: kindNode,
		get:    func(name string) *corev1.Node { return w.truth.nodes[name] },
		put:    func(name string, next *corev1.Node) { w.truth.show(news{kind: kindNode, name: name, node: next}) },
		copied: func(o *corev1.Node) *corev1.Node { c := *o; return &c },
	},
		func(o *corev1.Node) *corev1.NodeSpec { return &o.Spec },
		func(o *corev1.Node) *corev1.NodeStatus { return &o.Status })
}
