// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// change modifies an observation for one case.
type change func(*machine.Observation)

// after returns the observation of a machine five minutes after its creation. It has its finalizer
// and its class, and its Node does not exist.
func after(changes ...change) machine.Observation {
	m := newMachine("m")
	m.ResourceVersion = "7"
	m.CreationTimestamp = metav1.NewTime(now.Add(-5 * time.Minute))
	m.Finalizers = []string{v1alpha1.MCMFinalizerName}
	in := machine.Observation{
		Machine: m,
		Class:   machine.ClassView{Looked: true, Class: class()},
		Node:    machine.NodeView{Looked: true, AsOf: now},

		ProviderID: machine.ProviderIDView{Compared: true},
	}
	for _, c := range changes {
		c(&in)
	}
	return in
}

func spec(change func(*v1alpha1.Machine)) change {
	return func(in *machine.Observation) { change(in.Machine) }
}

// phase sets a phase that was entered a minute ago.
func phase(p v1alpha1.MachinePhase) change {
	return func(in *machine.Observation) {
		in.Machine.Status.CurrentStatus.Phase = p
		entered(time.Minute)(in)
	}
}

// entered sets when the phase was entered.
func entered(ago time.Duration) change {
	return spec(func(m *v1alpha1.Machine) { m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-ago)) })
}

// mayTake sets the creation timeout of the machine.
func mayTake(timeout string) change {
	return spec(func(m *v1alpha1.Machine) {
		m.Annotations = map[string]string{v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout: timeout}
	})
}

func operation(t v1alpha1.MachineOperationType, s v1alpha1.MachineState, description, code string) change {
	return spec(func(m *v1alpha1.Machine) {
		m.Status.LastOperation = v1alpha1.LastOperation{Type: t, State: s, Description: description, ErrorCode: code}
	})
}

// operationAgo sets an operation without a code, which was written some time ago.
func operationAgo(ago time.Duration, t v1alpha1.MachineOperationType, s v1alpha1.MachineState, description string) change {
	return func(in *machine.Observation) {
		operation(t, s, description, "")(in)
		in.Machine.Status.LastOperation.LastUpdateTime = metav1.NewTime(now.Add(-ago))
	}
}

var (
	absent    = vm(machine.VMView{Presence: machine.Absent})
	unguarded = spec(func(m *v1alpha1.Machine) { m.Finalizers = nil })
	intended  = operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateProcessing, v1alpha1.CreatingMachine, "")
	withID    = spec(func(m *v1alpha1.Machine) {
		m.Spec.ProviderID = "simulated:///1"
		m.Labels = map[string]string{v1alpha1.NodeLabelKey: "n"}
	})
	old             = spec(func(m *v1alpha1.Machine) { m.CreationTimestamp = metav1.NewTime(now.Add(-20 * time.Minute)) })
	noTarget change = func(in *machine.Observation) { // also removes the label node
		in.Node = machine.NodeView{NoTarget: true}
		in.Machine.Labels = maps.Clone(in.Machine.Labels)
		delete(in.Machine.Labels, v1alpha1.NodeLabelKey)
	}
	unseen  change = func(in *machine.Observation) { in.Node.Looked = false }
	frozen  change = func(in *machine.Observation) { in.Freeze.Frozen = true }
	noClass change = func(in *machine.Observation) { in.Class.Class = nil }
)

// leaving sets a deletion timestamp of a minute ago. The provider has named the VM.
var leaving change = func(in *machine.Observation) {
	in.Machine.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Minute)}
	named(in)
}

// named is a machine whose VM the provider has named.
var named change = func(in *machine.Observation) {
	in.VM.Named = machine.NamedVM{AskedAt: now, ProviderID: "simulated:///1", NodeName: "n"}
}

// neverNamed is a machine whose VM the provider was not asked for.
var neverNamed change = func(in *machine.Observation) { in.VM.Named = machine.NamedVM{} }

// vm sets what the provider has returned. A VM that it has named stays named.
func vm(v machine.VMView) change {
	return func(in *machine.Observation) {
		if v.Named == (machine.NamedVM{}) {
			v.Named = in.VM.Named
		}
		in.VM = v
	}
}

// seen sets a VM that the provider has returned. A VM that is Present is initialized.
func seen(s machine.Presence) change {
	return vm(machine.VMView{
		Presence: s, ProviderID: "simulated:///1", NodeName: "n", SeenAt: now, Initialized: s == machine.Present,
		Named: machine.NamedVM{AskedAt: now, ProviderID: "simulated:///1", NodeName: "n"},
	})
}

func ready(s corev1.ConditionStatus) corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: s, Reason: "Kubelet", LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}
}

// node sets a Node that is up to date with its machine.
func node(conditions ...corev1.NodeCondition) change {
	return func(in *machine.Observation) {
		in.Node = machine.NodeView{Looked: true, AsOf: now, Node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: "n", UID: "node-uid", ResourceVersion: "9", Finalizers: []string{v1alpha1.NodeFinalizerName},
				Labels: map[string]string{v1alpha1.MachineNameLabelKey: "m", "pool": "a"},
				Annotations: map[string]string{
					v1alpha1.LastAppliedALTAnnotation: `{"metadata":{"labels":{"pool":"a"}},"spec":{}}`,
					v1alpha1.MachineUIDAnnotation:     "uid-m",
				},
			},
			Status: corev1.NodeStatus{Conditions: conditions},
		}}
	}
}

