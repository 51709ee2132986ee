// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"github.com/machinist-dev/machinist/deployment"
)

type historyCleanupIn struct {
	OldMSs               []*machineSet
	RevisionHistoryLimit *int32
}

type historyCleanupOut struct {
	Deleted []string
	Error   *string
}

func historyCleanup(in historyCleanupIn, out historyCleanupOut) ([]string, error) {
	got := historyCleanupOut{Error: out.Error}
	for _, s := range deployment.HistoryCleanup(setsOf(in.OldMSs), in.RevisionHistoryLimit) {
		got.Deleted = append(got.Deleted, s.Name)
	}
	return nil, same("deleted", out, got)
}
