// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// CapacityChange is what is to be done to the status of a node so that it reports a virtual
// capacity. The zero CapacityChange is nothing.
type CapacityChange struct {
	// Set are the resources that are missing or have another quantity.
	Set corev1.ResourceList
	// Remove are the resources, sorted, that were applied before, are on the node, and are wanted no longer.
	Remove []corev1.ResourceName
	// Base is the new text of [LastAppliedCapacityAnnotation], or empty if it need not be written.
	Base string
	// DropBase says that the annotation is to be removed, because nothing is applied any more.
	DropBase bool
}

// Empty reports whether nothing is to be done.
func (c CapacityChange) Empty() bool {
	return len(c.Set) == 0 && len(c.Remove) == 0 && c.Base == "" && !c.DropBase
}

// String lists the change for people. The text is stable for the same change, but its form is not.
func (c CapacityChange) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c.Set)) {
		quantity := c.Set[name]
		parts = append(parts, "set "+string(name)+"="+quantity.String())
	}
	for _, name := range c.Remove {
		parts = append(parts, "remove "+string(name))
	}
	switch {
	case c.DropBase:
		parts = append(parts, "forget what was applied")
	case c.Base != "":
		parts = append(parts, "record what was applied")
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

// SyncCapacity returns a deep copy of node whose status.capacity contains desired, with what
// had to change for it. What was applied before is read from the node ([LastAppliedCapacity]);
// if that cannot be read, the error is a [*BaseError] and the copy is unchanged. A nil
// node gives nil.
//
// An empty desired means that nothing is wanted any more, and takes away what was applied before. Whoever
// has no opinion (a class that describes no node) does not ask.
//
// The new node is to be stored by an update of the status subresource, which for nodes also stores
// the annotations: capacity and record are written together or not at all. It must not carry
// a change of the spec, which that write would drop.
func SyncCapacity(node *corev1.Node, desired corev1.ResourceList) (*corev1.Node, CapacityChange, error) {
	base, err := LastAppliedCapacity(node)
	if err != nil {
		return node.DeepCopy(), CapacityChange{}, err
	}
	out, change := MergeCapacity(node, base, desired)
	return out, change, nil
}

// MergeCapacity is [SyncCapacity] with base given: what was applied before, and is therefore ours to
// remove. With a nil base nothing is removed.
func MergeCapacity(node *corev1.Node, base, desired corev1.ResourceList) (*corev1.Node, CapacityChange) {
	if node == nil {
		return nil, CapacityChange{}
	}
	change := PlanCapacity(node, base, desired)
	out := node.DeepCopy()
	change.apply(out)
	return out, change
}

// PlanCapacity returns what has to change on node, by the same comparison of three states as
// [PlanTemplate]. Quantities are compared by amount: 1Gi and 1024Mi are the same. A resource
// without a name is passed over. A nil node needs nothing.
func PlanCapacity(node *corev1.Node, base, desired corev1.ResourceList) CapacityChange {
	if node == nil {
		return CapacityChange{}
	}
	if _, ok := desired[""]; ok {
		desired = maps.Clone(desired)
		delete(desired, "")
	}
	var c CapacityChange
	for name, want := range desired {
		if have, ok := node.Status.Capacity[name]; ok && have.Cmp(want) == 0 {
			continue
		}
		if c.Set == nil {
			c.Set = make(corev1.ResourceList)
		}
		c.Set[name] = want.DeepCopy()
	}
	for name := range base {
		_, wanted := desired[name]
		if _, there := node.Status.Capacity[name]; there && !wanted {
			c.Remove = append(c.Remove, name)
		}
	}
	slices.Sort(c.Remove)
	c.planRecord(node.Annotations, desired)
	return c
}

// planRecord decides what happens to the annotation.
func (c *CapacityChange) planRecord(annotations map[string]string, desired corev1.ResourceList) {
	text, recorded := annotations[LastAppliedCapacityAnnotation]
	if len(desired) == 0 {
		c.DropBase = recorded
		return
	}
	if isCapacity(text, desired) {
		return
	}
	if have, err := DecodeCapacity(text); err != nil || !equalResources(have, desired) {
		c.Base = EncodeCapacity(desired)
	}
}

// apply carries the change out on node, which it may change.
func (c CapacityChange) apply(node *corev1.Node) {
	for _, name := range c.Remove {
		delete(node.Status.Capacity, name)
	}
	if len(c.Set) > 0 && node.Status.Capacity == nil {
		node.Status.Capacity = make(corev1.ResourceList, len(c.Set))
	}
	for name, quantity := range c.Set {
		node.Status.Capacity[name] = quantity.DeepCopy()
	}
	switch {
	case c.DropBase:
		node.Annotations, _ = removeKeys(node.Annotations, []string{LastAppliedCapacityAnnotation})
	case c.Base != "":
		node.Annotations, _ = setKey(node.Annotations, LastAppliedCapacityAnnotation, c.Base)
	}
}

// EncodeCapacity returns the text under which capacity is recorded on a node: the JSON of a
// resource list.
func EncodeCapacity(capacity corev1.ResourceList) string {
	text, err := json.Marshal(capacity)
	if err != nil {
		// Names and quantities always encode.
		return "{}"
	}
	return string(text)
}

// DecodeCapacity reads a text as [EncodeCapacity] or the reference system writes it. An empty
// or blank text is nil. The error is a [*BaseError].
//
// Whoever may write to a node may write this annotation. As a quantity with an exponent of many digits
// takes minutes to parse, one with more than three is an error, and so is one of more than 256 characters.
func DecodeCapacity(text string) (corev1.ResourceList, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var quantities map[corev1.ResourceName]boundedQuantity
	if err := json.Unmarshal([]byte(text), &quantities); err != nil {
		return nil, &BaseError{Annotation: LastAppliedCapacityAnnotation, Err: err}
	}
	if quantities == nil {
		return nil, nil
	}
	capacity := make(corev1.ResourceList, len(quantities))
	for name, quantity := range quantities {
		capacity[name] = resource.Quantity(quantity)
	}
	return capacity, nil
}

// errCostlyQuantity is the cause of a [BaseError] for a quantity that nobody means.
var errCostlyQuantity = errors.New("a quantity has too many digits")

// boundedQuantity is a quantity that does not parse if that would be costly.
type boundedQuantity resource.Quantity

// UnmarshalJSON looks at the length and the exponent before it parses.
func (q *boundedQuantity) UnmarshalJSON(value []byte) error {
	text := string(value)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(value, &text); err != nil {
			return err
		}
	}
	exponent := ""
	if i := strings.LastIndexAny(text, "eE"); i >= 0 {
		exponent = strings.TrimLeft(text[i+1:], "+-")
	}
	if len(text) > 256 || len(exponent) > 3 {
		return errCostlyQuantity
	}
	return (*resource.Quantity)(q).UnmarshalJSON(value)
}

// LastAppliedCapacity returns the virtual capacity that was applied to node last, according to
// its annotation: nil if it has none or node is nil. The error is a [*BaseError].
func LastAppliedCapacity(node *corev1.Node) (corev1.ResourceList, error) {
	if node == nil {
		return nil, nil
	}
	return DecodeCapacity(node.Annotations[LastAppliedCapacityAnnotation])
}

// equalResources reports whether a and b have the same names with the same amounts.
func equalResources(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, x := range a {
		if y, ok := b[name]; !ok || x.Cmp(y) != 0 {
			return false
		}
	}
	return true
}
