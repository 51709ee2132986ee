// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/decided"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// epoch is when machines are created that say nothing else; now is the time of
// every decision that needs no other.
var (
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now   = epoch.Add(time.Hour)
)

// newSet returns a valid set with its finalizer.
func newSet(replicas int32) *v1alpha1.MachineSet {
	return &v1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "ms", Namespace: "ns", UID: "uid-ms", Finalizers: []string{v1alpha1.MCMFinalizerName},
		},
		Spec: v1alpha1.MachineSetSpec{
			Replicas: replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}},
			Template: v1alpha1.MachineTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "w"}},
				Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: "c1"}},
			},
		},
	}
}

// newMachine returns a machine of newSet that follows its template.
func newMachine(name string, phase v1alpha1.MachinePhase) *v1alpha1.Machine {
	yes := true
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(epoch),
			Labels: map[string]string{"app": "w"}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{Name: "ms", UID: "uid-ms", Controller: &yes}},
		},
		Spec:   v1alpha1.MachineSpec{ProviderID: "pid-" + name, Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: "c1"}},
		Status: v1alpha1.MachineStatus{CurrentStatus: v1alpha1.CurrentStatus{Phase: phase}},
	}
}

// marked makes an autoscaler name a machine; set is to carry scaledNow.
func marked(m *v1alpha1.Machine) *v1alpha1.Machine {
	m.Annotations[v1alpha1.MachinePriority] = "1"
	m.Annotations[v1alpha1.MarkedForDeletionTime] = at(-time.Minute)
	return m
}

func scaledNow() map[string]string {
	return map[string]string{v1alpha1.LastDeploymentReplicaChangeByScalerTime: at(0)}
}

// expiry returns the time that is so many seconds from now.
func expiry(seconds int) *metav1.Time {
	return &metav1.Time{Time: now.Add(time.Duration(seconds) * time.Second)}
}

func created(d machineset.Decision) int {
	n := 0
	for _, c := range decided.Of[machinist.Create](d.Actions) {
		n += c.Count
	}
	return n
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}

func namesOf(victims []machineset.Victim) []string {
	names := []string{}
	for _, v := range victims {
		names = append(names, v.Machine.Name)
	}
	return names
}

// nodeSaying is the view of a Node with a preserve annotation; empty is one without.
func nodeSaying(value string) machine.NodeView {
	node := &corev1.Node{}
	if value != "" {
		node.Annotations = map[string]string{v1alpha1.PreserveMachineAnnotationKey: value}
	}
	return machine.NodeView{Looked: true, Node: node}
}

// named finds machines by their name.
func named(machines []*v1alpha1.Machine) func(kind, name string) metav1.Object {
	return func(_, name string) metav1.Object {
		for _, m := range machines {
			if m != nil && m.Name == name {
				return m
			}
		}
		return nil
	}
}

// victimsAnnotation is the annotation of a set that names the machines that go first.
const victimsAnnotation = "machinist.dev/delete-first"

// syncOf returns the update of a machine of a set, and whether there is one.
func syncOf(set *v1alpha1.MachineSet, m *v1alpha1.Machine) (machinist.Update, bool) {
	for _, a := range machineset.Decide(machineset.Observation{Set: set, Machines: []*v1alpha1.Machine{m}}, machineset.Policy{}, now).Actions {
		if u, ok := a.(machinist.Update); ok && u.Before == machinist.Object(m) {
			return u, true
		}
	}
	return machinist.Update{}, false
}

// machineOf returns the new machine of an update.
func machineOf(u machinist.Update) *v1alpha1.Machine { return u.Object.(*v1alpha1.Machine) }

// madeFor returns a machine with this suffix that a set creates.
func madeFor(set *v1alpha1.MachineSet, suffix string) (*v1alpha1.Machine, error) {
	d := machineset.Decide(machineset.Observation{Set: set, Complete: true, Proven: true}, machineset.Policy{}, now)
	for _, a := range d.Actions {
		if c, ok := a.(machinist.Create); ok {
			return machineset.NewMachine(c, suffix)
		}
	}
	return nil, errors.New(d.String())
}

