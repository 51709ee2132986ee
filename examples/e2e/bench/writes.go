// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"maps"
	"slices"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
)

// write is what one write does to which kind of object.
type write struct{ resource, subresource, verb string }

// String returns the write as in "update machines/status".
func (w write) String() string {
	if w.subresource != "" {
		return w.verb + " " + w.resource + "/" + w.subresource
	}
	return w.verb + " " + w.resource
}

// writes are the numbers of writes.
type writes map[write]int

// writesOf counts the successful writes among requests.
func writesOf(requests []controlplane.Request) writes {
	of := writes{}
	for _, q := range requests {
		if i := column(q); i >= 0 && i < reads && q.Code < 300 {
			of[write{q.Resource, q.Subresource, q.Verb}]++
		}
	}
	return of
}

// sum returns the number of all writes.
func (of writes) sum() int {
	n := 0
	for _, times := range of {
		n += times
	}
	return n
}

// share returns the writes of one of several machines. The shares of all add up to the whole, and
// differ by one at most.
func (of writes) share(which, machines int) writes {
	part := writes{}
	for w, times := range of {
		if n := times*(which+1)/machines - times*which/machines; n > 0 {
			part[w] = n
		}
	}
	return part
}

// inOrder returns the writes in the order of a life: creations first and deletions last.
func (of writes) inOrder() []write {
	rank := func(w write) int {
		switch w.verb {
		case "create":
			return 0
		case "delete":
			return 2
		default:
			return 1
		}
	}
	return slices.SortedFunc(maps.Keys(of), func(a, b write) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.String(), b.String()))
	})
}
