// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
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

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// A scene is what one decision observes. It is written as text: the deployment, then its
// sets from the oldest to the newest, with their machines.
//
//	rolling 3 +1 -0 ready=60; old 3/3/2 unreported: a b.unknown c; new 1
//
// The numbers of the deployment are its replicas, surge and unavailable machines. Those of a
// set are its size, and the machines and available machines that it has reported. A set whose
// machines are not listed has as many as it has reported; those that are not available are
// Pending. The template is that of the set "new", or of want=.
type scene struct {
	t    testing.TB
	text string
	in   deployment.Observation
	// policy leaves Nodes without taints.
	policy deployment.Policy
}

// ago is a time before every decision, as text.
var ago = rollNow.Add(-time.Hour).Format(time.RFC3339)

func newScene(t testing.TB, text string) *scene {
	t.Helper()
	s := &scene{t: t, text: text, policy: rollPolicy}
	s.in = deployment.Observation{Complete: true, Nodes: map[string]*corev1.Node{}}
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

func (s *scene) number(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	require.NoError(s.t, err, s.text)
	return int32(n)
}

func (s *scene) deployment(words []string) {
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
			s.policy.Gates = []deployment.Gate{denies(strings.Split(value, ",")...)}
		case "burst":
			s.policy.Burst = int(s.number(value))
		case "taint":
			s.policy.Discourage = ""
		default:
			require.Contains(s.t, "+-", w[:1], "%s: %s", s.text, w)
		}
	}
	d.Spec.Template.Spec.Class.Name = class
}

func (s *scene) set(i int, words []string) *v1alpha1.MachineSet {
	d := s.in.Deployment.DeepCopy()
	name, wanted := words[0], d.Spec.Template.Spec.Class.Name
	d.Spec.Template.Spec.Class.Name = name
	if i := slices.Index(words, "equal"); i > 0 { // it has the template that is wanted
		d.Spec.Template.Spec.Class.Name, words = wanted, slices.Delete(words, i, i+1)
	}
	d.Annotations = nil
	counts := strings.Split(words[1], "/")
	set := deployment.BuildSet(d, nil, s.number(counts[0]))
	set.Name, set.UID, set.Generation, set.Finalizers = name, types.UID(name), 1, []string{v1alpha1.MCMFinalizerName}
	set.CreationTimestamp = metav1.NewTime(rollNow.Add(time.Duration(i-100) * time.Hour))
	set.Annotations[v1alpha1.RevisionAnnotation] = strconv.Itoa(i + 1)
	set.Status.ObservedGeneration = 1
	if len(counts) > 1 {
		set.Status.Replicas, set.Status.FullyLabeledReplicas = s.number(counts[1]), s.number(counts[1])
	}
	if len(counts) > 2 {
		set.Status.AvailableReplicas = s.number(counts[2])
	}
	if d.Spec.Strategy.Type == kindInPlace && name != wanted {
		set.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = "true"
	}
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "unreported":
			set.Generation = 2
		case "deleting":
			set.DeletionTimestamp = new(metav1.NewTime(rollNow.Add(-time.Minute)))
		case "grows":
			delete(set.Labels, v1alpha1.LabelKeyMachineSetScaleUpDisabled)
		case "fixed":
			set.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = "true"
		case "bare":
			set.Labels = nil
		case "frozen":
			set.Labels[v1alpha1.FreezeLabelKey] = "True"
		case "picky":
			set.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpExists}}
		case "sized":
			set.Annotations[v1alpha1.DesiredReplicasAnnotation], set.Annotations[v1alpha1.MaxReplicasAnnotation] = value, value
		case "unsized":
			delete(set.Annotations, v1alpha1.DesiredReplicasAnnotation)
		case "scaled":
			set.Annotations[scaledKey] = ago
		case "names":
			machineset.NameVictims(set, strings.Split(value, ","))
		default:
			require.Fail(s.t, "a word that is not known", "%s: %s", s.text, w)
		}
	}
	s.in.Sets = append(s.in.Sets, set)
	return set
}

// phases are those words of a machine that are its phase.
var phases = map[string]v1alpha1.MachinePhase{
	"pending": v1alpha1.MachinePending, "unknown": v1alpha1.MachineUnknown, "failed": v1alpha1.MachineFailed, "empty": "",
	"updatefailed": v1alpha1.MachineInPlaceUpdateFailed, "nocapacity": v1alpha1.MachineCrashLoopBackOff,
}

