// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/decided"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// rollNow is the time of every decision about a scene, and ago one before it.
var (
	rollNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago     = rollNow.Add(-time.Hour).Format(time.RFC3339)
)

// rollPolicy leaves the Nodes alone.
var rollPolicy = deployment.Policy{Discourage: deployment.DiscourageNone}

const (
	kindRolling  = v1alpha1.RollingUpdateMachineDeploymentStrategyType
	kindRecreate = v1alpha1.RecreateMachineDeploymentStrategyType
	kindInPlace  = v1alpha1.InPlaceUpdateMachineDeploymentStrategyType

	namesKey  = v1alpha1.TriggerDeletionByMCM
	scaledKey = v1alpha1.LastDeploymentReplicaChangeByScalerTime
	markKey   = v1alpha1.MarkedForDeletionTime
	prioKey   = v1alpha1.MachinePriority
	offKey    = v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey
	ourKey    = v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey
	candKey   = v1alpha1.LabelKeyNodeCandidateForUpdate
	selKey    = v1alpha1.LabelKeyNodeSelectedForUpdate
	resultKey = v1alpha1.LabelKeyNodeUpdateResult
)

// rollDeployment wants machines of class c1.
func rollDeployment(replicas int32, kind v1alpha1.MachineDeploymentStrategyType, surge, unavailable intstr.IntOrString) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{}
	d.Name, d.Namespace, d.UID, d.Generation = "md", "ns", "uid-md", 1
	d.Finalizers = []string{v1alpha1.MCMFinalizerName}
	d.Spec.Replicas = replicas
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}
	d.Spec.Template.Labels = map[string]string{"app": "w"}
	d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "c1"}
	d.Spec.Strategy.Type = kind
	u := v1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &unavailable}
	switch kind {
	case kindRolling:
		d.Spec.Strategy.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: u}
	case kindInPlace:
		d.Spec.Strategy.InPlaceUpdate = &v1alpha1.InPlaceUpdateMachineDeployment{UpdateConfiguration: u, OrchestrationType: v1alpha1.OrchestrationTypeAuto}
	}
	return d
}

func rolling(replicas, surge, unavailable int32) *v1alpha1.MachineDeployment {
	return rollDeployment(replicas, kindRolling, intstr.FromInt32(surge), intstr.FromInt32(unavailable))
}

func recreating(replicas int32) *v1alpha1.MachineDeployment {
	return rollDeployment(replicas, kindRecreate, intstr.FromInt32(0), intstr.FromInt32(0))
}

func updating(replicas, surge, unavailable int32) *v1alpha1.MachineDeployment {
	return rollDeployment(replicas, kindInPlace, intstr.FromInt32(surge), intstr.FromInt32(unavailable))
}

func byHand(d *v1alpha1.MachineDeployment) *v1alpha1.MachineDeployment {
	d.Spec.Strategy.InPlaceUpdate.OrchestrationType = v1alpha1.OrchestrationTypeManual
	return d
}

// rollSet is a set of a class that has reported.
func rollSet(d *v1alpha1.MachineDeployment, class string, spec, replicas, available int32) *v1alpha1.MachineSet {
	d = d.DeepCopy()
	d.Annotations, d.Spec.Template.Spec.Class.Name = nil, class
	s := deployment.BuildSet(d, nil, spec)
	s.Name, s.UID, s.Generation, s.Finalizers = class, types.UID(class), 1, []string{v1alpha1.MCMFinalizerName}
	s.CreationTimestamp = metav1.NewTime(rollNow.Add(-time.Hour))
	s.Status = v1alpha1.MachineSetStatus{Replicas: replicas, AvailableReplicas: available, ReadyReplicas: available, FullyLabeledReplicas: replicas, ObservedGeneration: 1}
	return s
}