func onNode(change func(*corev1.Node)) change {
	return func(in *machine.Observation) { change(in.Node.Node) }
}

// copied sets the conditions of the Node in the status of the machine.
func copied(in *machine.Observation) {
	in.Machine.Status.Conditions = in.Node.Node.DeepCopy().Status.Conditions
}

// decisionCase is an observation and the text of its decision.
type decisionCase struct {
	in   machine.Observation
	want string
}

// check asserts the decision of each case, and the laws of all decisions.
func check(t *testing.T, p machine.Policy, table map[string]decisionCase) {
	t.Helper()
	for name, tc := range table {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, lawful(t, tc.in, p).String())
		})
	}
}

// lawful returns the decision and asserts the laws. A permit that needs no limit is granted.
func lawful(t *testing.T, in machine.Observation, p machine.Policy) machine.Decision {
	t.Helper()
	d := lawfulOnce(t, in, p)
	if a, asks := d.Action.(machine.TakePermit); asks && a.Within == 0 {
		held(0)(&in)
		d = lawfulOnce(t, in, p)
	}
	return d
}

// lawfulOnce returns the decision and asserts the laws: the same input has the same decision, and
// the decision neither changes nor references the input.
func lawfulOnce(t *testing.T, in machine.Observation, p machine.Policy) machine.Decision {
	t.Helper()
	before := deepCopy(in)
	d := machine.Decide(in, p, now)
	require.NoError(t, decisionLaws(d, now))
	require.Empty(t, gocmp.Diff(d, machine.Decide(in, p, now)), "decision differs for the same input")
	again := machine.Decide(in, p, now)
	switch a := again.Action.(type) {
	case machinist.Delete: // its object is the observed one
	case machinist.Update: // as is that before
		scribble(reflect.ValueOf(a.Object))
		clear(a.Changes)
	default:
		scribble(reflect.ValueOf(again))
	}
	require.Empty(t, gocmp.Diff(before, in), "the input was changed")
	return d
}

func deepCopy(in machine.Observation) machine.Observation {
	in.Machine, in.Class.Class, in.Node.Node = in.Machine.DeepCopy(), in.Class.Class.DeepCopy(), in.Node.Node.DeepCopy()
	in.VM.Addresses, in.Drain.Holds = slices.Clone(in.VM.Addresses), slices.Clone(in.Drain.Holds)
	in.Attachments.Attachments = slices.Clone(in.Attachments.Attachments)
	for i, va := range in.Attachments.Attachments {
		in.Attachments.Attachments[i] = va.DeepCopy()
	}
	in.Siblings.Machines = slices.Clone(in.Siblings.Machines)
	for i := range in.Siblings.Machines {
		in.Siblings.Machines[i] = in.Siblings.Machines[i].DeepCopy()
	}
	return in
}

// scribble overwrites everything that a decision references.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				scribble(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
		v.Clear()
	case reflect.Map:
		v.Clear()
	case reflect.String:
		if v.CanSet() {
			v.SetString("scribbled")
		}
	}
}