func pick[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

func at(offset time.Duration) string { return now.Add(offset).Format(time.RFC3339) }

var phases = []v1alpha1.MachinePhase{
	"", "Pending", "Available", "Running", "Unknown", "Failed", "CrashLoopBackOff", "Terminating",
	"InPlaceUpdating", "InPlaceUpdateSuccessful", "InPlaceUpdateFailed", "Strange",
}

// randomMachine returns a machine on which anything may be the case.
func randomMachine(r *rand.Rand, name string) *v1alpha1.Machine {
	m := newMachine(name, pick(r, phases...))
	m.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(r.IntN(5)) * time.Minute))
	if r.IntN(6) == 0 {
		m.DeletionTimestamp = &metav1.Time{Time: epoch}
	}
	if r.IntN(4) == 0 {
		m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: now.Add(time.Duration(r.IntN(5)-2) * time.Hour)}
	}
	if r.IntN(2) == 0 {
		m.Annotations[v1alpha1.MachinePriority] = pick(r, "1", "1", "1", "2", "-1", "x", "")
	}
	if r.IntN(3) == 0 {
		m.Annotations[v1alpha1.MarkedForDeletionTime] = pick(r, at(-time.Minute), at(-time.Hour), at(time.Minute), "x")
	}
	if r.IntN(4) == 0 {
		m.Annotations[v1alpha1.PreserveMachineAnnotationKey] = pick(r, "now", "when-failed", "auto-preserved", "false", "junk")
	}
	if r.IntN(8) == 0 {
		m.Annotations[v1alpha1.LastAppliedNodePreserveValueAnnotationKey] = pick(r, "now", "false")
	}
	if r.IntN(2) == 0 {
		m.Labels[v1alpha1.NodeLabelKey] = "node-" + name
	}
	if r.IntN(8) == 0 {
		m.Labels[v1alpha1.LabelKeyNodeUpdateResult] = pick(r, "successful", "failed")
	}
	if r.IntN(3) == 0 {
		m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-time.Duration(r.IntN(120)) * time.Second))
	}
	if r.IntN(20) == 0 {
		m.UID = ""
	}
	if r.IntN(20) == 0 {
		m.OwnerReferences[0].UID = "uid-another"
	}
	if r.IntN(5) == 0 {
		m.Spec.Class.Kind = "Old"
		m.Spec.NodeTemplateSpec.Labels = map[string]string{"old": "yes"}
	}
	return m
}

// randomObservation returns an observation on which anything may be the case.
func randomObservation(r *rand.Rand) machineset.Observation {
	set := newSet(int32(r.IntN(8))) //nolint:gosec // small
	if r.IntN(2) == 0 {
		set.Annotations = map[string]string{v1alpha1.LastDeploymentReplicaChangeByScalerTime: pick(r, at(0), "x")}
	}
	switch r.IntN(10) {
	case 0:
		set.Labels = map[string]string{v1alpha1.FreezeLabelKey: pick(r, "True", "true")}
	case 1:
		set.Labels = map[string]string{v1alpha1.LabelKeyMachineSetScaleUpDisabled: ""}
	case 2:
		set.Finalizers = []string{"other"}
	case 3:
		set.DeletionTimestamp = &metav1.Time{Time: epoch}
	case 4:
		set.Spec.Selector = pick(r, nil, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}})
	}
	set.Spec.AutoPreserveFailedMachineMax = int32(r.IntN(3)) //nolint:gosec // small
	in := machineset.Observation{Set: set, Complete: r.IntN(8) > 0, Proven: true, Nodes: map[string]machine.NodeView{}}
	for i := range r.IntN(10) {
		name := fmt.Sprintf("m%d", i)
		in.Machines = append(in.Machines, randomMachine(r, name))
		if r.IntN(3) > 0 {
			in.Nodes["node-"+name] = pick(r, machine.NodeView{Looked: true}, nodeSaying(pick(r, "", "now", "false")))
		}
		if r.IntN(10) == 0 {
			in.NeverJoined = in.NeverJoined.Deleting(unjoinedDeletion(name), now.Add(-time.Duration(r.IntN(900))*time.Second))
		}
		if r.IntN(10) == 0 {
			in.Expectations = in.Expectations.Deleting(v1alpha1.MachineKind, name, types.UID("uid-"+name), now.Add(-time.Duration(r.IntN(300))*time.Second))
		}
	}
	for i := range r.IntN(3) {
		in.Expectations = in.Expectations.Creating(v1alpha1.MachineKind, fmt.Sprintf("new%d", i), now.Add(-time.Duration(r.IntN(300))*time.Second))
	}
	if r.IntN(3) == 0 {
		set.Spec.MinReadySeconds = int32(r.IntN(100)) //nolint:gosec // small
	}
	if r.IntN(3) == 0 {
		members.NameVictims(set, []string{"m3", "absent", "m1", "m0"})
	}
	for i := range max(0, r.IntN(8)-2) {
		m := randomMachine(r, fmt.Sprintf("released%d", i))
		m.OwnerReferences, m.Annotations[releasedAnnotation] = nil, "uid-ms"
		in.Released = append(in.Released, m)
	}
	return in
}

