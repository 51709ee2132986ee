// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

func controlledBy(set *v1alpha1.MachineSet) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.SchemeGroupVersion.WithKind("MachineSet"))}
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

func namesOf(victims []machineset.Victim) (names []string) {
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

// nodeWithReady is the view of a Node whose condition Ready has had a status since a time.
func nodeWithReady(status corev1.ConditionStatus, since time.Time) machine.NodeView {
	node := &corev1.Node{}
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(since)},
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
	out.Set, out.Machines, out.Released = in.Set.DeepCopy(), copies(in.Machines), copies(in.Released)
	return out
}

func copies(machines []*v1alpha1.Machine) (out []*v1alpha1.Machine) {
	for _, m := range machines {
		out = append(out, m.DeepCopy())
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

// A scenario is what one decision observes, and its policy. It is written as text: the replicas and what is special
// about the set, then its machines. The set has just been scaled by an autoscaler.
//
//	5 frozen creating=x: a.failed b.marked 3*c
type scenario struct {
	text    string
	in      machineset.Observation
	policy  machineset.Policy
	failure machineset.Failure // of its actions
	now     time.Time
}

func newScenario(text string) *scenario {
	set := newSet(0)
	set.Annotations, set.Labels = scaledNow(), map[string]string{}
	s := &scenario{text: text, in: machineset.Observation{Set: set, Complete: true, Proven: true}, now: now}
	s.words(text)
	return s
}

// scene returns what is observed in a scenario, and its policy.
func scene(text string) (in machineset.Observation, p machineset.Policy) {
	s := newScenario(text)
	return s.in, s.policy
}

// words changes the set, and all machines if there are others.
func (s *scenario) words(text string) {
	words, machines, _ := strings.Cut(text, ":")
	in, set, p := &s.in, s.in.Set, &s.policy
	for w := range strings.FieldsSeq(words) {
		key, value, given := strings.Cut(w, "=")
		number, err := strconv.ParseInt(cmp.Or(value, key), 10, 32)
		name, offset, _ := strings.Cut(value, "@")
		after, _ := time.ParseDuration(cmp.Or(offset, "0s"))
		since, _ := time.ParseDuration(value)
		creating := func(at time.Time) {
			for _, m := range machinesFrom(name) {
				in.Expectations = in.Expectations.Creating(v1alpha1.MachineKind, m.Name, at)
			}
		}
		change := map[string]func(){
			"frozen":       func() { set.Labels[v1alpha1.FreezeLabelKey] = cmp.Or(value, "True") },
			"disabled":     func() { set.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = "" },
			"deleted":      func() { set.DeletionTimestamp = deletedNow() },
			"unselected":   func() { set.Spec.Selector = nil },
			"finalizer":    func() { set.Finalizers = []string{value} },
			"unnamed":      func() { set.Spec.Template.Spec.Class.Name = "" },
			"class":        func() { set.Spec.Template.Spec.Class.Kind = value },
			"max":          func() { set.Spec.AutoPreserveFailedMachineMax = int32(number) },
			"ready":        func() { set.Spec.MinReadySeconds = int32(number) },
			"generation":   func() { set.Generation = number },
			"names":        func() { members.NameVictims(set, []string{value}) },
			"incomplete":   func() { in.Complete = false },
			"creating":     func() { creating(now.Add(after)) },
			"stuck":        func() { creating(epoch) },
			"deleting":     func() { in.Expectations = carryOut(in.Expectations, deleting(value), now) },
			"burst":        func() { p.Burst = int(number) },
			"youngest":     func() { p.Order = machineset.Order{{Name: "Youngest", Rank: youth}} },
			"createfailed": func() { s.failure.Create = failing(value) },
			"deletefailed": func() { s.failure.Delete = failing(value) },
			"unfinished":   func() { s.failure.Unfinished = true },
			"finished":     func() { s.failure = machineset.Failure{} },
			"unfailed":     func() { set.Status.Conditions[0].Status = v1alpha1.ConditionFalse },
			"earlier":      func() { set.Status.StandardConditions = nil }, // as an earlier version stored it
			"nodeready":    func() { in.Nodes = map[string]machine.NodeView{"n": nodeWithReady("True", now.Add(-since))} },
			"nodeunready":  func() { in.Nodes = map[string]machine.NodeView{"n": nodeWithReady("False", now.Add(-since))} },
			"node": func() { // that machines name "n"; without a value it does not exist
				in.Nodes = map[string]machine.NodeView{"n": {Looked: true}}
				if given {
					in.Nodes["n"] = nodeSaying(value)
				}
			},
		}[key]
		if change == nil {
			known(err == nil && !given, s.text, w)
			set.Spec.Replicas = int32(number)
			continue
		}
		change()
	}
	if strings.Contains(text, ":") {
		in.Machines = nil
	}
	for m := range strings.FieldsSeq(machines) {
		in.Machines = append(in.Machines, machinesFrom(m)...)
	}
}

func youth(m *v1alpha1.Machine) int64 { return -m.CreationTimestamp.Unix() }

// failing returns an error with a text, in which "_" is a space; nil if it is empty.
func failing(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(strings.ReplaceAll(text, "_", " "))
}

// deleting is the decision to delete a machine.
func deleting(name string) machineset.Decision {
	return machineset.Decision{Actions: []machinist.Action{machinist.Delete{Object: machineFrom(name)}}}
}

func known(word bool, text, w string) {
	if !word {
		panic(fmt.Sprintf("%s: the word %q is not known", text, w))
	}
}

// phaseWords are those words of a machine that are its phase.
var phaseWords = map[string]v1alpha1.MachinePhase{
	"empty": "", "pending": v1alpha1.MachinePending, "available": v1alpha1.MachineAvailable,
	"unknown": v1alpha1.MachineUnknown, "failed": v1alpha1.MachineFailed, "terminating": v1alpha1.MachineTerminating,
	"updating": v1alpha1.MachineInPlaceUpdating, "updated": v1alpha1.MachineInPlaceUpdateSuccessful,
}

// machinesFrom returns a machine, or so many of them: 3*c are c00, c01 and c02.
func machinesFrom(text string) (machines []*v1alpha1.Machine) {
	times, one, many := strings.Cut(text, "*")
	if !many {
		return []*v1alpha1.Machine{machineFrom(text)}
	}
	number, err := strconv.Atoi(times)
	known(err == nil, text, times)
	name, words, _ := strings.Cut(one, ".")
	for i := range number {
		machines = append(machines, machineFrom(strings.TrimSuffix(fmt.Sprintf("%s%02d.%s", name, i, words), ".")))
	}
	return machines
}

// longAgo is a creation after which a machine that is deleted now may be replaced without a bound.
var longAgo = metav1.NewTime(epoch.Add(-shortLife))

// machineFrom returns a machine: its name, and what is special about it. Without a word for its phase it is Running.
func machineFrom(text string) *v1alpha1.Machine {
	words := strings.Split(text, ".")
	m := newMachine(words[0], v1alpha1.MachineRunning)
	status := &m.Status.CurrentStatus
	for _, w := range words[1:] {
		if phase, isPhase := phaseWords[w]; isPhase {
			status.Phase = phase
			continue
		}
		key, value, _ := strings.Cut(w, "=")
		seconds, _ := strconv.Atoi(value)
		after, _ := time.ParseDuration(value)
		change := map[string]func(){
			"leaving":  func() { m.DeletionTimestamp = deletedNow() },
			"lived":    func() { m.DeletionTimestamp, m.CreationTimestamp = deletedNow(), longAgo },
			"young":    func() { m.CreationTimestamp = metav1.NewTime(now) },
			"fresh":    func() { status.LastUpdateTime = metav1.NewTime(now) },
			"since":    func() { status.LastUpdateTime = metav1.NewTime(now.Add(-after)) },
			"moved":    func() { m.Labels[v1alpha1.LabelKeyNodeUpdateResult] = v1alpha1.LabelValueNodeUpdateSuccessful },
			"foreign":  func() { m.OwnerReferences[0].UID = "uid-another" },
			"unowned":  func() { m.OwnerReferences = nil },
			"old":      func() { m.Spec.Class.Kind = "Old" },
			"marked":   func() { marked(m) },
			"uid":      func() { m.UID = types.UID(value) },
			"priority": func() { m.Annotations[v1alpha1.MachinePriority] = value },
			"named":    func() { m.Annotations[v1alpha1.MarkedForDeletionTime] = at(after) },
			"preserve": func() { m.Annotations[v1alpha1.PreserveMachineAnnotationKey] = value },
			"keeps":    func() { status.PreserveExpiryTime = expiry(seconds) },
			"node":     func() { m.Labels[v1alpha1.NodeLabelKey] = value },
			"erred":    func() { m.Status.LastOperation.State = v1alpha1.MachineStateFailed },
		}[key]
		known(change != nil, text, w)
		change()
	}
	return m
}

// goOn stores the status. Then time passes, and the set and its machines are changed:
//
//	1m 3 generation=2: a b.pending
func (s *scenario) goOn(text string) {
	passed, words, _ := strings.Cut(text, " ")
	after, err := time.ParseDuration(passed)
	known(err == nil, text, passed)
	if status, changed := machineset.Status(s.in, s.failure, s.now); changed {
		s.in.Set.Status = status
	}
	s.now = s.now.Add(after)
	s.words(words)
}

// checkScenes decides about each scene of a file: its name, what is observed, the actions after "=", the holds after
// "?", and after "@" the time to the next decision with the reason. If there is a line with "%", such lines are the
// status if it is written, and Events. After ">" the status is stored, and it is decided again.
func checkScenes(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	scenes := strings.Split(strings.TrimSpace(string(data)), "\n\n")
	for i, text := range scenes {
		lines := strings.Split(text, "\n\t")
		t.Run(lines[0], func(t *testing.T) {
			s, got := newScenario(lines[1]), lines[:2:2]
			told := strings.Contains(text, "\n\t%")
			got = append(got, s.told(t, told)...)
			for _, line := range lines[2:] {
				if words, more := strings.CutPrefix(line, "> "); more {
					s.goOn(words)
					got = append(append(got, line), s.told(t, told)...)
				}
			}
			if *update {
				scenes[i] = strings.Join(got, "\n\t")
				return
			}
			require.Equal(t, lines, got)
		})
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(scenes, "\n\n")+"\n"), 0o644))
	}
}