// rollMachine is a machine of a set.
func rollMachine(s *v1alpha1.MachineSet, name string, phase v1alpha1.MachinePhase) *v1alpha1.Machine {
	m := &v1alpha1.Machine{}
	m.Name, m.Namespace, m.UID, m.ResourceVersion = name, s.Namespace, types.UID("uid-"+name), "1"
	m.Labels = map[string]string{v1alpha1.NodeLabelKey: "node-" + name}
	maps.Copy(m.Labels, s.Spec.Template.Labels)
	m.Spec = *s.Spec.Template.Spec.DeepCopy()
	m.CreationTimestamp = metav1.NewTime(rollNow.Add(-time.Hour))
	m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s, v1alpha1.SchemeGroupVersion.WithKind("MachineSet"))}
	m.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: phase, LastUpdateTime: metav1.NewTime(rollNow.Add(-time.Hour))}
	return m
}

// kindOf returns the verb of an action and the kind of its object, such as "update machine".
func kindOf(a machinist.Action) string { return strings.Join(strings.Fields(a.String())[:2], " ") }

func kindsOf(dec deployment.Decision) (out []string) {
	for _, a := range dec.Actions {
		out = append(out, kindOf(a))
	}
	return out
}

func reasons(dec deployment.Decision) []machinist.Reason {
	var out []machinist.Reason
	for _, h := range dec.Holds {
		out = append(out, h.Reason)
	}
	return out
}

// reports returns the Events of the actions.
func reports(dec deployment.Decision) (out []string) {
	for _, u := range decided.Of[machinist.Update](dec.Actions) {
		if u.Report != nil {
			out = append(out, u.Report.String())
		}
	}
	return out
}

func progressing(s v1alpha1.MachineDeploymentStatus) *v1alpha1.MachineDeploymentCondition {
	return deployment.ConditionOf(s, v1alpha1.MachineDeploymentProgressing)
}

// A scenario is what one decision observes. It is written as text: the deployment, then its
// sets from the oldest to the newest, with their machines.
//
//	rolling 3 +1 -0 ready=60; old 3/3/2 unreported: a b.unknown c; new 1
//
// The numbers of the deployment are its replicas, surge and unavailable machines. Those of a
// set are its size, and the machines and available machines that it has reported. A set whose
// machines are not listed has as many as it has reported; those that are not available are
// Pending. The template is that of the set "new", or of want=.
type scenario struct {
	text string
	in   deployment.Observation
	// policy leaves Nodes without taints.
	policy deployment.Policy
}

// newScenario panics on a text with a word that it does not know.
func newScenario(text string) *scenario {
	s := &scenario{text: text, policy: rollPolicy}
	s.in = deployment.Observation{Complete: true, Proven: true, Nodes: map[string]*corev1.Node{}}
	parts := strings.Split(text, ";")
	s.deployment(strings.Fields(parts[0]))
	for i, part := range parts[1:] {
		words, machines, listed := strings.Cut(part, ":")
		set := s.set(i, strings.Fields(words))
		if !listed {
			for j := range set.Status.Replicas {
				name := fmt.Sprintf("%s-%d", set.Name, j)
				if j >= set.Status.AvailableReplicas {
					name += ".pending"
				}
				s.machine(set, name)
			}
			continue
		}
		for m := range strings.FieldsSeq(machines) {
			s.machine(set, m)
		}
		if n := int32(len(strings.Fields(machines))); !strings.Contains(words, "/") {
			set.Status.Replicas, set.Status.AvailableReplicas = n, n
		} else if strings.Count(words, "/") == 1 {
			set.Status.AvailableReplicas = n
		}
	}
	return s
}

func (s *scenario) number(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		panic(s.text + ": " + err.Error())
	}
	return int32(n)
}

