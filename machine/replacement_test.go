// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/permits"
)

func limited(n int) machine.Policy {
	p := machine.DefaultPolicy()
	p.MaxReplacements = n
	return p
}

// TestReplacementLimit_Permit_IsTaken asserts what is decided for a machine of a
// deployment that was not well for too long (DM-08, DM-18).
func TestReplacementLimit_Permit_IsTaken(t *testing.T) {
	tooLong := func(changes ...change) machine.Observation {
		return living(unknown, append([]change{longUnknown, sick, copied, inPool}, changes...)...)
	}
	waits := func(why string) string {
		return "nothing (ReplacementLimit: " + why + "); waits for machinedeployment/pool: ReplacementLimit: " + why
	}
	fails := `update status of machine m: phase "Failed",  Failed (HealthTimeout: Machine m health checks failing since last 10m0s. Updating machine phase to Failed. Node Conditions: [Ready=Unknown (Kubelet)])`
	keeps := permit(machine.PermitView{Held: true})
	refused := func(until time.Duration) change {
		return permit(machine.PermitView{Asked: true, Within: 1, Refused: machinist.Hold{Until: now.Add(until)}})
	}
	missing := func(n int) change { return func(in *machine.Observation) { in.Siblings.Missing = n } }
	giveBack := func(why string) string { return "return the permit of shoot/pool (Permit: " + why + ")" }
	sickText := "the node is unhealthy: [Ready=Unknown (Kubelet)]"
	check(t, limited(2), map[string]decisionCase{
		"one that may be replaced takes a permit within what is left": {tooLong(siblings(true, running, failed)), "take one of 1 permits of shoot/pool (Permit)"},
		"with it, it fails":                                        {tooLong(siblings(true, running, failed), held(1)), fails},
		"not if others began meanwhile":                            {tooLong(siblings(true, failed), held(2)), giveBack("more machines are being replaced since the permit was taken")},
		"who has given it back waits":                              {tooLong(siblings(true, failed), permit(machine.PermitView{Asked: true, Within: 2})), waits("no permit is free")},
		"a permit that is not given is waited for":                 {tooLong(siblings(true), refused(time.Second)), waits("no permit is free")},
		"one whose siblings are not known gives its permit back":   {tooLong(siblings(false), held(1)), giveBack("the other machines of the group were not read")},
		"one that is gone and has no successor yet leaves no room": {tooLong(siblings(true, failed), missing(1)), waits("machines being replaced: 2, limit: 2")},
		"nor to one that holds a permit":                           {tooLong(siblings(true, failed), missing(1), held(1)), giveBack("machines being replaced: 2, limit: 2")},
		"one too many leaves no more room than there is":           {tooLong(siblings(true, failed), missing(-1)), "take one of 1 permits of shoot/pool (Permit)"},
		"one that has time again gives its permit back":            {living(unknown, sick, copied, looked, inPool, keeps), giveBack(sickText)},
		"a machine of no deployment needs none (DM-52)":            {living(unknown, longUnknown, sick, siblings(false)), fails},
		"changed conditions put off no permit (DM-34)":             {living(unknown, longUnknown, sick, inPool, siblings(true)), "take one of 2 permits of shoot/pool (Permit)"},
	})
}

func TestReplacementLimit_RefusedPermit_IsAskedForAgain(t *testing.T) {
	for until, want := range map[time.Time]time.Duration{
		{}:                        2 * time.Second, // the status has to say it
		now.Add(time.Second):      time.Second,
		now.Add(time.Hour):        2 * time.Second, // a permit may be given back before
		now.Add(-time.Nanosecond): 2 * time.Second,
	} {
		in := living(unknown, longUnknown, sick, copied, inPool, siblings(true), refuse(machinist.Hold{Until: until}))
		require.Equal(t, now.Add(want), lawful(t, in, limited(1)).NextCheck, until)
	}
}

// permitOver reports whether the permit of a machine in the cache can be returned.
func permitOver(m *v1alpha1.Machine) bool {
	_, permit := facts.FreesReplacement(m, m)
	return permit
}

