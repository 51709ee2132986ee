// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/rigs/audit"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// listed adds listed changes.
func (t *recording) listed(seconds, since float64, version uint64, gone bool, objects ...*v1alpha1.Machine) {
	for _, m := range objects {
		t.add(audit.Change{Time: at(seconds), Since: at(since), Version: version, Object: m, Listed: true, Gone: gone})
	}
}

// gap adds a gap of the machines.
func (t *recording) gap(from, to float64, after, until uint64) {
	t.log.Gaps = append(t.log.Gaps, audit.Gap{Resource: "machines", From: at(from), To: at(to), After: after, Until: until})
}

func TestCheck_LateOrMissingChanges_NoFalsePositive(t *testing.T) {
	tests := map[string]struct {
		tell     func(*recording)
		steady   bool
		want     []audit.Bound
		unproven int
	}{
		"a guard that is seen within the tolerance": {
			tell: func(t *recording) { t.begins(1, "a"); t.write(2.9, running("a")) },
		},
		"a guard that is seen too late": {
			tell: func(t *recording) { t.begins(1, "a"); t.write(3.1, running("a")) },
			want: []audit.Bound{audit.Guarded},
		},
		"a guard that was held up": {
			tell: func(t *recording) {
				t.begins(1, "a")
				t.add(audit.Change{Time: at(9), Since: at(1.5), Object: running("a")})
			},
		},
		"a VM that ends before its machine is seen to be gone": {
			tell: func(t *recording) {
				t.write(0, running("a", deleting))
				t.begins(1, "a")
				t.ends(5, "a")
				t.gone(5.1, running("a", deleting))
			},
		},
		"a VM that ends after its machine was seen to be gone": {
			tell: func(t *recording) {
				t.write(0, running("a", deleting))
				t.begins(1, "a")
				t.gone(5, running("a", deleting))
				t.ends(5.1, "a")
			},
			want: []audit.Bound{audit.Outlived},
		},
		"a deletion that is seen after the next VM began": {
			tell: func(t *recording) {
				t.write(0, running("a"), running("b"), running("c"))
				t.begins(1, "a")
				t.begins(1, "b")
				t.begins(1, "c")
				t.begins(5, "e")
				t.write(6, running("a", pending, deleting), running("e"))
			},
		},
		"a machine during an outage of the watch": {
			tell:     func(t *recording) { t.gap(4, 6, 2, 3); t.begins(5, "a"); t.ends(5.5, "a") },
			unproven: 1,
		},
		"a machine that the list does not contain": {
			tell: func(t *recording) { t.gap(4, 6, 2, 3); t.begins(9, "a"); t.ends(10, "a") },
			want: []audit.Bound{audit.Guarded},
		},
		"a machine before the recording": {
			tell: func(t *recording) {
				t.log.Gaps = append(t.log.Gaps, audit.Gap{Resource: "machines", To: at(4), Until: 2})
				t.begins(3, "a")
			},
			unproven: 1,
		},
		"a machine after the recording": {
			tell: func(t *recording) {
				t.log.Gaps = append(t.log.Gaps, audit.Gap{Resource: "machines", From: at(4), After: 2})
				t.begins(9, "a")
			},
			unproven: 2, // the VM, and the end of the recording
		},
		"a machine after a recording that was complete": {
			tell: func(t *recording) {
				t.log.Gaps = append(t.log.Gaps, audit.Gap{Resource: "machines", From: at(4), After: 2, CaughtUp: true})
				t.begins(9, "a")
			},
			unproven: 1,
		},
		"a gap in something else": {
			tell: func(t *recording) {
				t.log.Gaps = append(t.log.Gaps, audit.Gap{Resource: "machinesets", From: at(4), To: at(6), After: 2, Until: 3})
				t.begins(5, "a")
			},
			want: []audit.Bound{audit.Guarded},
		},
		"one for another, in the order of a list": {
			tell: func(t *recording) {
				t.write(0, running("a"), running("b"), running("c"))
				t.gap(4, 6, 5, 9)
				t.listed(6, 4, 9, false, running("e"))
				t.listed(6, 4, 9, true, running("a"))
			},
		},
		"too many, by a list": {
			tell: func(t *recording) {
				t.write(0, setOf(9), running("a"), running("b"), running("c"))
				t.gap(4, 6, 6, 9)
				t.listed(6, 4, 9, false, running("e"))
			},
			want: []audit.Bound{audit.MachinesOfDeployment},
		},
		"too many, by a list, of a deployment that was scaled meanwhile": {
			tell: func(t *recording) {
				t.write(0, setOf(9), running("a"), running("b"), running("c"))
				t.gap(4, 6, 6, 9)
				t.add(audit.Change{Time: at(6), Since: at(4), Version: 8, Object: deploymentOf(2, 3), Listed: true})
				t.listed(6, 4, 9, false, running("e"))
			},
		},
		"too few, by a list, may have failed before": {
			tell: func(t *recording) {
				t.write(0, running("a"), running("b"))
				t.gap(4, 6, 4, 9)
				t.listed(6, 4, 9, false, running("a", deleting))
			},
		},
		"too few, by a list, in a steady world": {
			tell: func(t *recording) {
				t.write(0, running("a"), running("b"))
				t.gap(4, 6, 4, 9)
				t.listed(6, 4, 9, false, running("a", deleting))
			},
			steady: true,
			want:   []audit.Bound{audit.Availability},
		},
		"too many while the deployment is not known": {
			tell: func(t *recording) {
				t.log.Gaps = append(t.log.Gaps, audit.Gap{Resource: "machinedeployments", From: at(0), To: at(6), After: 3, Until: 20})
				t.write(1, setOf(9), running("a"), running("b"), running("c"), running("e"))
				t.add(audit.Change{Time: at(6), Since: at(0), Version: 20, Object: deploymentOf(3, 2), Listed: true})
			},
			unproven: 1, // one for any number of steps
		},
		"too many when the deployment is not known any more": {
			tell: func(t *recording) {
				t.log.Gaps = append(t.log.Gaps, audit.Gap{Resource: "machinedeployments", From: at(0.5), After: 3})
				t.write(1, setOf(9), running("a"), running("b"), running("c"), running("e"))
			},
			unproven: 1,
		},
		"too many after the end was asked for": {
			tell: func(t *recording) {
				t.log.Gaps = append(t.log.Gaps, audit.Gap{Resource: "machinedeployments", From: at(0.5), After: 3, CaughtUp: true})
				t.write(1, setOf(9), running("a"), running("b"), running("c"), running("e"))
			},
		},
		"the end of a recording that did not catch up": {
			tell: func(t *recording) {
				for _, resource := range []string{"machinedeployments", "machinesets", "machines"} {
					t.log.Gaps = append(t.log.Gaps, audit.Gap{Resource: resource, From: at(1), After: 9})
				}
			},
			unproven: 3,
		},
		"two gaps that hide the same steps, and one that hides none": {
			tell: func(t *recording) {
				t.log.Gaps = append(t.log.Gaps,
					audit.Gap{Resource: "machinedeployments", From: at(0), To: at(6), After: 2, Until: 6},
					audit.Gap{Resource: "machinesets", From: at(0), To: at(6), After: 3, Until: 6},
					audit.Gap{Resource: "machines", From: at(7), To: at(8), After: 6, Until: 9})
				t.write(1, running("a"), running("b"), running("c", pending))
				t.write(6, setOf(3))
				t.write(7, setOf(3))
			},
			unproven: 2,
		},
		"one more, with the version of the list that allows it": {
			tell: func(t *recording) {
				t.write(0, setOf(9), running("a"), running("b"), running("c"))
				t.log.Gaps = append(t.log.Gaps, audit.Gap{Resource: "machinedeployments", From: at(0), To: at(9), After: 1, Until: 7})
				t.add(audit.Change{Time: at(9), Since: at(0), Version: 7, Object: deploymentOf(3, 2), Listed: true})
				t.add(audit.Change{Time: at(9), Version: 7, Object: running("e")})
				t.add(audit.Change{Time: at(9), Version: 8, Object: running("e")})
			},
			unproven: 1,
		},
		"VMs of a set before a deployment took it over": {
			tell: func(t *recording) {
				s := setOf(9)
				s.OwnerReferences = nil
				t.write(0, s, running("a"), running("b"), running("c"), running("e"))
				for _, machine := range []string{"a", "b", "c", "e"} {
					t.begins(2, machine)
				}
				t.write(9, setOf(9))
			},
		},
		"too few of a deployment that was changed during an outage of the watch": {
			tell: func(t *recording) {
				t.write(0, running("a"), running("b"), running("c"))
				t.log.Gaps = append(t.log.Gaps, audit.Gap{Resource: "machinedeployments", From: at(1), To: at(6), After: 6, Until: 6})
				t.add(audit.Change{Time: at(6), Since: at(1), Version: 6, Object: deploymentOf(2, 3), Listed: true})
				t.write(7, running("a", deleting), running("b", deleting))
			},
		},
		"too many and still too many when the deployment is known": {
			tell: func(t *recording) {
				t.log.Gaps = append(t.log.Gaps, audit.Gap{Resource: "machinedeployments", From: at(0), To: at(6), After: 3, Until: 20})
				t.write(1, setOf(9), running("a"), running("b"), running("c"), running("e"))
				t.add(audit.Change{Time: at(6), Since: at(0), Version: 20, Object: deploymentOf(2, 1), Listed: true})
			},
			unproven: 1,
			want:     []audit.Bound{audit.MachinesOfDeployment},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			recording := newRecording()
			recording.log.Exact = false
			test.tell(recording)
			f, err := recording.check(audit.Options{Steady: test.steady})
			require.Empty(t, cmp.Diff(test.want, bounds(err)), "%v", err)
			require.Len(t, f.Unproven, test.unproven, "%q", f.Unproven)
			require.Equal(t, f.Gaps+test.unproven == 0, f.Complete())
		})
	}
}