func (s *scenario) deployment(words []string) {
	kind := map[string]v1alpha1.MachineDeploymentStrategyType{"rolling": kindRolling, "recreate": kindRecreate, "inplace": kindInPlace, "manual": kindInPlace}[words[0]]
	surge, unavailable, class := intstr.FromInt32(0), intstr.FromInt32(0), "new"
	for _, w := range words[2:] {
		switch {
		case w[0] == '+':
			surge = intstr.Parse(w[1:])
		case w[0] == '-':
			unavailable = intstr.Parse(w[1:])
		}
	}
	d := rollDeployment(s.number(words[1]), kind, surge, unavailable)
	if words[0] == "manual" {
		d.Spec.Strategy.InPlaceUpdate.OrchestrationType = v1alpha1.OrchestrationTypeManual
	}
	d.Annotations, s.in.Deployment = map[string]string{}, d
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "want":
			class = value
		case "paused":
			d.Spec.Paused = true
		case "frozen":
			d.Labels = map[string]string{v1alpha1.FreezeLabelKey: "True"}
		case "ready":
			d.Spec.MinReadySeconds = s.number(value)
		case "scaled":
			d.Annotations[scaledKey] = ago
		case "named":
			d.Annotations[namesKey] = strings.ReplaceAll(value, ",", "~"+ago+",") + "~" + ago
		case "deny":
			s.policy.Gates = []func(deployment.Choice) (bool, machinist.Hold){denies(strings.Split(value, ",")...)}
		case "burst":
			s.policy.Burst = int(s.number(value))
		case "taint":
			s.policy.Discourage = deployment.Discourage(value)
		case "hold":
			s.policy.HoldAutoscaler = true
		case "free":
			s.policy.FreeCapacity = true
		case "rollback":
			d.Spec.RollbackTo = &v1alpha1.RollbackConfig{Revision: int64(s.number(value))}
		case "revision":
			d.Annotations[v1alpha1.RevisionAnnotation] = value
		case "deleting":
			d.DeletionTimestamp = ptr.To(metav1.NewTime(rollNow))
		case "history":
			d.Spec.RevisionHistoryLimit = ptr.To(s.number(value))
		case "unanswered": // by the API server
			freeze(s)
		case "alphabetic":
			s.policy.Order = machineset.Order{{Name: "FirstOfTheAlphabet", Rank: func(m *v1alpha1.Machine) int64 { return int64(m.Name[0]) }}}
		case "nocluster":
			s.in.NoCluster = true
		case "progressed": // so many seconds ago
			d.Status.Conditions = recordedAt(v1alpha1.ConditionTrue, "", rollNow.Add(-time.Duration(s.number(value))*time.Second))
		case "deadline":
			d.Spec.ProgressDeadlineSeconds = ptr.To(s.number(value))
		default:
			s.known(strings.ContainsAny(w[:1], "+-"), w)
		}
	}
	d.Spec.Template.Spec.Class.Name = class
}

func (s *scenario) set(i int, words []string) *v1alpha1.MachineSet {
	name, wanted := words[0], s.in.Deployment.Spec.Template.Spec.Class.Name
	class := name
	if i := slices.Index(words, "equal"); i > 0 { // it has the template that is wanted
		class, words = wanted, slices.Delete(words, i, i+1)
	}
	var counts [3]int32
	for j, count := range strings.Split(words[1], "/") {
		counts[j] = s.number(count)
	}
	set := rollSet(s.in.Deployment, class, counts[0], counts[1], counts[2])
	set.Name, set.UID = name, types.UID(name)
	set.CreationTimestamp = metav1.NewTime(rollNow.Add(time.Duration(i-100) * time.Hour))
	set.Annotations[v1alpha1.RevisionAnnotation] = strconv.Itoa(i + 1)
	if s.in.Deployment.Spec.Strategy.Type == kindInPlace && name != wanted {
		set.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = "true"
	}
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "unreported":
			set.Generation = 2
		case "deleting":
			set.DeletionTimestamp = ptr.To(metav1.NewTime(rollNow.Add(-time.Minute)))
		case "grows":
			delete(set.Labels, v1alpha1.LabelKeyMachineSetScaleUpDisabled)
		case "fixed":
			set.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = "true"
		case "foreign":
			set.OwnerReferences[0].UID = "another"
		case "elsewhere":
			set.Namespace = "another"
		case "bare":
			set.Labels = nil
		case "frozen":
			set.Labels[v1alpha1.FreezeLabelKey] = "True"
		case "picky":
			set.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpExists}}
		case "sized":
			set.Annotations[v1alpha1.DesiredReplicasAnnotation], set.Annotations[v1alpha1.MaxReplicasAnnotation] = value, value
		case "scaled":
			set.Annotations[scaledKey] = ago
		case "names":
			members.NameVictims(set, strings.Split(value, ","))
		case "ready":
			set.Spec.MinReadySeconds = s.number(value)
		case "revision":
			set.Annotations[v1alpha1.RevisionAnnotation] = value
		case "discouraged":
			set.Annotations[v1alpha1.PreferNoScheduleKey] = "True"
		case "holding": // scale-down of the Nodes that join
			set.Annotations[facts.JoinHeldAnnotation] = "true"
		default:
			s.known(false, w)
		}
	}
	s.in.Sets = append(s.in.Sets, set)
	return set
}

