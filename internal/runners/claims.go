// SPDX-License-Identifier: Apache-2.0

package runners

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/machineset"
)

// WriteClaims adopts and releases objects for an owner. live is the owner, just read from the API server.
func WriteClaims[T metav1.Object](ctx context.Context, r machinist.Requests, claims machineset.Claims[T], owner machineset.Owner, live metav1.Object) error {
	if len(claims.Adopt) > 0 {
		if err := owner.MayAdopt(live); err != nil {
			return err
		}
	}
	for _, u := range slices.Concat(claims.Adopt, claims.Release) {
		if _, err := Update(ctx, r, u); objects.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
