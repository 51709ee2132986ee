// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machineset"
)

// ownerKey says whose an object is: its controller's, or, if it has none, anybody's
// in its namespace.
func ownerKey[T metav1.Object](o T) []string {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return []string{string(owner.UID)}
	}
	return []string{o.GetNamespace()}
}

// claim returns what an owner has, after it has written what is due to owner
// references. live is the owner, read from the API server just now, and of finds
// objects by their ownerKey. Objects without owner stay so if they are of another shard.
func claim[T metav1.Object](
	ctx context.Context, owner machineset.Owner, live metav1.Object, selector *metav1.LabelSelector, of func(ownerKey string) []T,
	patch func(ctx context.Context, name string, t types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (T, error),
) (machineset.Claims[T], error) {
	orphans := slices.DeleteFunc(of(owner.Namespace), func(o T) bool { return o.GetLabels()[ShardLabel] != live.GetLabels()[ShardLabel] })
	claims := machineset.Claim(owner, selector, slices.Concat(of(string(owner.UID)), orphans))
	if claims.NeedsLiveOwner() {
		if err := owner.MayAdopt(live); err != nil {
			return claims, err
		}
	}
	for _, edit := range slices.Concat(claims.Adopt, claims.Release) {
		data, err := edit.Patch()
		if err != nil {
			return claims, err
		}
		_, err = patch(ctx, edit.Name, types.MergePatchType, data, metav1.PatchOptions{})
		if ignoreNotFound(err) != nil {
			return claims, err
		}
	}
	return claims, nil
}
