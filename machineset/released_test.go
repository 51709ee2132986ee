// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// carryOutEdit does to a machine what an API server does.
func carryOutEdit(t *testing.T, m *v1alpha1.Machine, edit machineset.OwnersEdit) {
	t.Helper()
	data, err := edit.Patch()
	require.NoError(t, err)
	var patch struct {
		Metadata struct {
			Annotations map[string]*string `json:"annotations"`
		} `json:"metadata"`
	}
	require.NoError(t, json.Unmarshal(data, &patch))
	require.Equal(t, edit.UID, m.UID)
	m.OwnerReferences = edit.OwnerReferences
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	for key, value := range patch.Metadata.Annotations {
		if value == nil {
			delete(m.Annotations, key)
		} else {
			m.Annotations[key] = *value
		}
	}
}

// MS-1: a client that takes the labels off every machine a set makes. Whatever it
// does, there are never more than the set wants and three.
func TestWhoeverTakesAwayLabelsDoesNotMakeASetCreateForEver(t *testing.T) {
	for _, c := range []struct{ replaced, most int }{{0, 2 + machineset.DefaultReplaced}, {1, 3}, {-1, 2}, {7, 9}} {
		set, p := newSet(2), machineset.Policy{Replaced: c.replaced}
		owner := machineset.OwnerSet(set)
		var machines []*v1alpha1.Machine
		var last machineset.Decision
		for i := range 60 {
			claims := machineset.Claim(owner, set.Spec.Selector, machines)
			in := machineset.Observation{Set: set, Machines: claims.Owned, Released: claims.Released, Complete: claims.Settled()}
			last = machineset.Plan(in, p, now)
			if !claims.Settled() {
				require.Zero(t, created(last), "nothing is created on a view with machines that are owned and not selected")
			}
			for j := range created(last) {
				m, err := machineset.NewMachine(set, fmt.Sprintf("ms-%d-%d", i, j))
				require.NoError(t, err)
				m.UID = types.UID("uid-" + m.Name)
				machines = append(machines, m)
			}
			for _, change := range append(claims.Release, claims.Adopt...) {
				carryOutEdit(t, change.Object, change.Edit)
			}
			for _, m := range machines {
				m.Labels = map[string]string{"app": "hijacked"}
			}
			require.LessOrEqual(t, len(machines), c.most)
		}
		require.Len(t, machines, c.most)
		require.Equal(t, machineset.ReasonReleased, last.Reason)
		require.NotZero(t, last.NextCheck)
		require.Equal(t, machines[0].Name, last.Holds[0].Subject)

		// One that gets its labels back is taken back, and is no longer marked.
		machines[0].Labels = map[string]string{"app": "w"}
		claims := machineset.Claim(owner, set.Spec.Selector, machines)
		require.Len(t, claims.Adopt, 1)
		carryOutEdit(t, machines[0], claims.Adopt[0].Edit)
		require.NotContains(t, machines[0].Annotations, machineset.ReleasedAnnotation)
		claims = machineset.Claim(owner, set.Spec.Selector, machines)
		require.Len(t, claims.Owned, 1)
		require.Len(t, claims.Released, c.most-1)
	}
}

func TestOfMachinesThatWereReleasedOnlyThoseCountThatAreStillThereAndNobodys(t *testing.T) {
	released := func(name string) *v1alpha1.Machine {
		m := newMachine(name, v1alpha1.MachineRunning)
		m.Labels, m.OwnerReferences = nil, nil
		m.Annotations[machineset.ReleasedAnnotation] = "uid-ms"
		return m
	}
	leaving, taken, elsewhere, others := released("leaving"), released("taken"), released("elsewhere"), released("others")
	leaving.DeletionTimestamp = deletedNow()
	taken.OwnerReferences = newMachine("m", "").OwnerReferences
	taken.OwnerReferences[0].UID = "uid-another"
	elsewhere.Namespace = "elsewhere"
	others.Annotations[machineset.ReleasedAnnotation] = "uid-another"
	set := newSet(1)
	all := []*v1alpha1.Machine{released("b"), leaving, taken, elsewhere, others, nil, released("a")}
	claims := machineset.Claim(machineset.OwnerSet(set), set.Spec.Selector, all)
	require.Equal(t, []*v1alpha1.Machine{all[0], all[6]}, claims.Released)
	require.True(t, claims.Settled())

	in := machineset.Observation{Set: set, Complete: true, Released: append(all, released("a"))} // one twice
	require.Equal(t, 1, created(machineset.Plan(in, machineset.Policy{Replaced: 2}, now)))
	d := machineset.Plan(in, machineset.Policy{Replaced: 1}, now)
	require.Zero(t, created(d))
	require.Equal(t, "a", d.Holds[0].Subject)
	in.Set.Spec.Replicas = 4
	require.Equal(t, 3, created(machineset.Plan(in, machineset.Policy{Replaced: 1}, now)), "2 released, 3 created: 4 and 1 in all")
}

func TestAnOwnerWithoutAUIDHasLetNothingGo(t *testing.T) {
	set := newSet(1)
	stranger := &v1alpha1.Machine{}
	stranger.Name, stranger.Namespace, stranger.UID = "m", set.Namespace, "u"
	owner := machineset.OwnerSet(set)
	owner.UID = ""
	require.Empty(t, machineset.Claim(owner, set.Spec.Selector, []*v1alpha1.Machine{stranger}).Released)
}

func TestAReleasedMachineThatIsTerminatingIsReplaced(t *testing.T) {
	set := newSet(1)
	released := &v1alpha1.Machine{}
	released.Name, released.Namespace, released.UID = "m", set.Namespace, "u"
	released.Annotations = map[string]string{machineset.ReleasedAnnotation: string(set.UID)}
	in := machineset.Observation{Set: set, Released: []*v1alpha1.Machine{released}, Complete: true}
	require.Zero(t, created(machineset.Plan(in, machineset.Policy{Replaced: -1}, now)))
	released.Status.CurrentStatus.Phase = v1alpha1.MachineTerminating // its deletion does not show yet
	require.Equal(t, 1, created(machineset.Plan(in, machineset.Policy{Replaced: -1}, now)))
}
