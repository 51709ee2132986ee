// SPDX-License-Identifier: Apache-2.0

package drain

// spendBudgets holds the requests that a budget is known to refuse.
func (r *round) spendBudgets(rows []Row) {
	_ = rows
}