func TestDecide_ZeroObservation_NoAction(t *testing.T) {
	for _, p := range []machine.Policy{{}, machine.DefaultPolicy()} {
		require.Equal(t, machine.Decision{Reason: machine.ReasonNotObserved}, machine.Decide(machine.Observation{}, p, now))
	}
	require.Equal(t, machine.Decision{Reason: machine.ReasonNotObserved}, machine.DecideClass(machine.ClassObservation{}, now))
	require.Equal(t, machine.Decision{Reason: machine.ReasonNotObserved}, machine.DecideSecret(machine.SecretObservation{}, now))
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// moment returns a time around now.
func moment(r *rand.Rand) time.Time {
	return pick(r, time.Time{}, now, now.Add(-time.Nanosecond), now.Add(-time.Second), now.Add(-5*time.Minute),
		now.Add(-20*time.Minute), now.Add(-3*time.Hour), now.Add(time.Minute),
		now.Add(3*time.Second), now.Add(30*time.Minute), now.AddDate(173, 0, 0), time.Unix(0, 0))
}

// anything returns a random observation, also an impossible one.
func anything(r *rand.Rand) machine.Observation {
	m := newMachine("m")
	m.ResourceVersion, m.CreationTimestamp = "7", metav1.NewTime(moment(r))
	m.Finalizers = pick(r, nil, []string{v1alpha1.MCMFinalizerName}, []string{"a", v1alpha1.MCMFinalizerName, "b"}, []string{"x"})
	m.Labels = pick(r, nil, map[string]string{v1alpha1.NodeLabelKey: "n"}, map[string]string{v1alpha1.NodeLabelKey: "n", v1alpha1.LabelKeyMachineDeploymentName: "pool"})
	m.Annotations = pick(r, nil, map[string]string{v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout: "7m"})
	m.Spec.ProviderID = pick(r, "", "simulated:///1")
	m.Spec.Class.Name = pick(r, "small", "small", "")
	if r.IntN(3) == 0 {
		m.DeletionTimestamp = &metav1.Time{Time: moment(r)}
	}
	m.Status = v1alpha1.MachineStatus{
		LastOperation: v1alpha1.LastOperation{
			Type:        pick(r, "", v1alpha1.MachineOperationCreate, v1alpha1.MachineOperationDelete, v1alpha1.MachineOperationHealthCheck),
			State:       pick(r, "", v1alpha1.MachineStateFailed, v1alpha1.MachineStateProcessing),
			Description: pick(r, "", v1alpha1.InitiateDrain, `machine class "small" does not exist`),
		},
		CurrentStatus: v1alpha1.CurrentStatus{
			Phase: pick(r, "", v1alpha1.MachinePending, v1alpha1.MachineRunning, v1alpha1.MachineUnknown, v1alpha1.MachineFailed,
				v1alpha1.MachineCrashLoopBackOff, v1alpha1.MachineTerminating, v1alpha1.MachineAvailable, v1alpha1.MachineInPlaceUpdating, "Strange"),
			LastUpdateTime:     metav1.NewTime(moment(r)),
			PreserveExpiryTime: pick(r, nil, &metav1.Time{Time: now}),
		},
		LastKnownState: pick(r, "", "step 1"),
		Addresses:      []corev1.NodeAddress{{Type: "InternalIP", Address: "1"}},
	}
	in := machine.Observation{Machine: m, Freeze: machine.Freeze{Frozen: r.IntN(10) == 0}}
	in.Class = machine.ClassView{Looked: r.IntN(4) > 0, Class: pick(r, nil, class(), class()), Problem: pick(r, "", "", "no secret")}
	if in.Class.Class != nil && r.IntN(4) == 0 {
		in.Class.Class.Finalizers = nil
	}
	in.Node = machine.NodeView{Looked: r.IntN(4) > 0, NoTarget: r.IntN(6) == 0, AsOf: pick(r, time.Time{}, moment(r), now, now, now), Unanswered: r.IntN(6) == 0}
	if r.IntN(2) == 0 {
		in.Node.Node = anyNode(r)
	}
	in.VM = anyView(r)
	in.ProviderID = machine.ProviderIDView{Compared: r.IntN(6) > 0}
	if r.IntN(6) == 0 {
		in.ProviderID.Others = []*v1alpha1.Machine{sharer("b")}
	}
	in.Drain = machine.DrainView{Done: r.IntN(3) == 0, Round: moment(r), NextCheck: moment(r), Holds: pick(r, nil, []machinist.Hold{{Subject: "pod/a/b", Reason: "Budget"}})}
	in.Siblings = machine.Siblings{Complete: r.IntN(2) == 0, Machines: pick(r, nil, []*v1alpha1.Machine{nil, m}, []*v1alpha1.Machine{newMachine("s")})}
	return in
}

func anyNode(r *rand.Rand) *corev1.Node {
	in := after(node(pick(r,
		[]corev1.NodeCondition{ready(corev1.ConditionTrue)}, []corev1.NodeCondition{ready(corev1.ConditionFalse)},
		[]corev1.NodeCondition{ready(corev1.ConditionTrue), marked}, nil,
	)...))
	n := in.Node.Node
	n.Finalizers = pick(r, nil, n.Finalizers, []string{"x"})
	n.Labels = pick(r, nil, n.Labels)
	n.Spec.ProviderID = pick(r, "", "", "simulated:///1", "simulated:///2")
	n.Annotations = pick(r, nil, n.Annotations, n.Annotations, map[string]string{v1alpha1.LastAppliedALTAnnotation: "{"}, map[string]string{v1alpha1.TriggerDeletionByMCM: pick(r, "true", "false")})
	if r.IntN(5) == 0 {
		n.DeletionTimestamp = &metav1.Time{Time: now}
	}
	return n
}

func anyView(r *rand.Rand) machine.VMView {
	v := machine.VMView{
		Presence: machine.Presence(r.IntN(6)), ProviderID: pick(r, "", "simulated:///1", "simulated:///2"), NodeName: pick(r, "", "n"),
		Named:  pick(r, machine.NamedVM{}, machine.NamedVM{AskedAt: now}, machine.NamedVM{AskedAt: now, ProviderID: pick(r, "simulated:///1", "simulated:///2"), NodeName: pick(r, "", "n")}),
		SeenAt: moment(r), Asked: pick(r, driver.Operations()...), Initialized: r.IntN(2) == 0,
		LastKnownState: pick(r, "", "step 2"), Addresses: []corev1.NodeAddress{{Type: "InternalIP", Address: "2"}},
	}
	if r.IntN(2) == 0 {
		v.Failure = machine.CallFailure{Operation: pick(r, driver.Operations()...), Code: pick(r, codes.All()...), Message: "no", At: moment(r), Attempts: r.IntN(5) - 1}
	}
	return v
}

func anyPolicy(r *rand.Rand) machine.Policy {
	return pick(r, machine.Policy{}, machine.DefaultPolicy(), machine.DefaultPolicy(), machine.Policy{
		CreationTimeout: -1, HealthTimeout: time.Nanosecond, DrainTimeout: time.Nanosecond, MaxReplacements: -1, Settle: -1,
	})
}

// TestDecide_RandomObservations_Laws asserts the promises of Decide, Observation and Policy for
// random observations.
func TestDecide_RandomObservations_Laws(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12000) {
		r := rand.New(rand.NewPCG(seed, 3))
		in, p := anything(r), anyPolicy(r)
		if seed%2 == 0 {
			in = anyLife(r)
		}
		if seed%20 == 0 {
			lawful(t, in, p) // all laws, slowly
		}
		d := machine.Decide(in, p, now)
		if err := laws(in, p, d); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, d)
		}
	}
}

