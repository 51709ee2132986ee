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

// Cordon keeps pods, and optionally traffic, off a Node. The zero Cordon sets
// spec.unschedulable without an owner.
//
// Several owners may cordon one Node. Each has a claim in an annotation, and a mark on the Node
// stays as long as one claim holds it. Another annotation records which marks were set by
// cordons. Marks of other writers are never removed.
type Cordon struct {
	// Owner is the name part of the annotation with the claim: letters, digits, and dashes,
	// dots or underscores between them. Without an owner there is no claim.
	Owner string `json:"owner,omitempty"`
	// Adopt claims marks that are on the Node already, as an earlier version of the program or
	// kubectl cordon has set them: Uncordon of the last owner then removes them. Without it they
	// stay.
	Adopt bool `json:"adopt,omitempty"`
	// Reason is stored with the claim, for people. A change of the reason alone is not
	// stored.
	Reason string `json:"reason,omitempty"`
	// Taint is the key of a taint with effect NoSchedule that is set instead of
	// spec.unschedulable, which users set too. Empty means spec.unschedulable. The key
	// belongs to cordons: Uncordon of the last owner removes the taint, even if another
	// writer has set it.
	Taint string `json:"taint,omitempty"`
	// ExcludeFromLoadBalancers sets the label that excludes the Node from load balancers.
	ExcludeFromLoadBalancers bool `json:"excludeFromLoadBalancers,omitempty"`
	// OutOfService sets the taint with which Kubernetes detaches the volumes of the Node and
	// deletes its pods. Set it only when the instance is shut down.
	OutOfService bool `json:"outOfService,omitempty"`
}

// Validate returns why the cordon is invalid, with the field and its value, or nil. The owner has to
// be part of the key of an annotation. The taint must not have a key that the API server refuses or
// that Kubernetes sets itself.
func (f Cordon) Validate() error {
	if f.Owner != "" {
		if wrong := validation.IsQualifiedName(claimAnnotationPrefix + f.Owner); len(wrong) > 0 {
			return fmt.Errorf("cordon: owner %q: %s", f.Owner, strings.Join(wrong, "; "))
		}
	}
	if f.Taint == "" {
		return nil
	}
	if wrong := validation.IsQualifiedName(f.Taint); len(wrong) > 0 {
		return fmt.Errorf("cordon: taint %q: %s", f.Taint, strings.Join(wrong, "; "))
	}
	if prefix, _, _ := strings.Cut(f.Taint, "/"); prefix == "node.kubernetes.io" || prefix == "node.cloudprovider.kubernetes.io" {
		return fmt.Errorf("cordon: taint %q: Kubernetes sets and removes the taints of %s itself", f.Taint, prefix)
	}
	return nil
}

// Stands reports whether the Node has all marks of the cordon and, if there is an owner, its
// claim. It returns false if [Cordon.Outlived] does not, and for a nil Node.
func (f Cordon) Stands(node *corev1.Node) bool {
	if node == nil {
		return false
	}
	marks := f.marks()
	for _, m := range marks {
		if !mark(m).on(node) {
			return false
		}
	}
	if f.Owner == "" {
		return true
	}
	claim, ok := claimOf(node, f.Owner)
	return ok && claim.holdsAll(marks) && !f.Outlived(node)
}

// Outlived reports whether the claim of the owner holds the out-of-service taint and the cordon
// does not: the instance runs again. [Cordon.Set] then removes the taint. It returns false for a
// nil Node.
func (f Cordon) Outlived(node *corev1.Node) bool {
	if node == nil || f.OutOfService {
		return false
	}
	claim, ok := claimOf(node, f.Owner)
	return ok && claim.holds(markOutOfService) && mark(markOutOfService).on(node)
}

// Set returns a deep copy of node with the cordon, and whether it differs from node. It does not
// differ if the cordon stands. An existing claim keeps its time and its marks, except for a taint
// that is outlived. The error is that of [Cordon.Validate]; the copy is then unchanged. Set
// returns nil for a nil node.
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

// set is Set without a copy.
func (f Cordon) set(node *corev1.Node, now time.Time) bool {
	if f.Stands(node) {
		return false
	}
	outlived := f.Outlived(node)
	ours := cordonMarks(node)
	known := ours.whichStand(node)
	for _, m := range f.marks() {
		if mark(m).on(node) && !f.Adopt {
			continue
		}
		if !mark(m).on(node) {
			mark(m).set(node, now)
		}
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

// extend returns the claim of the cordon, with the marks of an earlier claim.
func (f Cordon) extend(c Claim, ours markSet, now time.Time) Claim {
	held := c.Marks
	if c.Unreadable {
		held = ours
	}
	for _, m := range f.marks() {
		held = markSet(held).with(m)
	}
	if !f.OutOfService {
		held = slices.DeleteFunc(slices.Clone(held), func(m string) bool { return m == markOutOfService })
	}
	if c.Since.IsZero() {
		c.Since = now.UTC().Truncate(time.Second)
	}
	if f.Reason != "" {
		c.Reason = f.Reason
	}
	return Claim{Owner: f.Owner, Reason: c.Reason, Since: c.Since, Marks: held}
}

// Uncordon returns a deep copy of node without the claim of owner, and whether it differs from
// node. It removes the marks that a cordon has set and no claim holds. Marks of other writers
// stay, and removed marks are not restored. It returns nil for a nil node.
//
// Without an owner, Uncordon undoes the zero Cordon: it removes spec.unschedulable, or leaves that to
// the last owner whose claim holds it. For an owner without a claim it only removes marks of cordons that no claim holds, because
// a claim was removed by hand.
//
// A mark that another writer removed and set again between two calls cannot be told from one of
// a cordon. A [Cordon.Taint] avoids that.
func Uncordon(node *corev1.Node, owner string) (_ *corev1.Node, changed bool) {
	if node == nil {
		return nil, false
	}
	out := node.DeepCopy()
	return out, uncordon(out, owner)
}

// uncordon is Uncordon without a copy.
func uncordon(node *corev1.Node, owner string) bool {
	claim, changed := claimOf(node, owner)
	if changed {
		deleteAnnotation(node, claimAnnotationPrefix+owner)
	}
	ours := cordonMarks(node)
	known := ours.whichStand(node)
	for _, m := range claim.Marks {
		if mark(m).isTaint() && mark(m).on(node) {
			known = known.with(m)
		}
	}
	if owner == "" && node.Spec.Unschedulable {
		known = known.with(markUnschedulable)
	}
	known, taken := known.release(node)
	return known.store(node) || taken || changed
}