func TestPermitOver_ByPhase(t *testing.T) {
	require.True(t, permitOver(nil), "the cache has lost it")
	for _, p := range allPhases {
		m := newMachine("other")
		m.Status.CurrentStatus.Phase = p
		require.Equal(t, !slices.Contains([]v1alpha1.MachinePhase{running, unknown, unupdated}, p), permitOver(m), p)
	}
}

// fleet are the machines of a deployment, of which each is worked on by a worker
// of its own. Workers read a cache that lags behind what was written.
type fleet struct {
	policy machine.Policy
	ledger *permits.Ledger
	stored []*v1alpha1.Machine // what is true
	cached []*v1alpha1.Machine // what workers see of each other
	busy   []*machine.Observation
	now    time.Time
	most   int
}

func newFleet(n, limit int, p v1alpha1.MachinePhase) *fleet {
	f := &fleet{policy: limited(limit), ledger: permits.NewLedger(0, time.Hour), now: now}
	for i := range n {
		m := living(p, longUnknown, inPool).Machine
		m.Name, m.UID = fmt.Sprint("m", i), machineUID(fmt.Sprint("uid", i))
		f.stored, f.cached, f.busy = append(f.stored, m), append(f.cached, m), append(f.busy, nil)
	}
	return f
}

// step has the worker of a machine take one step of its pass.
func (f *fleet) step(i int) {
	if f.busy[i] == nil {
		in := living(v1alpha1.MachineUnknown, noClass)
		in.Machine = f.cached[i]
		in.Node.Node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Finalizers: []string{v1alpha1.NodeFinalizerName},
			Labels: map[string]string{v1alpha1.MachineNameLabelKey: in.Machine.Name, "pool": "a", v1alpha1.LabelKeyNodeUpdateResult: v1alpha1.LabelValueNodeUpdateFailed}, Annotations: after(sick).Node.Node.Annotations}}
		f.look(&in)
		f.busy[i] = &in
	}
	in := f.busy[i]
	d := machine.Decide(*in, f.policy, f.now)
	switch a := d.Action.(type) {
	case machine.TakePermit:
		_, refusal := f.ledger.AcquireWithin(a.Within, a.Key, a.Holder, f.now)
		in.Permit = machine.PermitView{Asked: true, Held: refusal == nil, Within: a.Within}
		f.look(in)
	case machine.ReturnPermit:
		f.ledger.Release(a.Key, a.Holder, f.now)
		in.Permit.Held = false
	case machinist.Update:
		f.busy[i] = nil
		if m := statusOf(a); f.stored[i].ResourceVersion == m.ResourceVersion { // or else it conflicts
			f.stored[i] = m.DeepCopy()
			f.stored[i].ResourceVersion += "+"
		}
		f.count()
	default:
		f.busy[i] = nil
	}
}

func (f *fleet) look(in *machine.Observation) {
	in.Siblings = machine.Siblings{Complete: true, Machines: append([]*v1alpha1.Machine(nil), f.cached...)}
}

// show brings the cache up to date with one machine, and gives up its permit if
// that is over.
func (f *fleet) show(i int) {
	f.cached[i] = f.stored[i]
	if permitOver(f.cached[i]) {
		f.ledger.Release("shoot/pool", string(f.cached[i].UID), f.now)
	}
}

// replace has the owner replace a failed machine: it runs again.
func (f *fleet) replace(i int, p v1alpha1.MachinePhase) {
	if f.stored[i].Status.CurrentStatus.Phase == v1alpha1.MachineFailed {
		m := f.stored[i].DeepCopy()
		m.Status.CurrentStatus.Phase, m.ResourceVersion = p, m.ResourceVersion+"+"
		f.stored[i] = m
	}
}

func (f *fleet) count() {
	n := 0
	for _, m := range f.stored {
		if m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed {
			n++
		}
	}
	f.most = max(f.most, n)
}