// laws returns an error for a decision that breaks a promise.
func laws(in machine.Observation, p machine.Policy, d machine.Decision) error {
	m := in.Machine
	if err := decisionLaws(d, now); err != nil && len(in.Drain.Holds) == 0 { // the holds of a drain are checked there
		return err
	}
	deleting, guarded := !m.DeletionTimestamp.IsZero(), slices.Contains(m.Finalizers, v1alpha1.MCMFinalizerName)
	blind := !in.Node.Looked && !in.Node.NoTarget
	const early, another = "deletion step for a machine that is not being deleted", "write of a Node that is not that of the machine"
	switch a := d.Action.(type) {
	case machine.CallDriver:
		return cmp.Or(promise(guarded, "call for a machine without finalizer"), callLaws(in, a, blind))
	case machinist.Update:
		return cmp.Or(promise(isMachine(a) || strange(in) == "", another), updateLaws(in, p, a))
	case machine.DeleteAttachments:
		return cmp.Or(promise(deleting, early), promise(strange(in) == "", another))
	case machine.DrainNode:
		return cmp.Or(
			promise(guarded, "drain for a machine without finalizer"),
			promise(strange(in) == "", another),
			promise(!deleting || !a.Policy.KeepSchedulable, "Node of a deleted machine stays schedulable"),
			promise(!blind && facts.Drains(m, in.Node.Node), "drain of the Node of a machine that is not being deleted"))
	case machinist.Delete:
		switch o := a.Object.(type) {
		case *corev1.Secret:
			return promise(facts.TokenOwner(o) == m.UID, "deletion of a token that is not that of the machine")
		case *corev1.Node:
			return cmp.Or(promise(guarded && strange(in) == "", "deletion of a Node that is not that of the machine"),
				promise(deleting && (!blind || in.Node.Unanswered), "deletion with an incomplete view"))
		}
		triggered := !blind && (!in.Node.Node.DeletionTimestamp.IsZero() || in.Node.Node.Annotations[v1alpha1.TriggerDeletionByMCM] == "true")
		return promise(triggered, "machine deleted without a trigger")
	}
	return nil
}

// promise returns an error if a promise is not kept.
func promise(kept bool, otherwise string) error {
	if kept {
		return nil
	}
	return errors.New(otherwise)
}

// updateLaws checks a write of the machine or its Node.
func updateLaws(in machine.Observation, p machine.Policy, u machinist.Update) error {
	if m, ok := u.Object.(*v1alpha1.Machine); ok {
		is := identityLaws
		if u.Subresource != "" {
			is = func(in machine.Observation, m *v1alpha1.Machine) error { return statusLaws(in, p, m) }
		}
		observed := u.Unchanged && u.Before == in.Machine && m.ResourceVersion == in.Machine.ResourceVersion
		return cmp.Or(promise(observed, "write without the observed resource version"), is(in, m))
	}
	guarded, deleting := slices.Contains(in.Machine.Finalizers, v1alpha1.MCMFinalizerName), !in.Machine.DeletionTimestamp.IsZero()
	was, is := in.Node.Node, u.Object.(*corev1.Node)
	set := changedConditions(u)
	writes := func(t corev1.NodeConditionType) bool { return facts.ConditionOf(set, t) != nil }
	replaces := !equality.Semantic.DeepEqual(was.Spec.Taints, is.Spec.Taints)
	outside := u.Subresource == "" && len(set) > 0 || u.Subresource != "" && !equality.Semantic.DeepEqual(was.Spec, is.Spec)
	return cmp.Or(
		promise(u.Before == was, "write of a Node that was not observed"),
		promise(guarded, "Node written for a machine without finalizer"),
		promise(!deleting || writes(v1alpha1.NodeTerminationCondition) || u.Changes[0] == "UID of the machine", "update or preservation before a deletion"),
		promise(deleting || !writes(v1alpha1.NodeTerminationCondition), "deletion step for a machine that is not being deleted"),
		promise(!outside, "write of fields that are not in the subresource"),
		promise(u.Unchanged == (replaces || writes(v1alpha1.NodeInPlaceUpdate)), "taints and steps of an update, and nothing else, need an unchanged Node"))
}

