// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/rigs/audit"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// at returns a time in seconds after the start.
func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

// recording builds a log and a history.
type recording struct {
	log     audit.Log
	history drivertest.History
	left    drivertest.Snapshot
}

// newRecording returns an exact recording of a deployment with two replicas, maxSurge 1 and
// maxUnavailable 0 that was complete once, and of its set with three replicas.
func newRecording() *recording {
	t := &recording{log: audit.Log{Exact: true}}
	t.write(0, deploymentOf(2, 1))
	t.write(0, setOf(3))
	return t
}

func deploymentOf(replicas int32, generation int64) *v1alpha1.MachineDeployment {
	one, none := intstr.FromInt32(1), intstr.FromInt32(0)
	return &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "d", Generation: generation},
		Spec: v1alpha1.MachineDeploymentSpec{Replicas: replicas, Strategy: v1alpha1.MachineDeploymentStrategy{
			Type: v1alpha1.RollingUpdateMachineDeploymentStrategyType,
			RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{
				UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &one, MaxUnavailable: &none},
			},
		}},
		Status: v1alpha1.MachineDeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2},
	}
}

func controlledBy(uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{UID: uid, Controller: ptr.To(true)}}
}

func setOf(replicas int32) *v1alpha1.MachineSet {
	return &v1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "s", OwnerReferences: controlledBy("d")},
		Spec:       v1alpha1.MachineSetSpec{Replicas: replicas},
	}
}

// frozen returns the set with the freeze label.
func frozen() *v1alpha1.MachineSet {
	s := setOf(1)
	s.Labels = map[string]string{v1alpha1.FreezeLabelKey: "True"}
	return s
}

// running returns an available machine of the set with finalizer.
func running(name string, change ...func(*v1alpha1.Machine)) *v1alpha1.Machine {
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), OwnerReferences: controlledBy("s"), Finalizers: []string{v1alpha1.MCMFinalizerName}},
		Status:     v1alpha1.MachineStatus{CurrentStatus: v1alpha1.CurrentStatus{Phase: v1alpha1.MachineRunning}},
	}
	for _, f := range change {
		f(m)
	}
	return m
}

func pending(m *v1alpha1.Machine)   { m.Status.CurrentStatus.Phase = v1alpha1.MachinePending }
func unguarded(m *v1alpha1.Machine) { m.Finalizers = nil }
func deleting(m *v1alpha1.Machine)  { m.DeletionTimestamp = &metav1.Time{Time: start} }

func (t *recording) add(c audit.Change) {
	if c.Version == 0 {
		c.Version = uint64(len(t.log.Changes) + 1)
	}
	t.log.Changes = append(t.log.Changes, c)
}

func (t *recording) write(seconds float64, objects ...interface {
	metav1.Object
	runtime.Object
}) {
	for _, o := range objects {
		t.add(audit.Change{Time: at(seconds), Object: o})
	}
}

func (t *recording) gone(seconds float64, m *v1alpha1.Machine) {
	t.add(audit.Change{Time: at(seconds), Object: m, Gone: true})
}

func (t *recording) vm(seconds float64, kind drivertest.EventKind, id, machine string) {
	t.history = append(t.history, drivertest.Event{
		Seq: len(t.history) + 1, Time: at(seconds), Kind: kind, VM: drivertest.VM{ProviderID: id, Namespace: "n", Machine: machine, UID: machine},
	})
}

func (t *recording) begins(seconds float64, machine string) {
	t.vm(seconds, drivertest.VMCreated, "vm-"+machine, machine)
}

func (t *recording) ends(seconds float64, machine string) {
	t.vm(seconds, drivertest.VMDeletionBegan, "vm-"+machine, machine)
}

func (t *recording) check(o audit.Options) (audit.Figures, error) {
	return audit.Check(t.log, t.history, t.left, o)
}

// bounds returns the bounds of the violations in an error.
func bounds(err error) (bounds []audit.Bound) {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		for _, e := range joined.Unwrap() {
			var b audit.Violation
			if errors.As(e, &b) {
				bounds = append(bounds, b.Bound)
			}
		}
	}
	return bounds
}

