// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestGoldenMachineSetStatus(t *testing.T) {
	type in struct {
		MachineSet          goldenSet       `json:"machineSet"`
		Machines            []goldenMachine `json:"machines"`
		ManageReplicasError *string         `json:"manageReplicasError"`
	}
	type summary struct {
		Name, OwnerRef, ProviderID string
		State                      v1alpha1.MachineState
		Type                       v1alpha1.MachineOperationType
	}
	type out struct {
		Replicas, FullyLabeledReplicas, ReadyReplicas, AvailableReplicas int32
		PreservedFailedReplicas, AutoPreserveFailedMachineCount          int32
		Conditions                                                       []goldenCondition
		FailedMachines                                                   []summary
		FailedMachinesNil                                                bool
	}
	walk(t, "machineset_status", func(t *testing.T, v vector[in, out]) {
		var failure machineset.Failure
		want := v.Out
		if v.In.ManageReplicasError != nil {
			failure.Create = errors.New(*v.In.ManageReplicasError)
			// DS-25: the reason depends on a count instead of on what failed, and
			// the message is never renewed.
			for i, c := range want.Conditions {
				if c.Type == v1alpha1.MachineSetReplicaFailure {
					require.Equal(t, v1alpha1.ConditionTrue, c.Status)
					want.Conditions[i].Reason, want.Conditions[i].Message = v1alpha1.FailedCreate, *v.In.ManageReplicasError
				}
			}
		}
		for i, f := range want.FailedMachines {
			for _, m := range v.In.Machines {
				if m.Name == f.Name { // DS-44: without an owner, that of the one before
					require.True(t, f.OwnerRef == m.Owner || m.Owner == "")
					want.FailedMachines[i].OwnerRef = m.Owner
				}
			}
		}

		s := machineset.Status(machineset.Observation{Set: v.In.MachineSet.set(), Machines: machinesOf(v.In.Machines), Complete: true}, failure, now)
		got := out{
			Replicas: s.Replicas, FullyLabeledReplicas: s.FullyLabeledReplicas, ReadyReplicas: s.ReadyReplicas,
			AvailableReplicas: s.AvailableReplicas, PreservedFailedReplicas: s.PreservedFailedReplicas,
			AutoPreserveFailedMachineCount: s.AutoPreserveFailedMachineCount, FailedMachinesNil: s.FailedMachines == nil,
		}
		for _, c := range s.Conditions {
			got.Conditions = append(got.Conditions, goldenCondition{c.Type, c.Status, c.Reason, c.Message})
		}
		if s.FailedMachines != nil {
			for _, f := range *s.FailedMachines {
				got.FailedMachines = append(got.FailedMachines, summary{f.Name, f.OwnerRef, f.ProviderID, f.LastOperation.State, f.LastOperation.Type})
			}
		}
		require.Empty(t, cmp.Diff(want, got, cmpopts.EquateEmpty()), "vector %d", v.ID)
	})
}

func TestGoldenClaim(t *testing.T) {
	type in struct {
		APICallError       string `json:"apiCallError"`
		ControllerDeleting bool   `json:"controllerDeleting"`
		ObjectDeleting     bool   `json:"objectDeleting"`
		OwnerRef           string `json:"ownerRef"`
		SelectorMatches    bool   `json:"selectorMatches"`
	}
	type out struct {
		Calls   []string `json:"calls"`
		Claimed bool     `json:"claimed"`
	}
	walk(t, "claim", func(t *testing.T, v vector[in, out]) {
		set, m := newSet(1), newMachine("m", v1alpha1.MachineRunning)
		if v.In.ControllerDeleting {
			set.DeletionTimestamp = &metav1.Time{Time: epoch}
		}
		if v.In.ObjectDeleting {
			m.DeletionTimestamp = &metav1.Time{Time: epoch}
		}
		if !v.In.SelectorMatches {
			m.Labels = map[string]string{"app": "other"}
		}
		self := machineset.OwnerSet(set).Reference()
		m.OwnerReferences = map[string][]metav1.OwnerReference{
			"none": nil, "self": {self}, "other": {withUID(self, "other")}, "nonController": {notController(self)},
		}[v.In.OwnerRef]
		require.True(t, v.In.OwnerRef == "none" || len(m.OwnerReferences) == 1)

		claims := machineset.Claim(machineset.OwnerSet(set), set.Spec.Selector, []*v1alpha1.Machine{m})
		got := out{Claimed: len(claims.Owned) == 1}
		if len(claims.Adopt) == 1 {
			got.Calls = append(got.Calls, "adopt")
			got.Claimed = v.In.APICallError == "" || v.In.APICallError == "none" || v.In.APICallError == "null"
		}
		if len(claims.Release) == 1 {
			got.Calls = append(got.Calls, "release")
		}
		require.Empty(t, cmp.Diff(v.Out, got, cmpopts.EquateEmpty()), "vector %d", v.ID)
	})
}