func identityLaws(in machine.Observation, m *v1alpha1.Machine) error {
	old, node := in.Machine, v1alpha1.NodeLabelKey
	others := func(m *v1alpha1.Machine) []string {
		return slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool { return f == v1alpha1.MCMFinalizerName })
	}
	if err := cmp.Or(
		promise(slices.Equal(others(old), others(m)), "finalizer of another controller changed"),
		promise(old.Spec.ProviderID == "" || m.Spec.ProviderID == old.Spec.ProviderID, "provider ID changed"),
		promise(old.Labels[node] == "" || m.Labels[node] == old.Labels[node], "label node changed"),
	); err != nil || len(m.Finalizers) >= len(old.Finalizers) {
		return err
	}
	never := old.Spec.ProviderID+old.Labels[node]+in.VM.ProviderID == "" // a VM was never requested
	confirmed := in.VM.Asked == driver.OpDeleteMachine && in.VM.Failure.Code == codes.OK &&
		(in.VM.Presence == machine.Deleted || in.VM.Presence == machine.Absent)
	refused := slices.Contains([]codes.Code{codes.InvalidArgument, codes.Unauthenticated, codes.PermissionDenied, codes.NotFound, codes.Unimplemented}, in.VM.Failure.Code)
	unbegun := (refused || len(machine.Validate(in.Machine)) > 0 || in.Class.Problem != "" || in.Class.Looked && in.Class.Class == nil) && old.Spec.ProviderID == "" && old.Status.CurrentStatus.Phase == ""
	return cmp.Or(
		promise(!old.DeletionTimestamp.IsZero(), "finalizer removed without a deletion"),
		promise(never || in.Node.Looked || in.Node.NoTarget || in.Node.Unanswered, "finalizer removed too early"),
		promise(confirmed || unbegun, "finalizer removed while the VM may exist"))
}

func statusLaws(in machine.Observation, p machine.Policy, m *v1alpha1.Machine) error {
	was, is := in.Machine.Status.CurrentStatus.Phase, m.Status.CurrentStatus.Phase
	if is == was {
		return nil
	}
	had, has := in.Machine.Status.CurrentStatus.PreserveExpiryTime, m.Status.CurrentStatus.PreserveExpiryTime
	deletes, fails := is == v1alpha1.MachineTerminating, is == v1alpha1.MachineFailed
	waits := was == v1alpha1.MachinePending || was == v1alpha1.MachineUnknown || was == v1alpha1.MachineInPlaceUpdateFailed
	foreign := strings.Contains(m.Status.LastOperation.Description, "old node obj")
	stale := !in.Node.NoTarget && (in.Node.AsOf.IsZero() || !in.Node.Looked)
	limited := p.CreationTimeout > 0 || p.HealthTimeout > 0 || in.Machine.Annotations != nil || in.Machine.Spec.MachineConfiguration != nil
	return cmp.Or(
		promise(!deletes || has == nil, "deletion keeps the preservation"),
		promise(deletes || had.Equal(has), "change of phase changes the preservation"),
		promise(!fails || !waits || !stale || foreign, "machine failed by an observation of unknown age"),
		promise(!fails || limited || foreign, "machine failed by the zero policy"),
		promise(!fails || !in.Freeze.Frozen, "machine failed while frozen"),
		promise(!fails || was != v1alpha1.MachineUnknown || in.Machine.Spec.ProviderID == "" || in.Node.Looked, "machine failed with an incomplete view"),
		promise(is != v1alpha1.MachineUnknown || was != v1alpha1.MachineRunning || in.Node.Looked, "machine Unknown although its Node was not read"),
		promise(!deletes || !in.Machine.DeletionTimestamp.IsZero(), "deletion step for a machine that is not being deleted"))
}

// anyExit returns a random machine that is being deleted, with random volumes, in a cluster that
// was read.
func anyExit(r *rand.Rand) machine.Observation {
	in := anything(r)
	in.Machine.Finalizers = []string{v1alpha1.MCMFinalizerName}
	in.Machine.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Duration(r.Int64N(int64(3 * time.Hour))))}
	in.Machine.Status.LastOperation.Description = pick(r, "",
		v1alpha1.GetVMStatus, v1alpha1.InitiateDrain, v1alpha1.DelVolumesAttachments, v1alpha1.InitiateVMDeletion, v1alpha1.InitiateNodeDeletion,
		v1alpha1.InitiateFinalizerRemoval, "Drain successful. "+v1alpha1.InitiateVMDeletion,
		"VM not found. Continuing deletion flow. "+v1alpha1.InitiateNodeDeletion)
	in.Machine.Status.LastOperation.LastUpdateTime = metav1.NewTime(moment(r))
	if r.IntN(4) == 0 {
		byForce(&in)
	}
	in.ProviderID = machine.ProviderIDView{Compared: true}
	in.Node.Looked, in.Tokens.Looked, in.Attachments = true, true, anyAttachments(r)
	in.Drain = machine.DrainView{}
	if r.IntN(2) == 0 {
		in.Drain = machine.DrainView{Started: pick(r, time.Time{}, moment(r), in.Machine.DeletionTimestamp.Time), Round: moment(r), Done: r.IntN(2) == 0, DoneAt: moment(r), ForcedAt: moment(r), NextCheck: now}
	}
	return in
}

