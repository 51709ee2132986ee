// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Cordon is what keeps pods, and perhaps traffic, off a Node. The zero Cordon cordons
// the Node for nobody in particular.
//
// Several owners may cordon one Node. Each keeps a claim in an annotation of its
// own, and a mark on the Node stands as long as one of them holds it. A second annotation
// remembers which marks a cordon has set; what was there before the first cordon, or came
// from somebody else, is never taken away.
type Cordon struct {
	// Owner names who cordons, as the name part of an annotation: letters, digits and
	// dashes, dots or underscores in between. The Node then carries a claim of the owner,
	// so that it can be opened again when its last owner leaves. Without an owner nobody
	// is recorded, and nothing is ever taken back.
	Owner string `json:"owner,omitempty"`
	// Reason is kept with the claim, for people. Another reason alone is nothing that
	// would be written.
	Reason string `json:"reason,omitempty"`
	// Taint is the key of a taint of the owner's, with effect NoSchedule, that is set
	// instead of the mark unschedulable, which people use as well. Empty means that
	// the Node is marked. Since the key belongs to owners of cordons, the taint goes
	// with the last of them, whoever has set it.
	Taint string `json:"taint,omitempty"`
	// ExcludeFromLoadBalancers sets the label that takes the Node out of load
	// balancers.
	ExcludeFromLoadBalancers bool `json:"excludeFromLoadBalancers,omitempty"`
	// OutOfService sets the taint that tells Kubernetes to detach the volumes of
	// the Node and to remove its pods. It may be set only once the instance is off.
	OutOfService bool `json:"outOfService,omitempty"`
}

// CordonError says what is wrong with a [Cordon].
type CordonError struct {
	// Field of the cordon, and its value.
	Field, Value string
	// Problem in words.
	Problem string
}

// Error returns the field, its value and what is wrong with it.
func (e *CordonError) Error() string {
	return fmt.Sprintf("cordon: %s %q: %s", e.Field, e.Value, e.Problem)
}

// Validate says what is wrong with the cordon, as a *[CordonError], or nil: an owner that
// cannot be part of an annotation's key, a taint whose key the API server would refuse or
// that Kubernetes sets itself.
func (f Cordon) Validate() error {
	if f.Owner != "" {
		if wrong := validation.IsQualifiedName(claimAnnotationPrefix + f.Owner); len(wrong) > 0 {
			return &CordonError{Field: "owner", Value: f.Owner, Problem: strings.Join(wrong, "; ")}
		}
	}
	if f.Taint == "" {
		return nil
	}
	if wrong := validation.IsQualifiedName(f.Taint); len(wrong) > 0 {
		return &CordonError{Field: "taint", Value: f.Taint, Problem: strings.Join(wrong, "; ")}
	}
	if prefix, _, _ := strings.Cut(f.Taint, "/"); prefix == "node.kubernetes.io" || prefix == "node.cloudprovider.kubernetes.io" {
		return &CordonError{Field: "taint", Value: f.Taint, Problem: "Kubernetes sets and removes the taints of " + prefix + " itself"}
	}
	return nil
}

// Stands says whether the Node is cordoned so: all marks are there, and the claim if
// the cordon has an owner, which has outlived nothing. A nil Node is not. A claim without
// its marks does not stand: see [Claim.Missing].
func (f Cordon) Stands(node *corev1.Node) bool {
	if node == nil {
		return false
	}
	marks := f.marks()
	for _, m := range marks {
		if !m.on(node) {
			return false
		}
	}
	if f.Owner == "" {
		return true
	}
	claim, ok := claimOf(node, f.Owner)
	return ok && claim.holdsAll(marks) && !f.Outlived(node)
}

// Outlived says whether the claim of the owner still keeps the Node out of service although
// the cordon does not: the instance is on again. Setting the cordon takes that back. A nil
// Node is not.
func (f Cordon) Outlived(node *corev1.Node) bool {
	if node == nil || f.OutOfService {
		return false
	}
	claim, ok := claimOf(node, f.Owner)
	return ok && claim.Holds(markOutOfService) && markOutOfService.on(node)
}

// Set returns a deep copy of node with the cordon, and whether that differs from node. It
// does not if the cordon stands; a claim that is there already keeps its time, and the marks
// that it held, but for what it has outlived. The only error is that of [Cordon.Validate];
// nothing is set then. A nil node gives nil.
func (f Cordon) Set(node *corev1.Node, now time.Time) (_ *corev1.Node, changed bool, err error) {
	if err := f.Validate(); err != nil {
		return node.DeepCopy(), false, err
	}
	if node == nil {
		return nil, false, nil
	}
	out := node.DeepCopy()
	return out, f.set(out, now), nil
}

// set is Set on a node that it may change.
func (f Cordon) set(node *corev1.Node, now time.Time) bool {
	if f.Stands(node) {
		return false
	}
	outlived := f.Outlived(node)
	ours := cordonMarks(node)
	known := ours.whichStand(node)
	for _, m := range f.marks() {
		if m.on(node) {
			continue
		}
		m.set(node, now)
		if f.Owner != "" {
			known = known.with(m)
		}
	}
	if f.Owner != "" {
		claim, _ := claimOf(node, f.Owner)
		f.extend(claim, ours, now).store(node)
	}
	if outlived {
		known, _ = known.release(node)
	}
	known.store(node)
	return true
}

// extend returns the claim for the cordon, which holds what an earlier one held.
func (f Cordon) extend(c Claim, ours markSet, now time.Time) Claim {
	held := c.Marks
	if c.Unreadable {
		held = ours
	}
	for _, m := range f.marks() {
		held = markSet(held).with(m)
	}
	if !f.OutOfService {
		held = slices.DeleteFunc(slices.Clone(held), func(m Mark) bool { return m == markOutOfService })
	}
	if c.Since.IsZero() {
		c.Since = now.UTC().Truncate(time.Second)
	}
	if f.Reason != "" {
		c.Reason = f.Reason
	}
	return Claim{Owner: f.Owner, Reason: c.Reason, Since: c.Since, Marks: held}
}

// Uncordon returns a deep copy of node without the claim of owner, and whether that
// differs from node. The marks that no claim holds any more are taken away, if a cordon has
// set them and they are still as it did: a cordon that was there before stays, and one
// that somebody took away is not put back. A nil node gives nil.
//
// An owner without a claim, and the empty one, only take away what a cordon has left
// behind: marks that nobody holds, because their claim was removed by hand.
//
// A mark is not known to be another's if somebody took it away and set it again while
// no cordon was set or taken back in between: the Node then looks as before. Those who
// want to be sure of that use a [Cordon.Taint].
func Uncordon(node *corev1.Node, owner string) (_ *corev1.Node, changed bool) {
	if node == nil {
		return nil, false
	}
	out := node.DeepCopy()
	return out, uncordon(out, owner)
}

// uncordon is Uncordon on a node that it may change.
func uncordon(node *corev1.Node, owner string) bool {
	claim, changed := claimOf(node, owner)
	if changed {
		deleteAnnotation(node, claimAnnotationPrefix+owner)
	}
	ours := cordonMarks(node)
	known := ours.whichStand(node)
	for _, m := range claim.Marks {
		if m.isTaint() && m.on(node) {
			known = known.with(m)
		}
	}
	known, taken := known.release(node)
	return known.store(node) || taken || changed
}
