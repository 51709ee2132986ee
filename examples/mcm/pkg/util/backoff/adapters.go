// SPDX-License-Identifier: Apache-2.0

// Package backoff repeats operations. It has names of MCM.
package backoff

import (
	"context"
	"time"

	"github.com/gardener/machine-controller-manager/internal/waits"
)

// WaitUntil is [waits.Until].
func WaitUntil(ctx context.Context, initialInterval, maxInterval, maxElapsedTime time.Duration, operation func() error) error {
	return waits.Until(ctx, initialInterval, maxInterval, maxElapsedTime, operation)
}