func copyOf(in machineset.Observation) machineset.Observation {
	out := in
	out.Set = in.Set.DeepCopy()
	out.Machines, out.Released = nil, nil
	for _, m := range in.Released {
		out.Released = append(out.Released, m.DeepCopy())
	}
	for _, m := range in.Machines {
		out.Machines = append(out.Machines, m.DeepCopy())
	}
	return out
}

// carryOut records what a shell records before it makes the calls.
func carryOut(f machine.Expectations, d machineset.Decision, at time.Time) machine.Expectations {
	for i, a := range d.Actions {
		switch a := a.(type) {
		case machinist.Create:
			for j := range a.Count {
				f = f.Creating(v1alpha1.MachineKind, fmt.Sprintf("made-%d-%d-%d", at.UnixNano(), i, j), at)
			}
		case machinist.Delete:
			f = f.Deleting(v1alpha1.MachineKind, a.Object.GetName(), a.Object.(*v1alpha1.Machine).UID, at)
		}
	}
	return f
}

func deletedNow() *metav1.Time { return &metav1.Time{Time: epoch} }

// shortLife is how long machines live that are replaced without a bound.
const shortLife = 10 * time.Minute

// unjoinedDeletion returns the deletion of a machine that failed before its Node joined.
func unjoinedDeletion(name string) machinist.Delete {
	m := newMachine(name, v1alpha1.MachineFailed)
	m.Status.LastOperation.Type = v1alpha1.MachineOperationCreate
	return machinist.Delete{Object: m, Reason: machineset.ReasonFailed}
}

// releasedAnnotation has the UID of the owner that released an object.
const releasedAnnotation = "machinist.dev/released-by"

func observed(replicas int32, machines ...*v1alpha1.Machine) machineset.Observation {
	return machineset.Observation{Set: newSet(replicas), Machines: machines, Complete: true, Proven: true}
}

func readySince(at time.Time) []corev1.NodeCondition {
	return []corev1.NodeCondition{
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(epoch)},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)},
	}
}

func annotated(replicas int32, value string) *v1alpha1.MachineSet {
	set := newSet(replicas)
	set.Annotations = map[string]string{victimsAnnotation: value}
	return set
}

var errAPI = errors.New("the API server did not answer")

