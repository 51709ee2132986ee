// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"maps"
	"slices"
)

// A table has objects by name, in the order of their creation.
type table[T comparable] struct {
	at   map[string]int
	rows []T // with gaps
	gaps int

	changes int // how often it has changed
}

func (t *table[T]) get(name string) T {
	if i, ok := t.at[name]; ok {
		return t.rows[i]
	}
	var none T
	return none
}

func (t *table[T]) put(name string, object T) {
	t.changes++
	if i, ok := t.at[name]; ok {
		t.rows[i] = object
		return
	}
	if t.at == nil {
		t.at = map[string]int{}
	}
	t.at[name] = len(t.rows)
	t.rows = append(t.rows, object)
}

func (t *table[T]) remove(name string) {
	i, ok := t.at[name]
	if !ok {
		return
	}
	var none T
	t.changes++
	t.rows[i] = none
	delete(t.at, name)
	if t.gaps++; t.gaps > 16 && t.gaps > len(t.rows)/2 {
		t.compact()
	}
}

func (t *table[T]) compact() {
	var none T
	names := make([]string, len(t.rows))
	for name, i := range t.at {
		names[i] = name
	}
	t.rows = slices.DeleteFunc(t.rows, func(o T) bool { return o == none })
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	for i, name := range names {
		t.at[name] = i
	}
	t.gaps = 0
}

// list returns the objects, with zero values for removed ones. The table owns the slice, which is
// valid until the next change.
func (t *table[T]) list() []T { return t.rows }

// all returns the objects. The caller owns the slice.
func (t *table[T]) all() []T {
	var none T
	return slices.DeleteFunc(slices.Clone(t.rows), func(o T) bool { return o == none })
}

func (t *table[T]) clone() table[T] {
	return table[T]{at: maps.Clone(t.at), rows: slices.Clone(t.rows), gaps: t.gaps, changes: t.changes}
}