func TestCheck_Figures(t *testing.T) {
	recording := newRecording()
	recording.write(1, running("a"), running("b"), running("c"))
	recording.begins(2, "a")
	recording.begins(2, "b")
	recording.ends(3, "b")
	recording.write(3, running("b", deleting))
	recording.gap(4, 5, 6, 7)
	recording.listed(5, 4, 7, true, running("b"))
	recording.begins(4, "x")
	f, err := recording.check(audit.Options{Tolerance: time.Second})
	require.NoError(t, err)
	require.Equal(t, audit.Figures{
		Changes: 6, Machines: 3, MostAlive: 3, FewestAvailable: 0, MostVMs: 2, Gaps: 1,
		Unproven: []string{"whether VM vm-x was created with a Machine with finalizer"},
	}, f)
	require.Equal(t, "3 machines, at most 3 and 2 VMs at a time, 6 changes seen, never fewer than 0 available, 1 gaps;"+
		" not judged: whether VM vm-x was created with a Machine with finalizer", f.String())
}

func TestCheck_UnusualLogs_NoPanic(t *testing.T) {
	var none *v1alpha1.Machine
	log := audit.Log{Changes: []audit.Change{{}, {Object: none}, {Object: &v1alpha1.MachineSet{}}, {Object: &v1alpha1.Machine{}, Gone: true}, {Object: &v1alpha1.MachineDeployment{}}}}
	f, err := audit.Check(log, drivertest.History{{}, {Kind: drivertest.VMDeleted}}, drivertest.Snapshot{}, audit.Options{Tolerance: -1})
	require.NoError(t, err)
	require.Equal(t, 3, f.Changes)
	for _, c := range log.Changes {
		require.NotEmpty(t, c.String())
	}
	require.Empty(t, audit.FromHistory(nil).Changes)
	_, err = audit.Record(t.Context(), nil, "")
	require.Error(t, err)
}
