// SPDX-License-Identifier: Apache-2.0

package apisurface_test

import (
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/permits"
)

var _ func(stalePermitKeyTimeout, janitorFrequency time.Duration) permits.PermitGiver = permits.NewPermitGiver

// The method set, neither smaller nor larger: projects implement it in tests.
var (
	_ permits.PermitGiver = (interface {
		RegisterPermits(key string, numPermits int)
		TryPermit(key string, timeout time.Duration) bool
		ReleasePermit(key string)
		DeletePermits(key string)
		Close()
	})(nil)
	_ interface {
		RegisterPermits(key string, numPermits int)
		TryPermit(key string, timeout time.Duration) bool
		ReleasePermit(key string)
		DeletePermits(key string)
		Close()
	} = permits.PermitGiver(nil)
)
