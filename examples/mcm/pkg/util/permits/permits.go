// SPDX-License-Identifier: Apache-2.0

// Package permits has the permit giver of MCM. New programs use a Ledger of
// [github.com/machinist-dev/machinist/permits], whose permits have holders.
package permits

import (
	"time"

	"github.com/gardener/machine-controller-manager/internal/permits"
)

// PermitGiver is [permits.PermitGiver].
type PermitGiver = permits.PermitGiver

// NewPermitGiver is [permits.NewPermitGiver].
func NewPermitGiver(stalePermitKeyTimeout, janitorFrequency time.Duration) PermitGiver {
	return permits.NewPermitGiver(stalePermitKeyTimeout, janitorFrequency)
}
