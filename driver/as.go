// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"iter"
	"reflect"
)

// As returns an optional interface of a driver: [SideResourceLister] or [SideResourceDeleter]. It
// searches d and the drivers that d wraps, by their methods Unwrap() Driver, and returns the first
// match. It returns false without a match.
//
// Calls of the result pass through the wrappers of this package that are around the match:
// [Wrap], [WithDeadline] and [Observe]. A wrapper of another package that has Unwrap and not the
// optional interface is passed over. Another type than these interfaces is found only outside of
// the wrappers of this package.
func As[T any](d Driver) (T, bool) {
	var around []*wrapped
	for d := range layers(d) {
		if t, ok := d.(T); ok {
			return within(around, t)
		}
		if w, ok := d.(*wrapped); ok {
			around = append(around, w)
		}
	}
	var none T
	return none, false
}

// layers returns d and the drivers that d wraps, by their methods Unwrap() Driver.
func layers(d Driver) iter.Seq[Driver] {
	return func(yield func(Driver) bool) {
		for !isNil(d) && yield(d) {
			w, ok := d.(interface{ Unwrap() Driver })
			if !ok {
				return
			}
			d = w.Unwrap()
		}
	}
}

// within returns t with calls that pass through the wrappers, of which the first is the outermost.
// It returns false for a type whose calls cannot.
func within[T any](wrappers []*wrapped, t T) (T, bool) {
	if len(wrappers) == 0 {
		return t, true
	}
	w := &wrapped{around: func(ctx context.Context, t target, run func(context.Context) error) error {
		return nested(ctx, wrappers, t, run)
	}}
	var inside any
	switch of := any(&t).(type) {
	case *SideResourceLister:
		inside = sideLister{w, *of}
	case *SideResourceDeleter:
		inside = sideDeleter{sideLister{w, *of}, *of}
	}
	t, ok := inside.(T)
	return t, ok
}

// nested makes a call through several wrappers.
func nested(ctx context.Context, wrappers []*wrapped, t target, run func(context.Context) error) error {
	if len(wrappers) == 0 {
		return run(ctx)
	}
	return wrappers[0].around(ctx, t, func(ctx context.Context) error { return nested(ctx, wrappers[1:], t, run) })
}

// sideLister is a [SideResourceLister] in a wrapper.
type sideLister struct {
	w    *wrapped
	next SideResourceLister
}

func (s sideLister) ListSideResources(ctx context.Context, req *ListSideResourcesRequest) (*ListSideResourcesResponse, error) {
	t := target{op: OpListSideResources}
	if req != nil {
		t = aim(t.op, nil, req.MachineClass)
	}
	return pass(ctx, s.w, t, s.next.ListSideResources, req)
}

// sideDeleter is a [SideResourceDeleter] in a wrapper.
type sideDeleter struct {
	sideLister
	next SideResourceDeleter
}

func (s sideDeleter) DeleteSideResource(ctx context.Context, req *DeleteSideResourceRequest) (*DeleteSideResourceResponse, error) {
	t := target{op: OpDeleteSideResource}
	if req != nil {
		t = aim(t.op, nil, req.MachineClass)
		t.machine = req.Resource.MachineName
	}
	return pass(ctx, s.w, t, s.next.DeleteSideResource, req)
}

// isNil reports whether d is nil or a nil pointer.
func isNil(d Driver) bool {
	if d == nil {
		return true
	}
	v := reflect.ValueOf(d)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
