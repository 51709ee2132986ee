// SPDX-License-Identifier: Apache-2.0

package drain

import "cmp"

// compareVersions orders resource versions, which are decimal numbers, the oldest
// first. Those that are none have an order, too, and no meaning.
func compareVersions(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