func (s *scenario) known(word bool, w string) {
	if !word {
		panic(fmt.Sprintf("%s: the word %q is not known", s.text, w))
	}
}

// phases are those words of a machine that are its phase.
var phases = map[string]v1alpha1.MachinePhase{
	"pending": v1alpha1.MachinePending, "unknown": v1alpha1.MachineUnknown, "failed": v1alpha1.MachineFailed, "empty": "", "updating": v1alpha1.MachineInPlaceUpdating,
	"updatefailed": v1alpha1.MachineInPlaceUpdateFailed, "nocapacity": v1alpha1.MachineCrashLoopBackOff,
}

// machine adds a machine: its name, and what is special about it and its Node.
func (s *scenario) machine(set *v1alpha1.MachineSet, text string) {
	words := strings.Split(text, ".")
	m := rollMachine(set, words[0], v1alpha1.MachineRunning)
	m.Annotations = map[string]string{}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: m.Labels[v1alpha1.NodeLabelKey], UID: types.UID(m.Name), Labels: map[string]string{},
		Annotations: map[string]string{v1alpha1.MachineUIDAnnotation: string(m.UID)},
	}}
	s.in.Machines, s.in.Nodes[n.Name] = append(s.in.Machines, m), n
	for _, w := range words[1:] {
		if phase, ok := phases[w]; ok {
			m.Status.CurrentStatus.Phase = phase
		}
		switch w {
		case "candidate", "selected", "done", "unreturned":
			n.Labels[candKey] = "true"
		}
		switch w {
		case "selected", "unreturned", "picked":
			n.Labels[selKey] = "true"
		case v1alpha1.SelectedForUpdate, v1alpha1.DrainSuccessful, v1alpha1.ReadyForUpdate:
			n.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeInPlaceUpdate, Reason: w}}
		case "moved":
			m.Labels[v1alpha1.LabelKeyNodeUpdateResult] = v1alpha1.LabelValueNodeUpdateSuccessful
		case "oncefailed":
			n.Labels[v1alpha1.LabelKeyNodeUpdateResult] = v1alpha1.LabelValueNodeUpdateFailed
		case "early":
			m.Annotations[prioKey] = "1"
		case "marked":
			m.Annotations[prioKey], m.Annotations[markKey] = "1", ago
		case "leaving":
			m.DeletionTimestamp = ptr.To(metav1.NewTime(rollNow.Add(-time.Minute)))
		case "preserved":
			m.Status.CurrentStatus.Phase, m.Status.CurrentStatus.PreserveExpiryTime = v1alpha1.MachineFailed, ptr.To(metav1.NewTime(rollNow.Add(time.Hour)))
		case "preserve":
			m.Annotations[v1alpha1.PreserveMachineAnnotationKey] = v1alpha1.PreserveMachineAnnotationValueWhenFailed
		case "young":
			m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(rollNow.Add(-time.Minute))
		case "nocapacity":
			m.Status.LastOperation = v1alpha1.LastOperation{Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed, ErrorCode: "ResourceExhausted"}
		case "unlooked":
			delete(s.in.Nodes, n.Name)
		case "nodeless":
			delete(m.Labels, v1alpha1.NodeLabelKey)
		case "gone":
			s.in.Nodes[n.Name] = nil
		case "ending":
			n.DeletionTimestamp = ptr.To(metav1.NewTime(rollNow))
		case "tainted":
			n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.PreferNoScheduleKey, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule}}
		case "held":
			n.Annotations[offKey], n.Annotations[ourKey] = "true", "true"
		case "changed":
			n.Annotations[offKey], n.Annotations[ourKey] = "never", "true"
		case "mine":
			n.Annotations[offKey] = ""
		case "kept":
			m.Status.CurrentStatus.PreserveExpiryTime = ptr.To(metav1.NewTime(rollNow))
		}
		if w == "done" || w == "unreturned" {
			n.Labels[v1alpha1.LabelKeyNodeUpdateResult] = v1alpha1.LabelValueNodeUpdateSuccessful
		}
		if w == "done" || w == "updated" {
			m.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeInPlaceUpdate, Reason: v1alpha1.UpdateSuccessful}}
		}
	}
}

