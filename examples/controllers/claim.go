// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machineset"
)

// adoptAndRelease writes what claims say about owner references. live is the
// owner, read from the API server just now.
func adoptAndRelease[T metav1.Object](
	ctx context.Context, owner machineset.Owner, live metav1.Object, claims machineset.Claims[T],
	patch func(ctx context.Context, name string, t types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (T, error),
) error {
	if claims.NeedsLiveOwner() {
		if err := owner.MayAdopt(live); err != nil {
			return err
		}
	}
	for _, change := range slices.Concat(claims.Adopt, claims.Release) {
		data, err := change.Edit.Patch()
		if err != nil {
			return err
		}
		_, err = patch(ctx, change.Edit.Name, types.MergePatchType, data, metav1.PatchOptions{})
		if ignoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
