// SPDX-License-Identifier: Apache-2.0

package machineset

// Batches splits n creations into batches of 1, 2, 4, 8, …, of which the last
// takes what is left. The calls of one batch may run at the same time; a batch
// is begun only if no call of the batches before it failed. So a set whose
// machines cannot be created finds out after one call, and not after a hundred.
//
// Fewer than 1 creations have no batches.
func Batches(n int) []int { return BatchesFrom(n, 1) }

// BatchesFrom is [Batches] with another size of the first batch. A size below 1 gives
// no batches.
func BatchesFrom(n, first int) []int {
	var batches []int
	for size := first; size > 0 && n > 0; {
		batch := min(size, n)
		batches = append(batches, batch)
		n -= batch
		if size <= n { // so that doubling cannot overflow
			size *= 2
		}
	}
	return batches
}
