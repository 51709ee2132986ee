// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"fmt"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type fencePostsIn struct {
	Desired                  int32
	MaxSurge, MaxUnavailable bound
}

type fencePostsOut struct {
	Surge, Unavailable int32
	Error              *string
}

func fencePosts(in fencePostsIn, out fencePostsOut) ([]string, error) {
	d := &v1alpha1.MachineDeployment{}
	d.Spec.Replicas = in.Desired
	d.Spec.Strategy = strategyOf("RollingUpdate", "", in.MaxSurge, in.MaxUnavailable)
	b, err := deployment.BoundsOf(d)
	if (out.Error != nil) != (err != nil) {
		return nil, fmt.Errorf("error %w, want %v", err, out.Error)
	}
	want, deviations := readBounds(out.Surge, out.Unavailable, in.Desired)
	if err != nil {
		want = deployment.Bounds{Desired: int64(in.Desired)}
	}
	return deviations, same("bounds", want, b)
}

// readBounds returns the bounds that we make of those of MCM. No more
// machines may be unavailable than are wanted. A negative bound (DS-14) is none, and if no
// other is left one machine may be unavailable.
func readBounds(surge, unavailable, desired int32) (b deployment.Bounds, deviations []string) {
	if surge < 0 || unavailable < 0 {
		deviations = []string{"DS-14"}
	}
	b = deployment.Bounds{Desired: int64(desired), Surge: int64(max(0, surge)), Unavailable: int64(max(0, unavailable))}
	if b.Surge == 0 && b.Unavailable == 0 {
		b.Unavailable = 1
	}
	b.Unavailable = min(b.Unavailable, b.Desired)
	return b, deviations
}