func TestCheck_BoundViolated_Reported(t *testing.T) {
	lost := func(m *v1alpha1.Machine) bool { return m.Name == "a" }
	tests := map[string]struct {
		tell   func(*recording)
		change func(*audit.Options)
		want   []audit.Bound
		says   string
	}{
		"replicas and surge": {tell: func(t *recording) { t.write(1, running("a"), running("b"), running("c")) }},
		"one machine more": {
			tell: func(t *recording) { t.write(1, setOf(9), running("a"), running("b"), running("c"), running("e")) },
			want: []audit.Bound{audit.MachinesOfDeployment}, says: "4 live machines of d > 2 replicas + 1 surge, after machine e is",
		},
		"one machine more than its set wants": {
			tell: func(t *recording) { t.write(1, setOf(1)); t.write(9, running("a"), running("b")) },
			want: []audit.Bound{audit.MachinesOfSet}, says: "2 live machines of set s > 1 replicas",
		},
		"machines added by hand": {
			tell: func(t *recording) {
				t.write(1, setOf(1), frozen())
				t.write(9, running("a"), running("b"), running("c"), running("e"))
			},
			change: func(o *audit.Options) { o.ByHand = 3 },
		},
		"a set that is frozen": {
			tell: func(t *recording) { t.write(1, frozen()) },
			want: []audit.Bound{audit.Frozen}, says: "s is frozen",
		},
		"a deployment that is frozen": {
			tell: func(t *recording) {
				d := deploymentOf(2, 2)
				d.Labels = map[string]string{v1alpha1.FreezeLabelKey: "True"}
				t.write(1, d)
			},
			want: []audit.Bound{audit.Frozen}, says: "d is frozen",
		},
		"one machine more while another is being deleted": {
			tell: func(t *recording) {
				t.write(1, running("a", pending), running("b"), running("c"), running("a", pending, deleting), running("e"))
			},
		},
		"a machine that was under way when the deployment was scaled down": {
			tell: func(t *recording) {
				t.write(1, setOf(3), running("a"), running("b"), deploymentOf(1, 2), setOf(1))
				t.write(2.5, running("c"))
			},
		},
		"a machine made long after the deployment was scaled down": {
			tell: func(t *recording) {
				t.write(1, running("a"), running("b"), deploymentOf(1, 2))
				t.write(9, running("c"))
			},
			want: []audit.Bound{audit.MachinesOfDeployment}, says: "3 live machines of d > 1 replicas + 1 surge",
		},
		"a machine deleted while another is in its place": {
			tell: func(t *recording) { t.write(1, running("a"), running("b"), running("c"), running("a", deleting)) },
		},
		"a machine deleted too early": {
			tell: func(t *recording) {
				t.write(1, running("a"), running("b"), running("c", pending), running("a", deleting))
			},
			want: []audit.Bound{audit.Availability}, says: "1 available machines of d < 2 replicas - 0 unavailable, after machine a",
		},
		"a machine deleted just after another failed": {
			tell: func(t *recording) {
				t.write(1, running("a"), running("b"), running("c", pending), running("a", pending))
				t.write(1, running("b", deleting))
			},
			want: []audit.Bound{audit.Availability}, says: "1 available machines of d < 2 replicas - 0 unavailable, after machine b",
		},
		"a machine deleted long after another failed": {
			tell: func(t *recording) {
				t.write(1, running("a"), running("b"), running("c"), running("a", pending))
				t.write(9, running("b", deleting))
			},
			want: []audit.Bound{audit.Availability}, says: "unavailable: a since ",
		},
		"a machine deleted before its deployment learns that another failed": {
			tell: func(t *recording) {
				t.write(1, running("a"), running("b"), running("c"), running("a", pending))
				t.write(1.5, running("b", deleting))
			},
		},
		"a machine gone without a deletion": {
			tell: func(t *recording) { t.write(1, running("a"), running("b")); t.gone(2, running("a")) },
			want: []audit.Bound{audit.Availability},
		},
		"a machine deleted by another client": {
			tell:   func(t *recording) { t.write(1, running("a"), running("b"), running("a", deleting)) },
			change: func(o *audit.Options) { o.Excused = lost },
		},
		"a machine deleted beside one that another client deleted": {
			tell: func(t *recording) {
				t.write(1, running("a"), running("b"), running("a", deleting), running("b", deleting))
			},
			change: func(o *audit.Options) { o.Excused = lost },
			want:   []audit.Bound{audit.Availability}, says: "0 available machines",
		},
		"a machine that fails by itself": {tell: func(t *recording) { t.write(1, running("a"), running("b"), running("a", pending)) }},
		"a machine that fails by itself in a steady world": {
			tell:   func(t *recording) { t.write(1, running("a"), running("b"), running("a", pending)) },
			change: func(o *audit.Options) { o.Steady = true },
			want:   []audit.Bound{audit.Availability},
		},
		"a deployment that was just scaled up": {
			tell: func(t *recording) {
				t.write(1, running("a"), running("b"), running("c"), deploymentOf(3, 2), running("c", deleting))
			},
		},
		"a deployment that is being deleted": {
			tell: func(t *recording) {
				d := deploymentOf(2, 2)
				d.DeletionTimestamp = &metav1.Time{Time: start}
				t.write(1, running("a"), running("b"), d, running("a", deleting))
			},
		},
		"a deployment that is recreated": {
			tell: func(t *recording) {
				d := deploymentOf(2, 1)
				d.Spec.Strategy.Type = v1alpha1.RecreateMachineDeploymentStrategyType
				t.write(1, running("a"), running("b"), d, running("a", deleting), running("b", deleting))
			},
		},
		"a VM and its machine": {
			tell: func(t *recording) {
				t.write(1, running("a", pending))
				t.begins(2, "a")
				t.ends(3, "a")
				t.gone(4, running("a", deleting))
			},
		},
		"a VM without a machine": {
			tell: func(t *recording) { t.begins(1, "a") },
			want: []audit.Bound{audit.Guarded}, says: "VM vm-a of machine a was created without a Machine with finalizer",
		},
		"a VM that no controller made": {
			tell:   func(t *recording) { t.begins(1, "a") },
			change: func(o *audit.Options) { o.Foreign = func(vm drivertest.VM) bool { return vm.Machine == "a" } },
		},
		"a VM of another namespace": {tell: func(t *recording) { t.log.Namespace = "other"; t.begins(1, "a") }},
		"a VM of a machine that is not guarded": {
			tell: func(t *recording) { t.write(1, running("a", unguarded)); t.begins(2, "a"); t.ends(3, "a") },
			want: []audit.Bound{audit.Guarded},
		},
		"a VM of a machine that is guarded too late": {
			tell: func(t *recording) { t.write(1, running("a", unguarded)); t.begins(2, "a"); t.write(3, running("a")) },
			want: []audit.Bound{audit.Guarded}, says: "VM vm-a was created 1s before its machine a had the finalizer",
		},
		"a VM that begins after its machine": {
			tell: func(t *recording) {
				t.write(1, running("a", deleting))
				t.gone(2, running("a", deleting))
				t.begins(3, "a")
				t.ends(4, "a")
			},
			want: []audit.Bound{audit.Guarded, audit.Outlived}, says: "VM vm-a was created after its machine a had lost the finalizer",
		},
		"a VM that outlives its machine": {
			tell: func(t *recording) {
				t.write(1, running("a", deleting))
				t.begins(2, "a")
				t.gone(3, running("a", deleting))
				t.ends(4, "a")
			},
			want: []audit.Bound{audit.Outlived}, says: "VM vm-a was deleted 1s after its machine a",
		},
		"a VM that is not deleted": {
			tell: func(t *recording) {
				t.write(1, running("a", deleting))
				t.begins(2, "a")
				t.gone(3, running("a", deleting))
				t.left = drivertest.Snapshot{Time: at(5)}
			},
			want: []audit.Bound{audit.Outlived}, says: "was deleted 2s after",
		},
		"a VM whose machine lost its guard": {
			tell: func(t *recording) {
				t.write(1, running("a"))
				t.begins(2, "a")
				t.write(3, running("a", unguarded))
				t.ends(4, "a")
			},
			want: []audit.Bound{audit.Outlived}, says: "VM vm-a was deleted 1s after the finalizer of its machine a",
		},
		"a VM whose machine is guarded again": {
			tell: func(t *recording) {
				t.write(1, running("a"))
				t.begins(2, "a")
				t.write(3, running("a", unguarded), running("a"))
				t.ends(4, "a")
			},
		},
		"two VMs of a machine": {
			tell: func(t *recording) {
				t.write(1, running("a"))
				t.begins(2, "a")
				t.vm(3, drivertest.VMCreated, "vm-2", "a")
			},
			want: []audit.Bound{audit.OneVM}, says: "machine a has two VMs, vm-a and vm-2",
		},
		"a VM after another": {
			tell: func(t *recording) {
				t.write(1, running("a"))
				t.begins(2, "a")
				t.vm(3, drivertest.VMDeleted, "vm-a", "a")
				t.vm(3, drivertest.VMCreated, "vm-2", "a")
			},
		},
		"too many VMs": {
			tell: func(t *recording) {
				t.write(1, running("a"), running("b"), running("c"))
				t.begins(2, "a")
				t.begins(2, "b")
				t.begins(2, "c")
				t.vm(3, drivertest.VMCreated, "vm-2", "a")
			},
			want: []audit.Bound{audit.OneVM, audit.VMsOfDeployment}, says: "4 live VMs of d > 2 replicas + 1 surge",
		},
		"as many VMs while a machine is being deleted": {
			tell: func(t *recording) {
				t.write(1, running("a", pending), running("b"), running("c"))
				t.begins(2, "a")
				t.begins(2, "b")
				t.begins(2, "c")
				t.write(3, running("a", pending, deleting), running("e"))
				t.begins(4, "e")
			},
		},
		"something left": {
			tell: func(t *recording) { t.left.VMs = []drivertest.VM{{ProviderID: "x"}} },
			want: []audit.Bound{audit.NothingLeft}, says: "the cloud is not empty:\nvm x",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			recording, options := newRecording(), audit.Options{}
			test.tell(recording)
			if test.change != nil {
				test.change(&options)
			}
			_, err := recording.check(options)
			require.Empty(t, cmp.Diff(test.want, bounds(err)), "%v", err)
			if test.says != "" {
				require.ErrorContains(t, err, test.says)
			}
		})
	}
}