// TestReplacementLimit_StaleCaches_NeverAboveTheLimit plays every kind of
// order in which workers, caches and owners may take their turns.
func TestReplacementLimit_StaleCaches_NeverAboveTheLimit(t *testing.T) {
	t.Parallel()
	for _, p := range []v1alpha1.MachinePhase{v1alpha1.MachineUnknown, v1alpha1.MachineInPlaceUpdateFailed} {
		reached := map[int]bool{}
		for seed := range uint64(400) {
			r := rand.New(rand.NewPCG(seed, 17))
			limit, n := 1+r.IntN(2), 2+r.IntN(3)
			f := newFleet(n, limit, p)
			for range 80 {
				i := r.IntN(n)
				switch r.IntN(6) {
				case 0:
					f.show(i)
				case 1:
					if r.IntN(4) == 0 {
						f.replace(i, v1alpha1.MachineRunning)
					}
				default:
					f.step(i)
				}
			}
			require.LessOrEqual(t, f.most, limit, "seed %d", seed)
			reached[f.most] = true
		}
		require.True(t, reached[1] && reached[2], "%s: some are replaced: %v", p, reached)
	}
}

func TestGroupOf_OwnersBeforeLabel(t *testing.T) {
	own := func(kind, name, uid string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: name, UID: machineUID(uid), Controller: ptr.To(true)}}
	}
	build := func(label string, owners []metav1.OwnerReference) *v1alpha1.Machine {
		labels := map[string]string{v1alpha1.LabelKeyMachineDeploymentName: label}
		return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Labels: labels, OwnerReferences: owners}}
	}
	set := func(uid string, owners []metav1.OwnerReference) *v1alpha1.MachineSet {
		return &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "s", UID: machineUID(uid), OwnerReferences: owners}}
	}
	bySet, byDeployment := own("MachineSet", "s", "1"), own("MachineDeployment", "d", "2")
	for name, tc := range map[string]struct {
		m    *v1alpha1.Machine
		set  *v1alpha1.MachineSet
		want string
	}{
		"the deployment of its set":          {build("other", bySet), set("1", byDeployment), "shoot/d"},
		"the label if the set has no owner":  {build("other", bySet), set("1", nil), "shoot/other"},
		"or another kind of owner":           {build("other", bySet), set("1", own("Pool", "d", "2")), "shoot/other"},
		"or is not known":                    {build("other", bySet), nil, "shoot/other"},
		"or is another one of its name":      {build("other", bySet), set("3", byDeployment), "shoot/other"},
		"the set if there is no label":       {build("", bySet), set("1", nil), "shoot/machineset/s"},
		"also if the set is not known":       {build("", bySet), nil, "shoot/machineset/s"},
		"none for one of another kind's":     {build("", own("Pool", "s", "1")), set("1", byDeployment), ""},
		"nor for one that is not controlled": {build("", []metav1.OwnerReference{{Kind: "MachineSet", Name: "s", UID: "1"}}), set("1", byDeployment), ""},
		"nor for none":                       {nil, nil, ""},
	} {
		require.Equal(t, tc.want, facts.GroupOf(tc.m, tc.set).String(), name)
	}
}

// TestReplacementLimit_OwnerWithoutLabel_NeedsSiblings asserts that a machine whose owner is known
// only by its reference is limited too. It is held until the other machines of its set are
// observed.
func TestReplacementLimit_OwnerWithoutLabel_NeedsSiblings(t *testing.T) {
	in := living(unknown, longUnknown, sick, copied)
	in.Machine.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: "s", UID: "1", Controller: ptr.To(true)}}
	d := lawful(t, in, limited(1))
	require.Nil(t, d.Action)
	require.Equal(t, "machineset/s", d.Holds[0].Subject)
	require.EqualValues(t, "ReplacementLimit", d.Reason)

	set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
	set.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment", Name: "d", Controller: ptr.To(true)}}
	in.Siblings = machine.Siblings{Complete: true, Set: set}
	require.Equal(t, "take one of 1 permits of shoot/d", lawful(t, in, limited(1)).Action.String())
}

