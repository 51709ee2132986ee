// SPDX-License-Identifier: Apache-2.0

package permits

// Accounts returns how many keys l has in memory, including empty ones.
func Accounts(l *Ledger) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.accounts)
}