// told returns the lines of a decision, with the status or without.
func (s *scenario) told(t *testing.T, status bool) (lines []string) {
	d := machineset.Decide(s.in, s.policy, s.now)
	for _, a := range d.Actions {
		lines = append(lines, "= "+a.String())
		require.Contains(t, d.String(), a.String())
	}
	for _, h := range d.Holds {
		lines = append(lines, "? "+h.String())
		require.Contains(t, d.String(), h.String())
	}
	if !d.NextCheck.IsZero() {
		lines = append(lines, fmt.Sprint("@ ", d.NextCheck.Sub(s.now), " ", d.Reason))
	}
	next, changed := machineset.Status(s.in, s.failure, s.now)
	if !status {
		return lines
	}
	for _, e := range d.Events {
		lines = append(lines, "% "+e.String())
	}
	if !changed {
		return append(lines, "% the status stays")
	}
	lines = append(lines, fmt.Sprintf("%% generation %d: %d machines, %d ready, %d available",
		next.ObservedGeneration, next.Replicas, next.ReadyReplicas, next.AvailableReplicas))
	tell := func(kind, status any, at metav1.Time, reason, message string) {
		lines = append(lines, fmt.Sprintf("%% %s is %s for %s: %s: %s", kind, status, s.now.Sub(at.Time), reason, message))
	}
	for _, c := range next.Conditions {
		tell(c.Type, c.Status, c.LastTransitionTime, c.Reason, c.Message)
	}
	for _, c := range next.StandardConditions {
		tell(c.Type, c.Status, c.LastTransitionTime, c.Reason, c.Message)
	}
	return lines
}
