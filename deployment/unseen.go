// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Unseen is what this process wrote for one deployment and its caches may not
// show yet. [Plan] does nothing before they do, so that a cache that lags behind
// makes it decide nothing twice. The zero Unseen is that nothing was written. It
// is a value: methods return a changed copy, and it may be stored as JSON. It is
// not needed across a restart if the first caches after it are read later than
// the last write before it.
//
// Entries end in one of two ways, neither of which is the passing of time: the
// cache shows the write, or a later one, or that the machine or Node is gone
// ([Unseen.Observe]); or a live read, for
// which Plan asks with a [Look] when an entry grows old, shows that the object
// is gone ([Unseen.Looked]).
type Unseen []Write

// A Write is one object as the API server returned it.
type Write struct {
	// Kind is "MachineSet", "Machine" or "Node".
	Kind string `json:"kind"`
	// Name and UID of the object.
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// ResourceVersion that the cache has to show, or a later one.
	ResourceVersion string `json:"resourceVersion"`
	// Owner is the UID of its controller, empty if it has none.
	Owner types.UID `json:"owner,omitempty"`
	// At is when it was written, or last looked at.
	At time.Time `json:"at"`
}

// Kinds of a [Write].
const (
	KindSet     = "MachineSet" // a *v1alpha1.MachineSet
	KindMachine = "Machine"    // a *v1alpha1.Machine
	KindNode    = "Node"       // a *corev1.Node
)

// Wrote records an object as the API server returned it for a create, an update
// or a patch. A second record of the same object replaces the first. Objects of
// other kinds, and nil, are not recorded.
func (u Unseen) Wrote(object metav1.Object, at time.Time) Unseen {
	kind := kindOf(object)
	if kind == "" {
		return slices.Clone(u)
	}
	w := Write{
		Kind: kind, Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		Owner: controllerOf(object), At: at,
	}
	next := append(u.without(func(o Write) bool { return o.Kind == w.Kind && o.Name == w.Name }), w)
	slices.SortFunc(next, func(a, b Write) int { return strings.Compare(a.Kind+"/"+a.Name, b.Kind+"/"+b.Name) })
	return next
}

// Observe drops the writes that the objects of an observation show. Objects whose
// resource versions cannot be compared count as showing it.
func (u Unseen) Observe(in Observation) Unseen {
	if len(u) == 0 {
		return nil
	}
	seen := map[string]metav1.Object{}
	for _, s := range in.Sets {
		if s != nil {
			seen[KindSet+"/"+s.Name] = s
		}
	}
	for _, m := range in.Machines {
		if m != nil {
			seen[KindMachine+"/"+m.Name] = m
		}
	}
	for name, n := range in.Nodes {
		if n != nil {
			seen[KindNode+"/"+name] = n
		}
	}
	return u.without(func(w Write) bool {
		object := seen[w.Kind+"/"+w.Name]
		if object == nil { // what was seen when it was written, and is not any more, is gone; a set may have been created
			return in.Complete && w.Kind != KindSet
		}
		order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), w.ResourceVersion)
		return err != nil || order >= 0
	})
}

// Looked settles a write by a live read: live is the object that was read, nil
// if the API server says that there is none. A write to an object that is gone, or
// was replaced by another of its name, is dropped, and so is one to a set that was
// released since, which is never among the sets again; any other is kept until the
// cache shows it. An object of another kind says nothing. Do not call it if
// the read failed.
func (u Unseen) Looked(kind, name string, live metav1.Object, at time.Time) Unseen {
	gone := missing(live)
	if !gone && kindOf(live) != kind {
		return slices.Clone(u)
	}
	next := u.without(func(w Write) bool {
		return w.Kind == kind && w.Name == name && (gone || live.GetUID() != w.UID || kind == KindSet && controllerOf(live) != w.Owner)
	})
	for i := range next {
		if next[i].Kind == kind && next[i].Name == name {
			next[i].At = at
		}
	}
	return next
}

// controllerOf returns the UID of the controller of an object, empty if it has none.
func controllerOf(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}

// missing says whether an object is nil, or a nil of one of the kinds.
func missing(object metav1.Object) bool {
	switch o := object.(type) {
	case nil:
		return true
	case *v1alpha1.MachineSet:
		return o == nil
	case *v1alpha1.Machine:
		return o == nil
	case *corev1.Node:
		return o == nil
	}
	return false
}

func (u Unseen) without(drop func(Write) bool) Unseen {
	var kept Unseen
	for _, w := range u {
		if !drop(w) {
			kept = append(kept, w)
		}
	}
	return kept
}

// kindOf returns the kind of an object, empty if it is nil or none of those that
// are recorded.
func kindOf(object metav1.Object) string {
	if missing(object) {
		return ""
	}
	switch object.(type) {
	case *v1alpha1.MachineSet:
		return KindSet
	case *v1alpha1.Machine:
		return KindMachine
	case *corev1.Node:
		return KindNode
	}
	return ""
}

// unseen holds the deployment until the caches show what was written.
func (c *pass) unseen(pending Unseen) {
	c.stop(ReasonWriteNotSeen, "the view does not show a write of "+strings.ToLower(pending[0].Kind)+" "+pending[0].Name+" yet")
	for _, w := range pending {
		due := w.At.Add(c.policy.unseen())
		switch {
		case due.After(c.now) && recorded.Known(w.At, c.now):
			c.look(due)
		case len(c.out.Actions) < c.policy.burst():
			c.add(Look{Kind: w.Kind, Name: w.Name})
		}
	}
}