// strange returns why the Node of an observation is not proven to be that of the machine (I-21).
func strange(in machine.Observation) string {
	m, n, vm := in.Machine, in.Node.Node, in.VM.Named
	id, marked := n.Spec.ProviderID, n.Annotations[v1alpha1.MachineUIDAnnotation] == string(m.UID)
	switch {
	case id != "" && vm.ProviderID != "":
		if !nodeops.SameInstance(id, vm.ProviderID) {
			return "another VM than the provider has for the machine"
		}
	case id != "" && m.Spec.ProviderID != "" && !nodeops.SameInstance(id, m.Spec.ProviderID):
		return "another VM than the machine has"
	case marked:
	case vm.ProviderID == "" || vm.NodeName != n.Name:
		op := m.Status.LastOperation
		mcm := m.Status.CurrentStatus.Phase == v1alpha1.MachineTerminating && op.Type == v1alpha1.MachineOperationDelete &&
			(strings.Contains(op.Description, v1alpha1.InitiateNodeDeletion) || strings.Contains(op.Description, v1alpha1.InitiateFinalizerRemoval))
		if !mcm || n.Labels[v1alpha1.MachineNameLabelKey] != m.Name {
			return "the provider has not named it"
		}
	}
	return ""
}

func anyAttachments(r *rand.Rand) machine.AttachmentsView {
	v := machine.AttachmentsView{Looked: true, AskedAt: pick(r, time.Time{}, time.Time{}, moment(r))}
	for range r.IntN(4) {
		va := attachment(pick(r, "a", "b", "c"))
		va.Spec.NodeName = pick(r, "n", "n", "another", "")
		if r.IntN(3) == 0 {
			va.DeletionTimestamp = &metav1.Time{Time: now}
		}
		v.Attachments = append(v.Attachments, pick(r, va, va, va, nil))
	}
	return v
}

// TestDeletion_RandomWorlds_End asserts that the deletion of a machine ends if its class exists or
// the deletion is forced, also if volumes stay attached (I-18).
func TestDeletion_RandomWorlds_End(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 5))
		x := newWorld(anyExit(r))
		x.rounds, x.anew = r.IntN(4), r.IntN(2) == 0
		x.policy = pick(r, machine.DefaultPolicy(), machine.Policy{DetachTimeout: time.Minute}, machine.Policy{DrainTimeout: time.Minute})
		faults := r.IntN(3)
		for range faults {
			x.look, x.deletion = append(x.look, errTransient), append(x.deletion, errTransient)
		}
		forced := x.in.Machine.Labels[v1alpha1.LabelKeyForceDeletion] == "true"
		x.in.Class.Looked = true
		if x.in.Class.Class == nil && !forced {
			x.in.Class.Class = class()
		}
		x.run(t)
		require.True(t, x.released, "seed %d: %q", seed, x.did)
		require.Equal(t, stepRelease, x.did[len(x.did)-1])
		checkOrder(t, seed, x, faults > 0)
	}
}

// checkOrder asserts the order of the steps, and that all were made. After a failed deletion the
// presence of the VM is not known, so that a drain may follow.
func checkOrder(t *testing.T, seed uint64, x *world, faults bool) {
	t.Helper()
	vm, node := slices.Index(x.did, stepVM), slices.Index(x.did, stepNode)
	for i, s := range x.did {
		switch {
		case s == stepDrain && !faults && vm >= 0 && slices.Contains(x.did[:i], stepVM) && !slices.Contains(x.did[:i], stepName):
			require.Fail(t, "drain after the deletion of the VM", "seed %d: %q", seed, x.did)
		case s == stepNode && node != i:
			require.Fail(t, "Node deleted twice", "seed %d: %q", seed, x.did)
		}
	}
	if vm >= 0 && node >= 0 {
		require.Less(t, vm, node, "seed %d: %q", seed, x.did)
	}
	if n := x.in.Node.Node; n != nil && !x.in.Node.NoTarget && n.DeletionTimestamp.IsZero() {
		require.NotEmpty(t, strange(x.in), "seed %d: Node not deleted: %q", seed, x.did)
	}
}

// TestDecide_IncompleteView_NothingDestructive asserts that nothing is deleted if the cluster was
// not read (I-3).
func TestDecide_IncompleteView_NothingDestructive(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 6))
		in, p := anyExit(r), anyPolicy(r)
		if in.Node.NoTarget {
			continue
		}
		if a, ok := lawful(t, in, p).Action.(machine.DeleteAttachments); ok {
			m, asked := in.Machine, in.Machine.DeletionTimestamp
			late := p.DrainTimeout > 0 && !now.Before(asked.Add(p.DrainTimeout))
			away := slices.ContainsFunc(in.Node.Node.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
			})
			begun := m.Status.LastOperation.Description == v1alpha1.DelVolumesAttachments
			require.True(t, late || away || forced(m) || begun, "seed %d: attachments deleted without force", seed)
			var live []string
			for _, va := range in.Attachments.Attachments {
				if va != nil && va.Spec.NodeName == "n" && va.DeletionTimestamp.IsZero() {
					live = append(live, va.Name)
				}
			}
			slices.Sort(live)
			require.Equal(t, "delete volume attachments "+strings.Join(live, ", "), a.String())
		}
		in.Node.Looked, in.Node.Unanswered = false, false
		switch a := machine.Decide(in, p, now).Action.(type) {
		case nil, machinist.Refresh:
		case machinist.Delete:
			require.IsType(t, &corev1.Secret{}, a.Object, "seed %d", seed)
		case machinist.Update: // its VM was never requested, so that there is no Node
			m := written(a)
			require.Empty(t, a.Subresource)
			require.Empty(t, m.Finalizers, "seed %d", seed)
			require.Empty(t, m.Spec.ProviderID+m.Labels[v1alpha1.NodeLabelKey]+in.VM.ProviderID, "seed %d", seed)
			unusable := in.Class.Class == nil || in.Class.Problem != "" || in.Class.Class.NodeTemplate != nil || len(machine.Validate(in.Machine)) > 0
			require.True(t, in.Class.Looked && unusable, "seed %d", seed)
		default:
			require.Fail(t, "action for a cluster that was not read", "seed %d: %s", seed, a)
		}
	}
}

