// SPDX-License-Identifier: Apache-2.0

package runners

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// Front is the first part of a pass over an object that owns others of type O: a set or a deployment.
type Front[P objects.Pointer[T], O metav1.Object, T any] struct {
	Reader   machinist.Reader
	Requests machinist.Requests
	Shard    string
	Own      *Own[P]
	// Gone is called if the object does not exist.
	Gone func()
	// Decide observes the object and decides. It reports whether the actions need the object of the API
	// server.
	Decide func(ctx context.Context, o P) (claims machineset.Claims[O], live bool, err error)
}

// Begin decides on the newest known version of the object. If objects are claimed, or Decide returns true,
// it reads the object from the API server, decides again if that is another version, and then adopts and
// releases objects. It returns false if nothing is to be done: the object does not exist, or has another
// shard.
func (f Front[P, O, T]) Begin(ctx context.Context, key types.NamespacedName) (bool, error) {
	cached, err := objects.Get[P](ctx, f.Reader, key.Namespace, key.Name)
	if err == nil && cached != nil {
		cached, _ = f.Own.Newest(cached)
	}
	if err != nil || !f.mine(key, cached) {
		return false, err
	}
	claims, needed, err := f.Decide(ctx, cached)
	if err != nil || !needed && claims.Settled() {
		return err == nil, err
	}
	live, err := objects.Get[P](ctx, f.Requests, key.Namespace, key.Name)
	if err != nil || !f.mine(key, live) {
		return false, err
	}
	f.Own.Put(live)
	if live.GetResourceVersion() != cached.GetResourceVersion() {
		if claims, _, err = f.Decide(ctx, live); err != nil {
			return false, err
		}
	}
	for _, u := range slices.Concat(claims.Adopt, claims.Release) {
		if _, err := Update(ctx, f.Requests, u); objects.IgnoreNotFound(err) != nil {
			return false, err
		}
	}
	return true, nil
}

// mine reports whether the object exists and has the shard.
func (f Front[P, O, T]) mine(key types.NamespacedName, o P) bool {
	if o == nil || o.GetLabels()[v1alpha1.ShardLabelKey] != f.Shard { // what is remembered is old when it comes back
		f.Own.Forget(key)
		f.Gone()
		return false
	}
	return true
}