func TestNeedsSiblings_OnlyPhasesThatHealthFails(t *testing.T) {
	require.False(t, machine.NeedsSiblings(nil))
	for _, p := range allPhases {
		m := newMachine("m")
		m.Status.CurrentStatus.Phase = p
		require.Equal(t, p == v1alpha1.MachineUnknown || p == v1alpha1.MachineInPlaceUpdateFailed, machine.NeedsSiblings(m), p)
		m.DeletionTimestamp = &metav1.Time{Time: now}
		require.False(t, machine.NeedsSiblings(m), p)
	}
}

func TestStatus_TextDiffersInOneLetter_IsWritten(t *testing.T) {
	long := strings.Repeat("the quota of the project is used up; ", 6)
	in := after(intended, failure(driver.OpCreateMachine, codes.ResourceExhausted, time.Minute, machine.NotLooked))
	for _, end := range []string{"a", "b"} {
		in.VM.Failure.Message = long + end
		write(t, &in)
		require.Contains(t, in.Machine.Status.LastOperation.Description, long+end)
		require.Nil(t, lawful(t, in, machine.DefaultPolicy()).Action, "the same text is written once")
	}
}

var refusedForLong = machinist.Hold{Subject: "machinedeployment/pool", Reason: "Held", Message: "all at once", Until: now.Add(time.Hour)}

func refuse(h machinist.Hold) change { return permit(machine.PermitView{Asked: true, Refused: h}) }

// TestTakePermit_AnyTimeout_BeforeFailing asserts that no way to phase Failed because of a timeout goes
// past the one question. A refusal stands in the decision as it is, is asked for again within a
// minute, and does not stop a machine from arriving.
func TestTakePermit_AnyTimeout_BeforeFailing(t *testing.T) {
	const health, creation = "HealthTimeout", "CreationTimeout"
	failed := failure(driver.OpInitializeMachine, codes.ResourceExhausted, time.Second, machine.NotLooked)
	for name, tc := range map[string]struct {
		why machinist.Reason
		in  machine.Observation
	}{
		"unknown":                    {health, living(v1alpha1.MachineUnknown, longUnknown, sick, copied)},
		"update in place has failed": {health, living(v1alpha1.MachineInPlaceUpdateFailed, longUnknown, sick, labeled("failed"), copied)},
		"Node never joined":          {creation, living(v1alpha1.MachinePending, old, looked)},
		"Node not ready":             {creation, living(v1alpha1.MachinePending, old, sick, copied, looked)},
		"no VM":                      {creation, after(intended, old)},
		"call has failed":            {creation, after(intended, old, withID, failed)},
	} {
		t.Run(name, func(t *testing.T) {
			in := tc.in
			d := lawfulOnce(t, in, machine.DefaultPolicy())
			asks, ok := d.Action.(machine.TakePermit)
			require.True(t, ok, d.String())
			require.Equal(t, machine.TakePermit{Holder: "uid-m", Why: tc.why, VMGone: false}, asks)

			d = lawful(t, in, machine.DefaultPolicy())
			m := statusOf(d.Action)
			require.NotNil(t, m, d.String())
			require.Equal(t, v1alpha1.MachineFailed, m.Status.CurrentStatus.Phase, d.String())

			refuse(refusedForLong)(&in)
			acted := 0
			for range 12 {
				d = lawfulOnce(t, in, machine.DefaultPolicy())
				if m := statusOf(d.Action); m != nil {
					require.NotEqual(t, v1alpha1.MachineFailed, m.Status.CurrentStatus.Phase, d.String())
				}
				if !carriedOut(&in, d.Action) {
					break
				}
				acted++
			}
			if d.Action != nil { // it goes on to look for its VM
				require.Equal(t, driver.OpGetMachineStatus, operationOf(d.Action), "after %d writes", acted)
				return
			}
			require.Contains(t, d.Holds, refusedForLong)
			require.Equal(t, machinist.Reason("Held"), d.Reason)
			require.LessOrEqual(t, d.NextCheck.Sub(now), time.Minute)
		})
	}
}