// machine adds a machine: its name, and what is special about it and its Node.
func (s *scene) machine(set *v1alpha1.MachineSet, text string) {
	words := strings.Split(text, ".")
	m := rollMachine(set, words[0], v1alpha1.MachineRunning)
	m.Annotations = map[string]string{}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Labels[v1alpha1.NodeLabelKey], UID: types.UID(m.Name), Labels: map[string]string{}}}
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
		case "selected", "unreturned":
			n.Labels[selKey] = "true"
		case "moved":
			m.Labels[v1alpha1.LabelKeyNodeUpdateResult] = v1alpha1.LabelValueNodeUpdateSuccessful
		case "oncefailed":
			n.Labels[v1alpha1.LabelKeyNodeUpdateResult] = v1alpha1.LabelValueNodeUpdateFailed
		case "early":
			m.Annotations[prioKey] = "1"
		case "marked":
			m.Annotations[prioKey], m.Annotations[markKey] = "1", ago
		case "leaving":
			m.DeletionTimestamp = new(metav1.NewTime(rollNow.Add(-time.Minute)))
		case "preserved":
			m.Status.CurrentStatus.Phase, m.Status.CurrentStatus.PreserveExpiryTime = v1alpha1.MachineFailed, new(metav1.NewTime(rollNow.Add(time.Hour)))
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
		case "unseen":
			s.in.Machines = s.in.Machines[:len(s.in.Machines)-1]
		}
		if w == "done" || w == "unreturned" {
			n.Labels[v1alpha1.LabelKeyNodeUpdateResult] = v1alpha1.LabelValueNodeUpdateSuccessful
		}
		if w == "done" {
			m.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeInPlaceUpdate, Reason: v1alpha1.UpdateSuccessful}}
		}
	}
}

// outcome is what a decision does: the sizes of sets with the machines that go, and then what
// becomes of machines and Nodes.
func (s *scene) outcome() (string, deployment.Decision) {
	dec := deployment.Decide(s.in, s.policy, rollNow)
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
			text += " without " + strings.Join(rollVictims(target), " ")
		}
		out = append(out, text)
	}
	done := map[string][]string{}
	for _, a := range dec.Actions {
		switch a := a.(type) {
		case deployment.WriteMachine:
			s.machineWrite(done, a)
		case deployment.WriteNode:
			s.nodeWrite(done, a)
		case deployment.CreateSet:
			done["creates"] = append(done["creates"], strconv.Itoa(int(a.Set.Spec.Replicas)))
		case deployment.WriteSet:
			s.setWrite(done, a)
		}
	}
	for _, what := range []string{"creates", "frees", "fixes", "names", "moves", "acknowledges", "marks", "candidates", "selects", "returns"} {
		if len(done[what]) > 0 {
			out = append(out, what+" "+strings.Join(done[what], " "))
		}
	}
	return strings.Join(out, "; "), dec
}

func (s *scene) setWrite(done map[string][]string, a deployment.WriteSet) {
	before := s.in.Sets[slices.IndexFunc(s.in.Sets, func(x *v1alpha1.MachineSet) bool { return x.UID == a.Set.UID })]
	if names := machineset.Victims(a.Set); !slices.Equal(names, machineset.Victims(before)) {
		done["names"] = append(done["names"], fmt.Sprintf("%s%v", a.Set.Name, names))
	}
	switch was, is := machineset.ScaleUpDisabled(before), machineset.ScaleUpDisabled(a.Set); {
	case is && !was:
		done["fixes"] = append(done["fixes"], a.Set.Name)
	case was && !is:
		done["frees"] = append(done["frees"], a.Set.Name)
	}
}

func (s *scene) machineWrite(done map[string][]string, a deployment.WriteMachine) {
	before := s.in.Machines[slices.IndexFunc(s.in.Machines, func(m *v1alpha1.Machine) bool { return m.UID == a.Machine.UID })]
	what := "marks"
	switch was, is := machineset.Transferred(before), machineset.Transferred(a.Machine); {
	case is && !was:
		what = "moves"
	case was && !is:
		what = "acknowledges"
	}
	done[what] = append(done[what], a.Machine.Name)
}

func (s *scene) nodeWrite(done map[string][]string, a deployment.WriteNode) {
	for what, key := range map[string]string{"candidates": candKey, "selects": selKey} {
		_, was := a.Before.Labels[key]
		_, is := a.Node.Labels[key]
		if is && !was {
			done[what] = append(done[what], strings.TrimPrefix(a.Node.Name, "node-"))
		}
		if was && !is && key == candKey {
			done["returns"] = append(done["returns"], strings.TrimPrefix(a.Node.Name, "node-"))
		}
	}
}

// A decided is a scene with what comes of it, and a text that is part of what is said.
type decided struct{ name, scene, want, says string }

// check decides about each scene, also if everything is observed in another order.
func check(t *testing.T, table []decided) {
	t.Helper()
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, c.scene)
			got, dec := s.outcome()
			require.Equal(t, c.want, got, "%s\n%s", c.scene, dec)
			require.Contains(t, dec.String(), c.says)
			slices.Reverse(s.in.Machines)
			slices.Reverse(s.in.Sets)
			require.Equal(t, dec, deployment.Decide(s.in, s.policy, rollNow), "the order does not matter")
		})
	}
}
