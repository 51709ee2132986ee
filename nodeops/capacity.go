// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// lastAppliedCapacity is the annotation that records the virtual capacity which was applied to
// a Node last. Key and form are those of the reference system: the JSON of a resource list.
const lastAppliedCapacity = "node.machine.sapcloud.io/last-applied-virtual-capacity"

// SyncCapacity returns what node needs so that its status.capacity contains desired, by the
// comparison of three states of [SyncTemplate]. Quantities are compared by amount: 1Gi and
// 1024Mi are the same. A resource without a name is passed over. An empty desired removes
// what was applied before, and the record. If the record cannot be read, the error says so,
// and there is no change. A nil node needs nothing.
//
// Store the new Node with an update of the status subresource, which for Nodes also stores
// the annotations.
func SyncCapacity(node *corev1.Node, desired corev1.ResourceList) (Change, error) {
	if node == nil {
		return Change{}, nil
	}
	if _, ok := desired[""]; ok {
		desired = maps.Clone(desired)
		delete(desired, "")
	}
	text, present := node.Annotations[lastAppliedCapacity]
	e, recorded, base := capacityEdit{}, len(desired) > 0 && isCapacity(text, desired), desired
	if !recorded {
		var err error
		if base, err = decodeCapacity(text); err != nil {
			return Change{}, fmt.Errorf("annotation %s cannot be read: %w", lastAppliedCapacity, err)
		}
		e.drop = present && len(desired) == 0
		if len(desired) > 0 && !equalResources(base, desired) {
			e.record = encodeCapacity(desired)
		}
	}
	e.plan(node.Status.Capacity, base, desired)
	if len(e.set) == 0 && len(e.remove) == 0 && e.record == "" && !e.drop {
		return Change{}, nil
	}
	return Change{Node: e.apply(node), Text: e.text()}, nil
}

// capacityEdit is the difference between a Node and the virtual capacity that it has to report.
type capacityEdit struct {
	set    corev1.ResourceList
	remove []corev1.ResourceName
	// record is the new text of the annotation, or empty if the old one still holds.
	record string
	// drop removes the annotation, because nothing is applied any more.
	drop bool
}

// plan compares what is there, what was applied before and what is desired.
func (e *capacityEdit) plan(live, base, desired corev1.ResourceList) {
	for name, want := range desired {
		if have, ok := live[name]; ok && have.Cmp(want) == 0 {
			continue
		}
		if e.set == nil {
			e.set = make(corev1.ResourceList)
		}
		e.set[name] = want
	}
	for name := range base {
		_, wanted := desired[name]
		if _, there := live[name]; there && !wanted {
			e.remove = append(e.remove, name)
		}
	}
	slices.Sort(e.remove)
}

// apply returns a deep copy of node with the edit.
func (e *capacityEdit) apply(node *corev1.Node) *corev1.Node {
	node = node.DeepCopy()
	for _, name := range e.remove {
		delete(node.Status.Capacity, name)
	}
	if len(e.set) > 0 && node.Status.Capacity == nil {
		node.Status.Capacity = make(corev1.ResourceList, len(e.set))
	}
	for name, quantity := range e.set {
		node.Status.Capacity[name] = quantity.DeepCopy()
	}
	switch {
	case e.drop:
		delete(node.Annotations, lastAppliedCapacity)
	case e.record != "":
		node.Annotations = setKey(node.Annotations, lastAppliedCapacity, e.record)
	}
	return node
}

// text lists the edit for people.
func (e *capacityEdit) text() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(e.set)) {
		quantity := e.set[name]
		parts = append(parts, "set "+string(name)+"="+quantity.String())
	}
	for _, name := range e.remove {
		parts = append(parts, "remove "+string(name))
	}
	switch {
	case e.drop:
		parts = append(parts, "forget what was applied")
	case e.record != "":
		parts = append(parts, "record what was applied")
	}
	return strings.Join(parts, "; ")
}

// encodeCapacity returns the text under which capacity is recorded on a Node.
func encodeCapacity(capacity corev1.ResourceList) string {
	text, err := json.Marshal(capacity)
	if err != nil { // names and quantities always encode
		return "{}"
	}
	return string(text)
}

// decodeCapacity reads a text as encodeCapacity or the reference system writes it. An empty or
// blank text is nil.
//
// Every writer of a Node may write this annotation. A quantity with an exponent of many digits
// takes minutes to parse. More than three digits there, or 256 characters, are an error.
func decodeCapacity(text string) (corev1.ResourceList, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var quantities map[corev1.ResourceName]boundedQuantity
	if err := json.Unmarshal([]byte(text), &quantities); err != nil {
		return nil, err
	}
	capacity := make(corev1.ResourceList, len(quantities))
	for name, quantity := range quantities {
		capacity[name] = resource.Quantity(quantity)
	}
	return capacity, nil
}

// errCostlyQuantity is why a quantity is not parsed that no resource has.
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