// callLaws checks a driver call.
func callLaws(in machine.Observation, a machine.CallDriver, blind bool) error {
	m, noClass, unusable := in.Machine, in.Class.Class == nil, in.Class.Class == nil || in.Class.Problem != ""
	deleting, op := !m.DeletionTimestamp.IsZero(), m.Status.LastOperation
	switch a.Operation {
	case driver.OpCreateMachine:
		intent := m.Status.CurrentStatus.Phase == v1alpha1.MachineCrashLoopBackOff ||
			op.Type == v1alpha1.MachineOperationCreate && op.State == v1alpha1.MachineStateProcessing
		known := deleting || in.Freeze.Frozen || m.Spec.ProviderID != "" || in.VM.Presence != machine.Absent || unusable
		return promise(intent && !known, "VM created without intent, class or lookup")
	case driver.OpGetMachineStatus:
		return promise(!noClass && (!unusable || deleting), "driver call without a class")
	case driver.OpInitializeMachine:
		return promise(!deleting && m.Spec.ProviderID != "" && !unusable, "initialization of an unknown VM")
	default:
		return promise(deleting && (!blind || in.Node.Unanswered) && (!noClass || a.ByName), "deletion with an incomplete view")
	}
}

func TestDecision_JSON_NamesObjectsWithoutZeroTimes(t *testing.T) {
	data, err := json.MarshalIndent(machine.Decision{
		Action: machine.DrainNode{NodeName: "worker-1", Started: now, Policy: drain.ForMachine(now.Add(2 * time.Hour))},
		Reason: "Draining", Message: "the machine is being deleted",
		Holds: []machinist.Hold{
			{Subject: "pod/shop/web-1", Reason: "BudgetExhausted", Message: "0 disruptions allowed", Since: now.Add(-time.Minute)},
			machine.Freeze{Frozen: true, Since: now.Add(-time.Hour), Message: "the target API server does not answer"}.Hold(now),
		},
		NextCheck: now.Add(5 * time.Second),
	}, "", "  ")
	require.NoError(t, err)
	golden(t, "decision.json", string(data)+"\n")

	data, err = json.Marshal(&machine.Decision{})
	require.NoError(t, err)
	require.Equal(t, `{}`, string(data))
}

func TestDecision_JSON_EachAction_TypeSubjectText(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "a"}
	m, node := &v1alpha1.Machine{ObjectMeta: meta}, &corev1.Node{ObjectMeta: meta}
	secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"token-secret": []byte("hidden")}}
	for want, actions := range map[string][]machinist.Action{
		"":               {machine.CallDriver{Operation: driver.OpGetMachineStatus}, machine.CallDriver{Operation: driver.OpCreateMachine}, machine.CallDriver{Operation: driver.OpInitializeMachine}, machine.CallDriver{Operation: driver.OpDeleteMachine, ByName: true}, machine.CreateToken{}, machine.TakePermit{}, machine.ReturnPermit{}, machine.DeleteAttachments{}, machinist.Refresh{Kind: "Node"}, machinist.Update{}, machinist.Update{Object: (*corev1.Node)(nil)}, machinist.Delete{}},
		"machine/a":      {machinist.Update{Before: m, Object: m, Changes: []string{"finalizer"}}, machinist.Delete{Object: m}},
		"node/a":         {machinist.Refresh{Kind: "Node", Name: "a"}, machinist.Update{Object: node, Subresource: "status"}, machine.DrainNode{NodeName: "a"}, machinist.Delete{Object: node}},
		"machineclass/a": {machinist.Update{Object: &v1alpha1.MachineClass{ObjectMeta: meta}}},
		"secret/shop/a":  {machinist.Update{Before: secret, Object: secret, Changes: []string{"finalizer"}}, machinist.Delete{Object: secret}},
	} {
		for _, a := range actions {
			data, err := json.Marshal(machine.Decision{Action: a})
			require.NoError(t, err)
			require.NotContains(t, string(data), "hidden")
			var got struct {
				Action map[string]string `json:"action"`
			}
			require.NoError(t, json.Unmarshal(data, &got))
			require.Equal(t, reflect.TypeOf(a).Name(), got.Action["type"])
			require.Equal(t, want, got.Action["subject"], a)
			require.Equal(t, a.String(), got.Action["text"])
		}
	}
}

func TestFreeze_JSON_NoZeroTimes(t *testing.T) {
	out, err := json.Marshal([]machine.Freeze{{}, {Frozen: true, Message: "control", Since: time.Unix(0, 0).UTC()}})
	require.NoError(t, err)
	require.Equal(t, `[{},{"frozen":true,"since":"1970-01-01T00:00:00Z","message":"control"}]`, string(out))
}