func TestTakePermit_RefusedBeforeVM_VMIsCreated(t *testing.T) {
	in := after(intended, old, seen(machine.Absent), func(in *machine.Observation) { in.VM.ProviderID = "" }, refuse(refusedForLong))
	require.Equal(t, driver.OpCreateMachine, operationOf(lawfulOnce(t, in, machine.DefaultPolicy()).Action), "a provider that recovers gets the machine to join")
	refuse(machinist.Hold{Subject: "s", Reason: "Held", Until: now})(&in)
	d := lawfulOnce(t, in, machine.DefaultPolicy())
	require.Nil(t, d.Action, "the end of the hold has come: it is asked again in the next pass")
	require.Equal(t, now.Add(2*time.Second), d.NextCheck)
}

// TestTakePermit_VMNotFound_HasVMGone asserts that the question reports whether anything would
// be destroyed, and that this is looked for also while the machine is held.
func TestTakePermit_VMNotFound_HasVMGone(t *testing.T) {
	for _, p := range []v1alpha1.MachinePhase{unknown, pending} {
		asks, _ := lawfulOnce(t, living(p, old, longUnknown, notFound(time.Second)), machine.DefaultPolicy()).Action.(machine.TakePermit)
		require.True(t, asks.VMGone, p)
	}
	in := living(unknown, longUnknown, sick, copied, refuse(refusedForLong))
	require.Equal(t, driver.OpGetMachineStatus, operationOf(lawfulOnce(t, in, machine.DefaultPolicy()).Action))
}

func TestFailingSince_ByPhase(t *testing.T) {
	entered, silent := now.Add(-time.Minute), now.Add(-2*time.Minute)
	ready := func(status corev1.ConditionStatus, at time.Time) change {
		return spec(func(m *v1alpha1.Machine) {
			m.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(at)}}
		})
	}
	deleted := func(at time.Time) change {
		return spec(func(m *v1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: at} })
	}
	sinceSilent := ready(corev1.ConditionUnknown, silent)
	none := time.Time{}
	for name, tc := range map[string]struct {
		phase   v1alpha1.MachinePhase
		changes []change
		want    time.Time
	}{
		"running":                           {v1alpha1.MachineRunning, []change{sinceSilent}, none},
		"unknown, since the Node is silent": {v1alpha1.MachineUnknown, []change{sinceSilent}, silent},
		"unknown, Node is Ready":            {v1alpha1.MachineUnknown, []change{ready(corev1.ConditionTrue, silent)}, entered},
		"unknown, no condition":             {v1alpha1.MachineUnknown, nil, entered},
		"failed":                            {v1alpha1.MachineFailed, []change{sinceSilent}, silent},
		"available":                         {v1alpha1.MachineAvailable, nil, none},
		"pending in time":                   {v1alpha1.MachinePending, nil, none},
		"pending too long":                  {v1alpha1.MachinePending, []change{old}, after(old).Machine.CreationTimestamp.Add(20 * time.Minute)},
		"no VM for too long":                {v1alpha1.MachineCrashLoopBackOff, []change{old}, after(old).Machine.CreationTimestamp.Add(20 * time.Minute)},
		"deleted while it was silent":       {v1alpha1.MachineTerminating, []change{sinceSilent, deleted(entered)}, silent},
		"deleted while it ran":              {v1alpha1.MachineTerminating, []change{ready(corev1.ConditionUnknown, now), deleted(entered)}, none},
	} {
		t.Run(name, func(t *testing.T) {
			in := living(tc.phase, tc.changes...)
			require.Equal(t, tc.want, machine.FailingSince(in.Machine, machine.DefaultPolicy(), now))
		})
	}
	require.Zero(t, machine.FailingSince(nil, machine.DefaultPolicy(), now))
	require.Zero(t, machine.FailingSince(living(v1alpha1.MachinePending, old).Machine, machine.Policy{}, now), "the zero policy waits for ever")
}
