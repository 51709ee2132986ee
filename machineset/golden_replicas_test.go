// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// slowStart is what a shell does with batches: a batch is finished, and none is
// begun after a failure. Calls count from 1; failFrom 0 is never.
func slowStart(batches []int, failFrom int) (calls, successes int) {
	for _, batch := range batches {
		for range batch {
			calls++
			if failFrom == 0 || calls < failFrom {
				successes++
			}
		}
		if successes < calls {
			break
		}
	}
	return calls, successes
}

func TestGoldenManageReplicas(t *testing.T) {
	type in struct {
		FailCreateFrom int             `json:"failCreateFrom"`
		MachineSet     goldenSet       `json:"machineSet"`
		Machines       []goldenMachine `json:"machines"`
	}
	type out struct {
		CreateAttempts    int      `json:"createAttempts"`
		Created           int      `json:"created"`
		Deleted           []string `json:"deleted"`
		MarkedTerminating []string `json:"markedTerminating"`
	}
	excused := 0
	walk(t, "manage_replicas", func(t *testing.T, v vector[in, out]) {
		set, machines := v.In.MachineSet.set(), machinesOf(v.In.Machines)
		alive := func(names []string) []string {
			slices.Sort(names)
			return slices.DeleteFunc(names, func(name string) bool {
				return slices.ContainsFunc(machines, func(m *v1alpha1.Machine) bool {
					return m.Name == name && m.DeletionTimestamp != nil
				})
			})
		}

		// The twin with all defects is the reference system.
		n, names := reference{}.manage(set, machines)
		calls, successes := slowStart(machineset.Batches(n), v.In.FailCreateFrom)
		golden := out{CreateAttempts: calls, Created: successes, Deleted: alive(names)}
		golden.MarkedTerminating = golden.Deleted
		require.Empty(t, cmp.Diff(v.Out, golden, cmpopts.EquateEmpty()), "vector %d: twin", v.ID)

		// The twin without defects is this package.
		nodes := map[string]machineset.NodeView{}
		for _, m := range v.In.Machines {
			if m.Node != "" {
				nodes[m.Node] = machineset.NodeView{Found: true}
			}
		}
		d := machineset.Decide(machineset.Observation{Set: set, Machines: machines, Complete: true, Nodes: nodes}, machineset.Policy{}, now)
		n, names = fixed.manage(set, machines)
		calls, successes = slowStart(machineset.Batches(n), v.In.FailCreateFrom)
		want := out{CreateAttempts: calls, Created: successes, Deleted: alive(names)}
		calls, successes = slowStart(machineset.Batches(created(d)), v.In.FailCreateFrom)
		got := out{CreateAttempts: calls, Created: successes, Deleted: sorted(deleted(d))}
		require.Empty(t, cmp.Diff(want, got, cmpopts.EquateEmpty()), "vector %d", v.ID)
		for _, m := range machines {
			if slices.Contains(got.Deleted, m.Name) {
				s, changed := machineset.TerminatingStatus(m.Status, now)
				require.True(t, changed)
				require.Equal(t, v1alpha1.MachineTerminating, s.CurrentStatus.Phase)
				require.Nil(t, s.CurrentStatus.PreserveExpiryTime)
			}
		}
		if !cmp.Equal(v.Out.Deleted, got.Deleted, cmpopts.EquateEmpty()) || v.Out.Created != got.Created {
			excused++
		}
	})
	t.Logf("%d vectors show a defect that is fixed", excused)
}

func TestGoldenScaleDownOrder(t *testing.T) {
	type in struct {
		Machines []goldenMachine `json:"machines"`
	}
	type out struct {
		DeletionOrder [][]string `json:"deletionOrder"`
	}
	walk(t, "scale_down_order", func(t *testing.T, v vector[in, out]) {
		machines := machinesOf(v.In.Machines)
		group := map[string]int{}
		for i, names := range v.Out.DeletionOrder {
			for _, name := range names {
				group[name] = i
			}
		}
		compare := machineset.CompareForDeletion(now)
		for _, a := range machines {
			for _, b := range machines {
				if a == b {
					require.Zero(t, compare(a, b))
					continue
				}
				// The twin with the defect reproduces the vector …
				require.Equal(t, group[a.Name] < group[b.Name], reference{}.less(a, b), "vector %d: twin: %s %s", v.ID, a.Name, b.Name)
				// … and without it agrees with the package, which breaks ties by name.
				want := fixed.less(a, b) || !fixed.less(b, a) && a.Name < b.Name
				require.Equal(t, want, compare(a, b) < 0, "vector %d: %s %s", v.ID, a.Name, b.Name)
			}
		}
		first := machineset.FirstToGo(machines, len(machines), now)
		require.True(t, slices.IsSortedFunc(first, compare))
		require.Len(t, first, len(machines))
	})
}

