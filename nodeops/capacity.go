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

// lastAppliedCapacity is the annotation of the virtual capacity that was applied last. Key and
// form, the JSON of a resource list, are those of MCM.
const lastAppliedCapacity = "node.machine.sapcloud.io/last-applied-virtual-capacity"

// SyncCapacity returns the change after which status.capacity of node contains desired. It
// compares three states, as [SyncTemplate] does. Quantities are compared by amount: 1Gi and
// 1024Mi are equal. A resource without a name is ignored. An empty desired removes what was
// applied before, and its record. If the record cannot be read, it returns an error and no
// change. A nil node has no change.
//
// Store the Node of the change with an update of the status subresource, which also stores the
// annotations of Nodes.
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

// capacityEdit is the difference between a Node and its desired virtual capacity.
type capacityEdit struct {
	set    corev1.ResourceList
	remove []corev1.ResourceName
	// record is the new value of the annotation. Empty means no change.
	record string
	// drop removes the annotation.
	drop bool
}

// plan compares the live capacity, that applied before (base) and the desired one.
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

// text returns the edit as text.
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

// encodeCapacity returns the value of the annotation for a capacity.
func encodeCapacity(capacity corev1.ResourceList) string {
	text, err := json.Marshal(capacity)
	if err != nil { // names and quantities always encode
		return "{}"
	}
	return string(text)
}

// decodeCapacity reads a value of the annotation, as encodeCapacity and MCM write it. It returns
// nil for a blank value.
//
// Every writer of Nodes can write the annotation, and a quantity with an exponent of many digits
// takes minutes to parse. More than three digits in the exponent, or more than 256 characters,
// are an error.
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

// errCostlyQuantity is the error of a quantity that is not parsed because of its length.
var errCostlyQuantity = errors.New("a quantity has too many digits")

// boundedQuantity is a quantity of limited length.
type boundedQuantity resource.Quantity

// UnmarshalJSON checks the length and the exponent before it parses.
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
