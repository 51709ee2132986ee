// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"errors"
	"fmt"

	"github.com/machinist-dev/machinist/deployment"
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
	surge, unavailable, err := deployment.FencePosts(in.MaxSurge.IntOrString, in.MaxUnavailable.IntOrString, in.Desired)
	if (out.Error != nil) != (err != nil) || err != nil && !errors.Is(err, deployment.ErrBound) {
		return nil, fmt.Errorf("error %w, want %v", err, out.Error)
	}
	return nil, same("surge and unavailable", [2]int32{out.Surge, out.Unavailable}, [2]int32{surge, unavailable})
}
