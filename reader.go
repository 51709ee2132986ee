// SPDX-License-Identifier: Apache-2.0

package machinist

import (
	"context"
	"errors"
)

// Reader reads objects from caches, each by its name or by an [Index]. The Informers of a runner are a
// Reader, and drain/runner has one over an API server.
//
// The objects are typed, such as *v1alpha1.Machine, and results have the type of the argument. Results
// are shared with the caches and are not modified. A Reader does not keep the argument. The error of a
// type of which the Reader has no objects is [ErrNotCached], and that of objects of the target cluster is
// machine.ErrNoTarget if the machines join none. Implementations are safe for concurrent use.
type Reader interface {
	// Get returns the object with the namespace and the name of o. It is nil if there is none.
	Get(ctx context.Context, o Object) (Object, error)
	// List returns all objects in the namespace of o, or in all namespaces if o has none. With an index,
	// it returns those objects of all namespaces that have the key.
	List(ctx context.Context, o Object, index, key string) ([]Object, error)
}

// Index is an index of the objects of one type, which a [Reader] needs to list them by a key. Package
// machine/runner has the indexes of all runners.
type Index struct {
	// Name is the name of the index. Types may have indexes of one name.
	Name string
	// Of is an object of the type.
	Of Object
	// Target means that the objects are those of the target cluster.
	Target bool
	// Keys returns the keys of an object. An object without keys is not in the index.
	Keys func(o Object) []string
}

// ErrNotCached is the error of a [Reader] that has no objects of a type.
var ErrNotCached = errors.New("no objects of this type are cached")
