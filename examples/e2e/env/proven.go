// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"

	"github.com/machinist-dev/machinist/examples/rigs/audit"
)

// proven returns an error if a journal leaves open what it must not. In an outage
// that is what it leaves open without having missed anything, and the end, when the
// API server is back.
func (o Options) proven(f audit.Figures) error {
	switch {
	case f.Complete(), o.Outage && f.Gaps > 0 && !f.CutShort:
		return nil
	case o.Outage && f.Gaps == 0:
		return fmt.Errorf("the journal cannot tell, although it has missed nothing: %s", f)
	default:
		return fmt.Errorf("the journal has missed something, and cannot tell whether every bound was kept: %s", f)
	}
}
