// SPDX-License-Identifier: Apache-2.0

package machinist

import "context"

// Requests sends requests to API servers. Package machine/client has the requests over the typed
// clients of client-go.
//
// The objects are typed, such as *v1alpha1.Machine, and results have the type of the argument. An
// object of a type that is not served is an error. Other errors are those of the API server: see
// package k8s.io/apimachinery/pkg/api/errors. Arguments are not modified, and Get and List do not keep
// them. Implementations are safe for concurrent use, do not retry, and read no cache.
type Requests interface {
	// Get reads the object with the namespace and the name of o.
	Get(ctx context.Context, o Object) (Object, error)
	// List lists the objects in the namespace of o that a label selector matches. Without a
	// namespace, it lists those of all namespaces. An empty selector matches all.
	List(ctx context.Context, o Object, selector string) ([]Object, error)
	// Create creates an object, and returns the stored one.
	Create(ctx context.Context, o Object) (Object, error)
	// Update writes an object, or its status if the subresource is "status". Its precondition is the
	// resource version of o.
	Update(ctx context.Context, o Object, subresource string) (Object, error)
	// Patch changes the object with the name of o by a strategic merge patch. A UID and a resource
	// version in the patch are preconditions.
	Patch(ctx context.Context, o Object, subresource string, patch []byte) (Object, error)
	// Delete deletes an object. Its precondition is the UID of o, and the resource version too if
	// unchanged is true.
	Delete(ctx context.Context, o Object, unchanged bool) error
}
