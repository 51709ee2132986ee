// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// releasedAnnotation has the UID of the owner that released an object.
const releasedAnnotation = "machinist.dev/released-by"

// TestDecide_LabelsRemovedAgainAndAgain_BoundedCreations has a client that removes the labels of
// every new machine. There are never more machines than the replicas and three.
func TestDecide_LabelsRemovedAgainAndAgain_BoundedCreations(t *testing.T) {
	const most = 2 + 3
	{
		set, p := newSet(2), machineset.Policy{}
		owner := machineset.OwnerSet(set)
		var machines []*v1alpha1.Machine
		var last machineset.Decision
		for i := range 60 {
			claims := machineset.Claim(owner, set.Spec.Selector, machines)
			in := machineset.Observation{Set: set, Machines: claims.Owned, Released: claims.Released, Complete: claims.Settled(), Proven: true}
			last = machineset.Decide(in, p, now)
			if !claims.Settled() {
				require.Zero(t, created(last), "nothing is created on a view with machines that are owned and not selected")
			}
			for j := range created(last) {
				m, err := madeFor(set, fmt.Sprintf("%d-%d", i, j))
				require.NoError(t, err)
				m.UID = types.UID("uid-" + m.Name)
				machines = append(machines, m)
			}
			for _, edit := range append(claims.Release, claims.Adopt...) {
				machines[slices.Index(machines, edit.Before.(*v1alpha1.Machine))] = machineOf(edit)
			}
			for _, m := range machines {
				m.Labels = map[string]string{"app": "hijacked"}
			}
			require.LessOrEqual(t, len(machines), most)
		}
		require.Len(t, machines, most)
		require.Equal(t, machineset.ReasonLimited, last.Reason)
		require.NotZero(t, last.NextCheck)
		require.Equal(t, "machine/"+machines[0].Name, last.Holds[0].Subject)

		// One that gets its labels back is taken back, and is no longer marked.
		machines[0].Labels = map[string]string{"app": "w"}
		claims := machineset.Claim(owner, set.Spec.Selector, machines)
		require.Len(t, claims.Adopt, 1)
		machines[0] = machineOf(claims.Adopt[0])
		require.NotContains(t, machines[0].Annotations, releasedAnnotation)
		claims = machineset.Claim(owner, set.Spec.Selector, machines)
		require.Len(t, claims.Owned, 1)
		require.Len(t, claims.Released, most-1)
	}
}

func TestDecide_ReleasedMachines_CountWhileUnowned(t *testing.T) {
	released := func(name string) *v1alpha1.Machine {
		m := newMachine(name, v1alpha1.MachineRunning)
		m.Labels, m.OwnerReferences = nil, nil
		m.Annotations[releasedAnnotation] = "uid-ms"
		return m
	}
	leaving, taken, elsewhere, others := released("leaving"), released("taken"), released("elsewhere"), released("others")
	leaving.DeletionTimestamp = deletedNow()
	taken.OwnerReferences = newMachine("m", "").OwnerReferences
	taken.OwnerReferences[0].UID = "uid-another"
	elsewhere.Namespace = "elsewhere"
	others.Annotations[releasedAnnotation] = "uid-another"
	set := newSet(1)
	all := []*v1alpha1.Machine{released("b"), leaving, taken, elsewhere, others, nil, released("a")}
	claims := machineset.Claim(machineset.OwnerSet(set), set.Spec.Selector, all)
	require.Equal(t, []*v1alpha1.Machine{all[0], all[6]}, claims.Released)
	require.True(t, claims.Settled())

	in := machineset.Observation{Set: set, Complete: true, Proven: true, Released: append(all, released("c"), released("a"))} // one twice
	require.Equal(t, 1, created(machineset.Decide(in, machineset.Policy{}, now)), "3 released, and 1 is missing")
	in.Released = append(in.Released, released("d"))
	d := machineset.Decide(in, machineset.Policy{}, now)
	require.Zero(t, created(d))
	require.Equal(t, "machine/a", d.Holds[0].Subject)
	in.Set.Spec.Replicas = 4
	require.Equal(t, 3, created(machineset.Decide(in, machineset.Policy{}, now)), "4 released, 3 created: 4 and 3 in all")
	in.Released[len(in.Released)-1].Status.CurrentStatus.Phase = v1alpha1.MachineTerminating // its deletion does not show yet
	require.Equal(t, 4, created(machineset.Decide(in, machineset.Policy{}, now)))
}
