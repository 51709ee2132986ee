// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"github.com/machinist-dev/machinist/deployment"
)

type hashNamesIn struct {
	CollisionCount *int32
	Template       *template
}

type hashNamesOut struct{ HashLabel, NameSuffix string }

// The hash itself depends on the memory layout of the reference system; sets are
// found by their template and not by their hash.
func hashNames(_ hashNamesIn, out hashNamesOut) ([]string, error) {
	return nil, same("suffix", out.NameSuffix, deployment.NameSuffix(out.HashLabel))
}