func TestGoldenMarkedForDeletion(t *testing.T) {
	type in struct {
		LastReplicaChangeByScalerTime string          `json:"lastReplicaChangeByScalerTime"`
		Machines                      []goldenMachine `json:"machines"`
	}
	type out struct {
		Marked []string `json:"marked"`
	}
	walk(t, "marked_for_deletion", func(t *testing.T, v vector[in, out]) {
		set := newSet(1)
		if at := v.In.LastReplicaChangeByScalerTime; at != "" {
			set.Annotations = map[string]string{v1alpha1.LastDeploymentReplicaChangeByScalerTime: at}
		}
		marked := []string{}
		for _, m := range machinesOf(v.In.Machines) {
			if machineset.NamedByAutoscaler(set, m) {
				marked = append(marked, m.Name)
			}
		}
		require.Equal(t, v.Out.Marked, marked, "vector %d", v.ID)
	})
}

func TestGoldenFailedMachineTermination(t *testing.T) {
	type in struct {
		LastAppliedNodeValue    string `json:"lastAppliedNodeValue"`
		MachineAnnotation       string `json:"machineAnnotation"`
		Node                    string `json:"node"`
		PreserveExpiryInSeconds *int   `json:"preserveExpiryInSeconds"`
	}
	type out struct {
		Terminate bool `json:"terminate"`
	}
	walk(t, "failed_machine_termination", func(t *testing.T, v vector[in, out]) {
		m := newMachine("m", v1alpha1.MachineFailed)
		m.Status.CurrentStatus.PreserveExpiryTime = expiry(v.In.PreserveExpiryInSeconds)
		m.Annotations[v1alpha1.PreserveMachineAnnotationKey] = v.In.MachineAnnotation
		m.Annotations[v1alpha1.LastAppliedNodePreserveValueAnnotationKey] = v.In.LastAppliedNodeValue
		var view *machineset.NodeView
		switch v.In.Node {
		case "<nonode>":
		case "<missing>":
			m.Labels[v1alpha1.NodeLabelKey] = "n"
			view = &machineset.NodeView{}
		default:
			m.Labels[v1alpha1.NodeLabelKey] = "n"
			view = &machineset.NodeView{Found: true, Preserve: v.In.Node}
		}
		want := v.Out.Terminate
		asks := slices.Contains([]string{"now", "when-failed", "auto-preserved"}, v.In.MachineAnnotation)
		if v.In.Node == "<missing>" && v.In.PreserveExpiryInSeconds == nil && asks {
			require.True(t, want, "vector %d shows DS-28", v.ID)
			want = false // the machine controller is about to preserve it
		}
		got, reason := machineset.ReplaceFailed(m, view, now)
		require.Equal(t, want, got, "vector %d", v.ID)
		require.NotEmpty(t, reason)
	})
}

func TestGoldenSlowStart(t *testing.T) {
	type in struct {
		Count            int `json:"count"`
		FailFromCall     int `json:"failFromCall"`
		InitialBatchSize int `json:"initialBatchSize"`
	}
	type out struct {
		Calls     int  `json:"calls"`
		Failed    bool `json:"failed"`
		Successes int  `json:"successes"`
	}
	walk(t, "slow_start", func(t *testing.T, v vector[in, out]) {
		calls, successes := slowStart(machineset.BatchesFrom(v.In.Count, v.In.InitialBatchSize), v.In.FailFromCall)
		got := out{Calls: calls, Failed: successes < calls, Successes: successes}
		require.Equal(t, v.Out, got, "vector %d", v.ID)
	})
}

func TestGoldenAutoPreservation(t *testing.T) {
	type in struct {
		Max      int             `json:"autoPreserveFailedMachineMax"`
		Count    int             `json:"statusAutoPreserveCount"`
		Machines []goldenMachine `json:"machines"`
	}
	type out struct {
		PreserveAnnotations map[string]string `json:"preserveAnnotations"`
	}
	walk(t, "auto_preservation", func(t *testing.T, v vector[in, out]) {
		machines := machinesOf(v.In.Machines)
		grant, revoke := machineset.AutoPreserve(machines, nil, v.In.Max-v.In.Count)
		got := map[string]string{}
		for _, m := range machines {
			if value, found := m.Annotations[v1alpha1.PreserveMachineAnnotationKey]; found && !slices.Contains(revoke, m) {
				got[m.Name] = value
			}
		}
		for _, m := range grant {
			got[m.Name] = v1alpha1.PreserveMachineAnnotationValuePreservedByMCM
		}
		require.Empty(t, cmp.Diff(v.Out.PreserveAnnotations, got, cmpopts.EquateEmpty()), "vector %d", v.ID)
	})
}

func created(d machineset.Decision) int {
	n := 0
	for _, a := range d.Actions {
		if c, ok := a.(machineset.Create); ok {
			n += c.Count
		}
	}
	return n
}

func deleted(d machineset.Decision) []string {
	var names []string
	for _, a := range d.Actions {
		if del, ok := a.(machineset.Delete); ok {
			names = append(names, del.Name)
		}
	}
	return names
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
