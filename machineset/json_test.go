// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestDecision_JSON_NamesObjectsWithoutZeroTimes(t *testing.T) {
	set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "workers", UID: "1", DeletionTimestamp: deletedNow()}}
	named := func(name string, uid types.UID) *v1alpha1.Machine {
		return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
	}
	data, err := json.Marshal(machineset.Decision{
		Reason: machineset.ReasonTooMany,
		Actions: []machinist.Action{
			machinist.Update{Before: set, Object: set, Changes: []string{"finalizer removed"}},
			machinist.Update{Before: named("a", "2"), Object: named("a", "2"), Changes: []string{"preservation"}},
			machinist.Refresh{Kind: "Machine", Name: "b"},
			machinist.Refresh{Kind: "Machine"},
			machinist.Delete{Object: named("c", "3"), Reason: machineset.ReasonTooMany, Message: "chosen by Health"},
			machinist.Create{Object: named("", ""), Count: 2},
		},
		Holds:     []machinist.Hold{{Subject: "machine/b", Reason: machineset.ReasonNotSeen, Message: "not in the cache"}},
		NextCheck: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	})
	require.NoError(t, err)
	require.JSONEq(t, `{
		"reason": "TooManyMachines",
		"actions": [
			{"type": "Update", "subject": "machineset/workers", "uid": "1", "reason": "MachineSetDeleting", "text": "update machineset workers: finalizer removed"},
			{"type": "Update", "subject": "machine/a", "uid": "2", "reason": "OutOfSync", "text": "update machine a: preservation"},
			{"type": "Refresh", "subject": "machine/b", "reason": "NotSeen", "text": "read machine b from the API server"},
			{"type": "Refresh", "subject": "machine", "reason": "IncompleteView", "text": "list each machine from the API server"},
			{"type": "Delete", "subject": "machine/c", "uid": "3", "reason": "TooManyMachines", "text": "delete machine c: TooManyMachines: chosen by Health"},
			{"type": "Create", "count": 2, "reason": "TooFewMachines", "text": "create 2 machines"}
		],
		"holds": [{"subject": "machine/b", "reason": "NotSeen", "message": "not in the cache"}],
		"nextCheck": "2026-03-01T12:00:00Z"
	}`, string(data))

	for _, actions := range [][]machinist.Action{nil, {nil}, {machinist.Create{}}} {
		_, err = json.Marshal(machineset.Decision{Actions: actions})
		require.NoError(t, err)
	}
}