// scene returns what one decision observes, and its policy. It is written as text: the replicas and what is
// special about the set, then its machines. The set has just been scaled by an autoscaler.
//
//	5 frozen creating=x: a.failed b.marked c
func scene(text string) (in machineset.Observation, p machineset.Policy) {
	words, machines, _ := strings.Cut(text, ":")
	set := newSet(0)
	set.Annotations, set.Labels = scaledNow(), map[string]string{}
	in = machineset.Observation{Set: set, Complete: true, Proven: true}
	for i, w := range strings.Fields(words) {
		key, value, given := strings.Cut(w, "=")
		number, _ := strconv.Atoi(cmp.Or(value, key))
		switch key {
		case "frozen":
			set.Labels[v1alpha1.FreezeLabelKey] = cmp.Or(value, "True")
		case "disabled":
			set.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = ""
		case "deleted":
			set.DeletionTimestamp = deletedNow()
		case "unselected":
			set.Spec.Selector = nil
		case "finalizer":
			set.Finalizers = []string{value}
		case "class":
			set.Spec.Template.Spec.Class.Kind = value
		case "max":
			set.Spec.AutoPreserveFailedMachineMax = int32(number) //nolint:gosec // small
		case "ready":
			set.Spec.MinReadySeconds = int32(number) //nolint:gosec // small
		case "names":
			members.NameVictims(set, []string{value})
		case "incomplete":
			in.Complete = false
		case "creating":
			name, after, _ := strings.Cut(value, "@")
			recorded, _ := time.ParseDuration(cmp.Or(after, "0"))
			in.Expectations = in.Expectations.Creating(v1alpha1.MachineKind, name, now.Add(recorded))
		case "stuck":
			in.Expectations = in.Expectations.Creating(v1alpha1.MachineKind, value, epoch)
		case "deleting":
			in.Expectations = in.Expectations.Deleting(v1alpha1.MachineKind, value, types.UID("uid-"+value), now)
		case "node": // that machines name "n"; without a value it does not exist
			in.Nodes = map[string]machine.NodeView{"n": {Looked: true}}
			if given {
				in.Nodes["n"] = nodeSaying(value)
			}
		case "burst":
			p.Burst = number
		case "youngest":
			p.Order = machineset.Order{{Name: "Youngest", Rank: func(m *v1alpha1.Machine) int64 { return -m.CreationTimestamp.Unix() }}}
		default:
			known(i == 0, text, w)
			set.Spec.Replicas = int32(number) //nolint:gosec // small
		}
	}
	for m := range strings.FieldsSeq(machines) {
		in.Machines = append(in.Machines, machineFrom(m))
	}
	return in, p
}

func known(word bool, text, w string) {
	if !word {
		panic(fmt.Sprintf("%s: the word %q is not known", text, w))
	}
}

// phaseWords are those words of a machine that are its phase.
var phaseWords = map[string]v1alpha1.MachinePhase{
	"empty": "", "pending": v1alpha1.MachinePending, "available": v1alpha1.MachineAvailable, "unknown": v1alpha1.MachineUnknown, "failed": v1alpha1.MachineFailed,
	"terminating": v1alpha1.MachineTerminating, "updating": v1alpha1.MachineInPlaceUpdating, "updated": v1alpha1.MachineInPlaceUpdateSuccessful,
}

// machineFrom returns a machine: its name, and what is special about it. Without a word for its phase it is Running.
func machineFrom(text string) *v1alpha1.Machine {
	words := strings.Split(text, ".")
	m := newMachine(words[0], v1alpha1.MachineRunning)
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		phase, isPhase := phaseWords[w]
		switch key {
		case "leaving":
			m.DeletionTimestamp = deletedNow()
		case "lived": // for long enough to be replaced without a bound
			m.DeletionTimestamp, m.CreationTimestamp = deletedNow(), metav1.NewTime(epoch.Add(-shortLife))
		case "young":
			m.CreationTimestamp = metav1.NewTime(now)
		case "fresh":
			m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now)
		case "moved":
			m.Labels[v1alpha1.LabelKeyNodeUpdateResult] = v1alpha1.LabelValueNodeUpdateSuccessful
		case "foreign":
			m.OwnerReferences[0].UID = "uid-another"
		case "old":
			m.Spec.Class.Kind = "Old"
		case "marked":
			marked(m)
		case "uid":
			m.UID = types.UID(value)
		case "priority":
			m.Annotations[v1alpha1.MachinePriority] = value
		case "named":
			d, _ := time.ParseDuration(value)
			m.Annotations[v1alpha1.MarkedForDeletionTime] = at(d)
		case "preserve":
			m.Annotations[v1alpha1.PreserveMachineAnnotationKey] = value
		case "keeps":
			seconds, _ := strconv.Atoi(value)
			m.Status.CurrentStatus.PreserveExpiryTime = expiry(seconds)
		case "node":
			m.Labels[v1alpha1.NodeLabelKey] = value
		default:
			known(isPhase, text, w)
			m.Status.CurrentStatus.Phase = phase
		}
	}
	return m
}
