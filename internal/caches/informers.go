// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/objects"
)

// Informers is the [machinist.Reader] of shared informers. It is complete before the first read.
type Informers struct {
	// All are the informers of which it reads objects.
	All []cache.SharedIndexInformer
	// Else reads the objects of other types. Nil means that there are none.
	Else machinist.Reader

	by map[reflect.Type]source // for objects by name, and lists without an index
	of map[byIndex]source
}

type byIndex struct {
	object reflect.Type
	name   string
}

// source is where objects of a type are read.
type source struct {
	informer cache.SharedIndexInformer // nil if there is none
	missing  error                     // without an informer; nil means that there are no objects
	target   bool
}

// Control reads the objects of a type of the control cluster, and adds the indexes of the type. A nil
// informer has no objects. It fails only for a stopped informer.
func (c *Informers) Control(o machinist.Object, informer cache.SharedIndexInformer, indexes []machinist.Index) error {
	return c.add(o, source{informer: informer}, indexes)
}

// Target reads the objects of a type of the target cluster. An informer that has not synced is an error,
// because the target cluster may not answer. A nil informer is the error missing. See [Informers.Control].
func (c *Informers) Target(o machinist.Object, informer cache.SharedIndexInformer, missing error, indexes []machinist.Index) error {
	return c.add(o, source{informer, missing, true}, indexes)
}

func (c *Informers) add(o machinist.Object, s source, indexes []machinist.Index) error {
	if c.by == nil {
		c.by, c.of = map[reflect.Type]source{}, map[byIndex]source{}
	}
	object := reflect.TypeOf(o)
	if _, other := c.by[object]; !other { // Secrets are in both clusters: those of the first are read by name
		c.by[object] = s
	}
	add := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	for _, index := range indexes {
		if reflect.TypeOf(index.Of) != object || index.Target != s.target {
			continue
		}
		c.of[byIndex{object, index.Name}] = s
		add[index.Name] = func(o any) ([]string, error) {
			defer logPanic()
			if object, ok := o.(machinist.Object); ok {
				return index.Keys(object), nil
			}
			return nil, nil
		}
	}
	if s.informer == nil {
		return nil
	}
	c.All = append(c.All, s.informer)
	for name := range s.informer.GetIndexer().GetIndexers() {
		delete(add, name) // another runner has added it
	}
	if len(add) == 0 {
		return nil
	}
	return s.informer.AddIndexers(add)
}

// find returns the cache of the objects of a type, or else the reader that has them. Both are nil if there
// are none.
func (c *Informers) find(o machinist.Object, index string) (cache.Indexer, machinist.Reader, error) {
	s, ok := c.by[reflect.TypeOf(o)]
	if index != "" {
		s, ok = c.of[byIndex{reflect.TypeOf(o), index}]
	}
	switch {
	case !ok && c.Else != nil:
		return nil, c.Else, nil
	case !ok:
		return nil, nil, fmt.Errorf("%w: %T %s", machinist.ErrNotCached, o, index)
	case s.informer == nil:
		return nil, nil, s.missing
	case s.target && !s.informer.HasSynced():
		return nil, nil, objects.ErrNotListed
	default:
		return s.informer.GetIndexer(), nil, nil
	}
}

// Get implements [machinist.Reader].
func (c *Informers) Get(ctx context.Context, o machinist.Object) (machinist.Object, error) {
	from, other, err := c.find(o, "")
	switch {
	case other != nil:
		return other.Get(ctx, o)
	case from == nil:
		return nil, err
	}
	key := o.GetName()
	if o.GetNamespace() != "" {
		key = o.GetNamespace() + "/" + key
	}
	found, _, err := from.GetByKey(key)
	object, _ := found.(machinist.Object)
	return object, err
}

// List implements [machinist.Reader].
func (c *Informers) List(ctx context.Context, o machinist.Object, index, key string) ([]machinist.Object, error) {
	from, other, err := c.find(o, index)
	switch {
	case other != nil:
		return other.List(ctx, o, index, key)
	case from == nil:
		return nil, err
	}
	var found []any
	switch {
	case index != "":
		found, err = from.ByIndex(index, key)
	case o.GetNamespace() != "":
		found, err = from.ByIndex(cache.NamespaceIndex, o.GetNamespace())
	default:
		found = from.List()
	}
	all := slices.Grow[[]machinist.Object](nil, len(found))
	for _, o := range found {
		if object, ok := o.(machinist.Object); ok {
			all = append(all, object)
		}
	}
	return all, err
}