func (s *scenario) decide() deployment.Decision { return deployment.Decide(s.in, s.policy, rollNow) }

// of returns the machine of a name.
func (s *scenario) of(name string) *v1alpha1.Machine {
	return s.in.Machines[slices.IndexFunc(s.in.Machines, func(m *v1alpha1.Machine) bool { return m.Name == name })]
}

// result is what a decision does: the sizes of sets with the machines that go, and then what
// becomes of machines and Nodes.
func (s *scenario) result() (string, deployment.Decision) {
	dec := s.decide()
	var out []string
	for _, set := range s.in.Sets {
		target, err := dec.Target(set.UID)
		if err != nil {
			continue
		}
		text := fmt.Sprintf("%s %d", set.Name, target.To)
		if target.To != target.From {
			text = fmt.Sprintf("%s %d>%d", set.Name, target.From, target.To)
		}
		if len(target.Victims) > 0 {
			text += " without"
			for _, v := range target.Victims {
				text += " " + v.Machine.Name
			}
		}
		out = append(out, text)
	}
	done := map[string][]string{}
	for _, a := range dec.Actions {
		switch a := a.(type) {
		case machinist.Update:
			noteUpdate(done, a)
		case machinist.Delete:
			done["deletes"] = append(done["deletes"], a.Object.GetName())
		}
	}
	for _, set := range decided.Creates[*v1alpha1.MachineSet](dec.Actions) {
		done["creates"] = append(done["creates"], strconv.Itoa(int(set.Spec.Replicas)))
	}
	for _, what := range []string{
		"creates", "deletes", "frees", "fixes", "names", "discourages", "welcomes", "moves", "acknowledges", "marks",
		"candidates", "selects", "returns", "taints", "bars", "untaints", "holds", "releases", "forgets", "writes", "rolls back to",
	} {
		if len(done[what]) > 0 {
			out = append(out, what+" "+strings.Join(done[what], " "))
		}
	}
	return strings.Join(out, "; "), dec
}

// noteUpdate notes what an update changes.
func noteUpdate(done map[string][]string, u machinist.Update) {
	switch next := u.Object.(type) {
	case *v1alpha1.MachineSet:
		noteSet(done, u.Before.(*v1alpha1.MachineSet), next)
	case *v1alpha1.Machine:
		if was, is := members.Transferred(u.Before.(*v1alpha1.Machine)), members.Transferred(next); was != is {
			note(done, "moves", "acknowledges", was, is, next.Name)
			return
		}
		done["marks"] = append(done["marks"], next.Name)
	case *corev1.Node:
		noteNode(done, u.Before.(*corev1.Node), next)
	case *v1alpha1.MachineDeployment:
		if u.Before.(*v1alpha1.MachineDeployment).Spec.RollbackTo != next.Spec.RollbackTo {
			done["rolls back to"] = append(strings.Fields(next.Spec.Template.Labels[v1alpha1.DefaultMachineDeploymentUniqueLabelKey]), next.Spec.Template.Spec.Class.Name)
		}
	}
}