// TestFreeze_Frozen_OnlyDeletionsContinue asserts for random machines that a freeze stops all
// actions except deletions.
func TestFreeze_Frozen_OnlyDeletionsContinue(t *testing.T) {
	t.Parallel()
	byNode := 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 9))
		in, p := anything(r), anyPolicy(r)
		in.Freeze = machine.Freeze{}
		without := machine.Decide(in, p, now)
		in.Freeze = machine.Freeze{Frozen: true, Since: now.Add(-time.Minute), Message: "the target API server does not answer"}
		d := machine.Decide(in, p, now)
		if !in.Machine.DeletionTimestamp.IsZero() {
			require.Equal(t, without, d, "seed %d", seed)
			continue
		}
		if _, deletes := d.Action.(machinist.Delete); deletes {
			byNode++
			continue
		}
		require.Nil(t, d.Action, "seed %d", seed)
		require.Equal(t, machine.ReasonFrozen, d.Reason)
		require.Equal(t, now.Add(time.Minute), d.NextCheck)
		require.Contains(t, d.Holds[0].Message, "the target API server does not answer")
		require.Equal(t, in.Freeze.Since, d.Holds[0].Since)
	}
	require.Positive(t, byNode)
}

// TestFreeze_DeletionByTheNode_IsCarriedOut asserts both ways in which a user deletes a machine by its
// Node, and that nothing else of the Node deletes it.
func TestFreeze_DeletionByTheNode_IsCarriedOut(t *testing.T) {
	annotated := onNode(func(n *corev1.Node) { n.Annotations[v1alpha1.TriggerDeletionByMCM] = "true" })
	deleted := onNode(func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: now} })
	const (
		deletes = "delete machine m (Deleting)"
		waits   = "nothing (Frozen: nothing is created, failed or replaced: ); waits for api-server: Frozen: nothing is created, failed or replaced: "
	)
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"annotation":                {living(v1alpha1.MachineRunning, healthy, annotated, frozen), deletes},
		"kubectl delete node":       {living(v1alpha1.MachineRunning, healthy, deleted, frozen), deletes},
		"another value":             {living(v1alpha1.MachineRunning, healthy, onNode(func(n *corev1.Node) { n.Annotations[v1alpha1.TriggerDeletionByMCM] = "false" }), frozen), waits},
		"Node that others delete":   {living(v1alpha1.MachineRunning, healthy, deleted, onNode(func(n *corev1.Node) { n.Finalizers = []string{"other"} }), frozen), waits},
		"Node of another machine":   {living(v1alpha1.MachineRunning, healthy, annotated, ofAnother, frozen), waits},
		"Node that was not read":    {living(v1alpha1.MachineRunning, healthy, annotated, func(in *machine.Observation) { in.Node.Looked = false }, frozen), waits},
		"machine without finalizer": {living(v1alpha1.MachineRunning, healthy, annotated, spec(func(m *v1alpha1.Machine) { m.Finalizers = nil }), frozen), waits},
	})
}

// TestFreeze_AfterOutage_TimeoutsBeginAnew has machines whose phase began an hour ago. Each fails
// only after its whole timeout since the API servers answer.
func TestFreeze_AfterOutage_TimeoutsBeginAnew(t *testing.T) {
	p := machine.DefaultPolicy()
	long := func(in *machine.Observation) {
		m := in.Machine
		m.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
		m.Status.CurrentStatus.LastUpdateTime, m.Status.LastOperation.LastUpdateTime = m.CreationTimestamp, m.CreationTimestamp
		in.Siblings.Complete = true
		held(0)(in)
	}
	for name, tc := range map[string]struct {
		in      machine.Observation
		timeout time.Duration
	}{
		"Unknown":         {living(unknown, sick, copied, long), p.HealthTimeout},
		"Pending":         {living(pending, sick, copied, long), p.CreationTimeout},
		"InPlaceUpdating": {living(updating, sick, labeled("selected"), copied, long), p.InPlaceTimeout},
		"no VM yet":       {after(intended, seen(machine.Absent), long), p.CreationTimeout},
	} {
		ahead := machine.Decide(tc.in, p, now).Reason
		for _, answering := range []time.Duration{0, time.Second, tc.timeout - time.Second, tc.timeout, 24 * time.Hour} {
			tc.in.Freeze.ClocksFrom = now.Add(-answering)
			d := machine.Decide(tc.in, p, now)
			fails := d.Reason == "HealthTimeout" || d.Reason == "CreationTimeout" || d.Reason == "UpdateTimeout"
			require.Equal(t, answering >= tc.timeout, fails, "%s, answering for %s: %s", name, answering, d)
		}
		tc.in.Freeze.ClocksFrom = now.Add(time.Hour)
		require.Equal(t, ahead, machine.Decide(tc.in, p, now).Reason, "%s: a clock that is ahead does not count", name)
	}
}

var sink machine.Decision

// BenchmarkDecideHealth measures the most frequent decision: nothing has changed for a Running machine.
func BenchmarkDecideHealth(b *testing.B) {
	in, p := living(v1alpha1.MachineRunning, healthy, copied, inPool), machine.DefaultPolicy()
	require.Equal(b, "nothing (NodeReady)", machine.Decide(in, p, now).String())
	b.ReportAllocs()
	for b.Loop() {
		sink = machine.Decide(in, p, now)
	}
}
