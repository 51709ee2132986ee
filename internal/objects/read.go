// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
)

// ErrNotListed means that a cache has no first list yet.
var ErrNotListed = errors.New("the informer has not synced")

// Pointer is a pointer to an API object.
type Pointer[T any] interface {
	*T
	metav1.Object
}

// Getter reads an object: it is a Reader or Requests.
type Getter interface {
	Get(ctx context.Context, o machinist.Object) (machinist.Object, error)
}

// Get reads an object by its name. It returns nil if there is none.
func Get[P Pointer[T], T any](ctx context.Context, r Getter, namespace, name string) (P, error) {
	o, asked := question[P](namespace, name)
	found, err := r.Get(ctx, o)
	if found == nil || err != nil {
		asked()
		return nil, IgnoreNotFound(err)
	}
	if found != machinist.Object(o) { // a Reader may fill the object that it was given
		asked()
	}
	return Typed[P](found)
}

// questions are objects which only say what is read, in a pool for each type. A pass over a deployment
// asks for each of its Nodes, and an empty Node takes a kilobyte.
var questions sync.Map

// question returns an object with a namespace and a name, and a function that takes it back.
func question[P Pointer[T], T any](namespace, name string) (P, func()) {
	kind := reflect.TypeFor[T]()
	pool, ok := questions.Load(kind)
	if !ok {
		pool, _ = questions.LoadOrStore(kind, &sync.Pool{New: func() any { return P(new(T)) }})
	}
	from := pool.(*sync.Pool) //nolint:forcetypeassert // nothing else is stored
	o := from.Get().(P)       //nolint:forcetypeassert // the pool of this type
	o.SetNamespace(namespace)
	o.SetName(name)
	return o, func() {
		var empty T
		*o = empty
		from.Put(o)
	}
}

// List returns the objects of a Reader with a key of an index.
func List[P Pointer[T], T any](ctx context.Context, r machinist.Reader, index, key string) ([]P, error) {
	o, asked := question[P]("", "")
	defer asked()
	found, err := r.List(ctx, o, index, key)
	return All[P](found, err)
}

// In returns the objects of a Reader in a namespace, or all if the namespace is empty.
func In[P Pointer[T], T any](ctx context.Context, r machinist.Reader, namespace string) ([]P, error) {
	o, asked := question[P](namespace, "")
	defer asked()
	found, err := r.List(ctx, o, "", "")
	return All[P](found, err)
}

// All returns the objects of a response, in a new slice.
func All[T any](found []machinist.Object, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	all := make([]T, len(found))
	for i, o := range found {
		if all[i], err = Typed[T](o); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Typed returns an object of a response. A Reader or Requests of an importer may return an object of another type.
func Typed[T any](o machinist.Object) (T, error) {
	t, ok := o.(T)
	if !ok {
		return t, fmt.Errorf("the response has an object of type %T instead of %T", o, t)
	}
	return t, nil
}

// IgnoreNotFound returns nil for a NotFound error, and other errors unchanged.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// KeyOf returns the key of an object.
func KeyOf(o machinist.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Object is a pointer to a typed object.
type Object interface {
	comparable
	metav1.Object
}

// Versions returns the versions of an object before and after a change that exist, if they have the
// type T.
func Versions[T Object](before, after metav1.Object) []T {
	var none T
	var versions []T
	for _, o := range []metav1.Object{before, after} {
		if t, ok := o.(T); ok && t != none {
			versions = append(versions, t)
		}
	}
	return versions
}

// Both returns the versions of an object before and after a change. One that does not exist, or has
// another type than T, is nil.
func Both[T Object](before, after metav1.Object) (b, a T) {
	b, _ = before.(T)
	a, _ = after.(T)
	return b, a
}