func noteSet(done map[string][]string, before, next *v1alpha1.MachineSet) {
	names := members.Victims(next)
	renamed := !slices.Equal(names, members.Victims(before))
	if renamed {
		done["names"] = append(done["names"], fmt.Sprintf("%s%v", next.Name, names))
	}
	_, was := before.Annotations[v1alpha1.PreferNoScheduleKey]
	_, is := next.Annotations[v1alpha1.PreferNoScheduleKey]
	note(done, "discourages", "welcomes", was, is, next.Name)
	fixed, fixes := members.ScaleUpDisabled(before), members.ScaleUpDisabled(next)
	note(done, "fixes", "frees", fixed, fixes, next.Name)
	if !renamed && was == is && fixed == fixes && before.Spec.Replicas == next.Spec.Replicas {
		done["writes"] = append(done["writes"], next.Name) // something else of it
	}
}

func noteNode(done map[string][]string, before, next *corev1.Node) {
	name := strings.TrimPrefix(next.Name, "node-")
	has := func(m map[string]string, key string) bool { _, is := m[key]; return is }
	marked := func(n *corev1.Node) bool { return has(n.Labels, candKey) || has(n.Labels, selKey) }
	note(done, "candidates", "", has(before.Labels, candKey), has(next.Labels, candKey), name)
	note(done, "", "returns", marked(before), marked(next), name)
	note(done, "selects", "", has(before.Labels, selKey), has(next.Labels, selKey), name)
	was, is := taintOf(before), taintOf(next)
	note(done, cmp.Or(map[corev1.TaintEffect]string{corev1.TaintEffectNoSchedule: "bars"}[is], "taints"), "untaints", was != "", is != "", name)
	off := has(next.Annotations, offKey)
	note(done, "holds", map[bool]string{true: "forgets", false: "releases"}[off], has(before.Annotations, ourKey), has(next.Annotations, ourKey), name)
}

// note notes the name of an object that got something, or lost it.
func note(done map[string][]string, gets, loses string, was, is bool, name string) {
	switch {
	case is && !was:
		done[gets] = append(done[gets], name)
	case was && !is:
		done[loses] = append(done[loses], name)
	}
}

func taintOf(n *corev1.Node) corev1.TaintEffect {
	for _, t := range n.Spec.Taints {
		if t.Key == v1alpha1.PreferNoScheduleKey {
			return t.Effect
		}
	}
	return ""
}

// checkScenes decides about each scene of a test in testdata/scenes, also if everything is observed in
// another order.
func checkScenes(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("testdata/scenes/*.txt")
	require.NoError(t, err)
	scenes := 0
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		text := string(data)
		_, section, _ := strings.Cut(text, "# "+t.Name()+"\n\n")
		section, _, _ = strings.Cut(section, "\n# ")
		for block := range strings.SplitSeq(strings.TrimSpace(section), "\n\n") {
			if block != "" {
				text = strings.Replace(text, block, checkScene(t, block), 1)
				scenes++
			}
		}
		if *update && text != string(data) {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
	require.Positive(t, scenes, "the test has no section")
}

// checkScene has the lines of a scene: its name, what is observed, what comes of it after "=", and
// after "?" a text that is part of what is said, after "!" one that is not, after "@" how long a hold
// lasts, and after "+" the Events of the actions. It returns them with what comes of it now.
func checkScene(t *testing.T, block string) string {
	t.Helper()
	lines := strings.Split(block, "\n\t")
	t.Run(lines[0], func(t *testing.T) {
		s := newScenario(lines[1])
		got, dec := s.result()
		if *update {
			lines[2] = "= " + got
		}
		require.Equal(t, lines[2], "= "+got, "%s\n%s", lines[1], dec)
		for _, line := range lines[3:] {
			if after, err := time.ParseDuration(line[2:]); line[0] == '@' {
				require.NoError(t, err)
				require.True(t, slices.ContainsFunc(dec.Holds, func(h machinist.Hold) bool { return h.Until.Equal(rollNow.Add(after)) }), "%v", dec.Holds)
				continue
			}
			if line[0] == '+' {
				require.Equal(t, line[2:], strings.Join(reports(dec), ", "))
				continue
			}
			require.Equal(t, line[0] == '?', strings.Contains(dec.String(), line[2:]), "%s\n%s", line, dec)
		}
		slices.Reverse(s.in.Machines)
		slices.Reverse(s.in.Sets)
		require.Equal(t, dec, s.decide(), "the order does not matter")
	})
	return strings.Join(lines, "\n\t")
}
