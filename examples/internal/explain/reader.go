// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machinist-dev/machinist"
	drainrunner "github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/internal/runners"
)

// podsOfNode is the index of pods by the name of their Node.
var podsOfNode = func() string {
	for _, i := range drainrunner.Indexes() {
		if _, ok := i.Of.(*corev1.Pod); ok {
			return i.Name
		}
	}
	return ""
}()

// reader is the Reader of all runners. It returns an error for a resource that cannot be read, so that
// no object of it counts as missing. Drains do without lists that cannot be read.
type reader struct {
	machinist.Reader
	missing map[string]error // by resource
}

// Get returns an object.
func (r reader) Get(ctx context.Context, o machinist.Object) (machinist.Object, error) {
	if err := r.unreadable(o, ""); err != nil {
		return nil, err
	}
	return r.Reader.Get(ctx, o)
}

// List returns objects.
func (r reader) List(ctx context.Context, o machinist.Object, index, key string) ([]machinist.Object, error) {
	if err := r.unreadable(o, index); err != nil {
		return nil, err
	}
	return r.Reader.List(ctx, o, index, key)
}

// unreadable returns why objects of the type of o cannot be read, or nil.
func (r reader) unreadable(o machinist.Object, index string) error {
	of := fmt.Sprintf("%T", o)
	resource := resourceOf[of[strings.LastIndex(of, ".")+1:]]
	if index == runners.ByOwner {
		resource = tokens
	}
	err := r.missing[resource]
	switch {
	case err == nil:
		return nil
	case resource == budgets || resource == attachments || resource == claims: // drains do without
		return machinist.ErrNotCached
	default:
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", err)
	}
}
