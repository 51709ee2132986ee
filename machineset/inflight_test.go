// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestInFlightDropsWhatShows(t *testing.T) {
	f := machineset.InFlight{}.Creating("b", now).Creating("a", now).Deleting(machineset.Delete{Name: "c", UID: "uid-c"}, now).Deleting(machineset.Delete{Name: "d", UID: "uid-d"}, now)
	require.Equal(t, "a", f.Creates[0].Name)
	require.False(t, f.Empty())

	leaving := newMachine("c", v1alpha1.MachineRunning)
	leaving.DeletionTimestamp = deletedNow()
	seen := []*v1alpha1.Machine{newMachine("a", ""), nil, leaving, newMachine("d", v1alpha1.MachineRunning)}
	got := f.Observe(seen, true)
	require.Equal(t, []machineset.Sent{{Name: "b", At: now}}, got.Creates)
	require.Equal(t, []machineset.Sent{{Name: "d", UID: "uid-d", At: now}}, got.Deletes)
	require.Len(t, f.Creates, 2, "the receiver is a value")

	// Not to be seen is gone only if everything is seen.
	require.Len(t, f.Observe(nil, false).Deletes, 2)
	require.Empty(t, f.Observe(nil, true).Deletes)
	require.Len(t, f.Observe(nil, true).Creates, 2)

	// A new machine of the same name is not the one that was deleted.
	next := newMachine("d", v1alpha1.MachineRunning)
	next.UID = "uid-new"
	require.Len(t, f.Observe([]*v1alpha1.Machine{next}, false).Deletes, 2)
}

func TestInFlightEndsByRefusalOrByALiveLook(t *testing.T) {
	later := now.Add(time.Hour)
	f := machineset.InFlight{}.Creating("a", now).Deleting(machineset.Delete{Name: "b", UID: "uid-b"}, now)
	require.True(t, f.Refused("a").Refused("b").Empty())
	require.Equal(t, f, f.Refused("c"))

	require.Empty(t, f.Looked("a", nil, later).Creates, "it did not happen")
	got := f.Looked("a", newMachine("a", ""), later)
	require.Equal(t, later, got.Creates[0].At, "it did, and will show")

	require.Empty(t, f.Looked("b", newMachine("b", v1alpha1.MachineRunning), later).Deletes, "it did not happen")
	require.Len(t, f.Looked("b", nil, later).Deletes, 1, "gone, and the cache will show it")
	replaced := newMachine("b", v1alpha1.MachineRunning)
	replaced.UID = "uid-new"
	require.Len(t, f.Looked("b", replaced, later).Deletes, 1)
	leaving := newMachine("b", v1alpha1.MachineTerminating)
	require.Equal(t, later, f.Looked("b", leaving, later).Deletes[0].At)
	require.Equal(t, now, f.Deletes[0].At, "the receiver is a value")
}

func TestInFlightSurvivesJSONAndRepeats(t *testing.T) {
	f := machineset.InFlight{}.Creating("a", now).Creating("a", now).Deleting(machineset.Delete{Name: "b", UID: "uid-b"}, now).Deleting(machineset.Delete{Name: "b", UID: "uid-b"}, now)
	require.Len(t, f.Creates, 1)
	require.Len(t, f.Deletes, 1)
	data, err := json.Marshal(f)
	require.NoError(t, err)
	var back machineset.InFlight
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, f, back)
}

func TestInFlight_FailedCall_IsDroppedOnlyIfTheServerRefusedADeletion(t *testing.T) {
	machines := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "machines"}
	tests := map[string]struct {
		err        error
		kept, look bool
	}{
		"no error":                          {nil, true, false},
		"a conflict":                        {apierrors.NewConflict(machines, "m", errors.New("old")), false, false},
		"one that exists already":           {apierrors.NewAlreadyExists(machines, "m"), false, false},
		"too many requests":                 {apierrors.NewTooManyRequests("later", 1), false, false},
		"forbidden":                         {apierrors.NewForbidden(machines, "m", errors.New("no")), false, false},
		"not found, wrapped":                {fmt.Errorf("deleting: %w", apierrors.NewNotFound(machines, "m")), false, false},
		"unavailable":                       {apierrors.NewServiceUnavailable("503"), true, true},
		"a timeout of the server":           {apierrors.NewServerTimeout(machines, "create", 1), true, false},
		"a timeout on the way":              {apierrors.NewTimeoutError("late", 1), true, false},
		"a broken connection":               {errors.New("connection reset by peer"), true, false},
		"an end of the context":             {context.DeadlineExceeded, true, false},
		"an internal error":                 {apierrors.NewInternalError(errors.New("etcd")), true, true},
		"a text that says it was forbidden": {errors.New("machines \"m\" is forbidden"), true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			next, look := machineset.InFlight{}.Deleting(machineset.Delete{Name: "m", UID: "uid-m"}, now).Failed("m", test.err)
			require.Equal(t, test.kept, !next.Empty())
			require.Equal(t, test.look, look)

			next, look = machineset.InFlight{}.Creating("m", now).Failed("m", test.err)
			require.False(t, next.Empty(), "no answer to a creation proves that there is no machine")
			require.Equal(t, test.look || !test.kept, look, "what was answered is looked for")
		})
	}
}
