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
	"github.com/machinist-dev/machinist/machine"
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

	desiredKey = v1alpha1.DesiredReplicasAnnotation
	mostKey    = v1alpha1.MaxReplicasAnnotation
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
	now    time.Time
}

// newScenario panics on a text with a word that it does not know.
func newScenario(text string) *scenario {
	s := &scenario{text: text, policy: rollPolicy, now: rollNow}
	s.in = deployment.Observation{Complete: true, Proven: true, Nodes: map[string]*corev1.Node{}}
	parts := strings.Split(text, ";")
	s.deployment(strings.Fields(parts[0]))
	for i, part := range parts[1:] {
		s.in.Sets = append(s.in.Sets, s.set(i, part))
	}
	return s
}

// goOn stores what a decision has written. Then time passes, the deployment gets other words, and sets are
// replaced by others of their names:
//
//	1m paused; new 1/1/1
func (s *scenario) goOn(dec deployment.Decision, text string) {
	parts := strings.Split(text, ";")
	words := strings.Fields(parts[0])
	passed, err := time.ParseDuration(words[0])
	s.known(err == nil, words[0])
	s.now, s.text = s.now.Add(passed), s.text+" > "+text
	s.in.Deployment = decided.After(s.in.Deployment, dec.Actions).DeepCopy()
	s.in.Deployment.Status = dec.Status
	s.in.Deployment.Generation += int64(len(words[1:]))
	for i, set := range s.in.Sets {
		s.in.Sets[i] = decided.After(set, dec.Actions)
	}
	for name, n := range s.in.Nodes {
		s.in.Nodes[name] = decided.After(n, dec.Actions)
	}
	s.words(words[1:])
	for _, part := range parts[1:] {
		name := strings.Fields(part)[0]
		i := slices.IndexFunc(s.in.Sets, func(set *v1alpha1.MachineSet) bool { return set.Name == name })
		s.in.Machines = slices.DeleteFunc(s.in.Machines, func(m *v1alpha1.Machine) bool {
			return metav1.IsControlledBy(m, s.in.Sets[i])
		})
		s.in.Sets[i] = s.set(i, part)
	}
}

func (s *scenario) number(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	s.known(err == nil, text)
	return int32(n)
}

// strategies are by the first word of a deployment.
var strategies = map[string]v1alpha1.MachineDeploymentStrategyType{
	"rolling": kindRolling, "recreate": kindRecreate, "inplace": kindInPlace, "manual": kindInPlace,
}

func (s *scenario) deployment(words []string) {
	surge, unavailable := intstr.FromInt32(0), intstr.FromInt32(0)
	others := slices.DeleteFunc(slices.Clone(words[2:]), func(w string) bool {
		switch w[0] {
		case '+':
			surge = intstr.Parse(w[1:])
		case '-':
			unavailable = intstr.Parse(w[1:])
		}
		return w[0] == '+' || w[0] == '-'
	})
	d := rollDeployment(s.number(words[1]), strategies[words[0]], surge, unavailable)
	if words[0] == "manual" {
		byHand(d)
	}
	d.Annotations, d.Spec.Template.Spec.Class.Name, s.in.Deployment = map[string]string{}, "new", d
	s.words(others)
}

// words changes the deployment, the policy, and what else there is beside sets.
func (s *scenario) words(words []string) {
	d, p := s.in.Deployment, &s.policy
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		change := map[string]func(){
			"want":       func() { d.Spec.Template.Spec.Class.Name = value },
			"replicas":   func() { d.Spec.Replicas = s.number(value) },
			"strategy":   func() { d.Spec.Strategy.Type = v1alpha1.MachineDeploymentStrategyType(value) },
			"paused":     func() { d.Spec.Paused = true },
			"resumed":    func() { d.Spec.Paused = false },
			"frozen":     func() { d.Labels = map[string]string{v1alpha1.FreezeLabelKey: "True"} },
			"ready":      func() { d.Spec.MinReadySeconds = s.number(value) },
			"scaled":     func() { d.Annotations[scaledKey] = ago },
			"named":      func() { d.Annotations[namesKey] = strings.ReplaceAll(value, ",", "~"+ago+",") + "~" + ago },
			"rollback":   func() { d.Spec.RollbackTo = &v1alpha1.RollbackConfig{Revision: int64(s.number(value))} },
			"revision":   func() { d.Annotations[v1alpha1.RevisionAnnotation] = value },
			"finalizers": func() { d.Finalizers = strings.FieldsFunc(value, func(r rune) bool { return r == ',' }) },
			"deleting":   func() { d.DeletionTimestamp = ptr.To(metav1.NewTime(s.now)) },
			"history":    func() { d.Spec.RevisionHistoryLimit = ptr.To(s.number(value)) },
			"deadline":   func() { d.Spec.ProgressDeadlineSeconds = ptr.To(s.number(value)) },
			"drain":      func() { d.Spec.Template.Spec.MachineConfiguration = drainTimeout(value) },
			"progressed": func() { d.Status.Conditions = progressed(s.number(value)) }, // so many seconds ago
			"deny":       func() { p.Gates = append(p.Gates, denies(strings.Split(value, ",")...)) },
			"burst":      func() { p.Burst = int(s.number(value)) },
			"taint":      func() { p.Discourage = deployment.Discourage(value) },
			"hold":       func() { p.HoldAutoscaler = true },
			"free":       func() { p.FreeCapacity = true },
			"alphabetic": func() { p.Order = machineset.Order{{Name: "FirstOfTheAlphabet", Rank: firstLetter}} },
			"nocluster":  func() { s.in.NoCluster = true },
			"unanswered": func() { s.in.Freeze = unanswered }, // by the API server
			"answered":   func() { s.in.Freeze = machine.Freeze{ClocksFrom: s.now} },
		}[key]
		s.known(change != nil, w)
		change()
	}
}

func firstLetter(m *v1alpha1.Machine) int64 { return int64(m.Name[0]) }

// drainTimeout is a configuration with this timeout.
func drainTimeout(text string) *v1alpha1.MachineConfiguration {
	timeout, _ := time.ParseDuration(text)
	return &v1alpha1.MachineConfiguration{MachineDrainTimeout: &metav1.Duration{Duration: timeout}}
}

func progressed(secondsAgo int32) []v1alpha1.MachineDeploymentCondition {
	return recordedAt(v1alpha1.ConditionTrue, "", rollNow.Add(-time.Duration(secondsAgo)*time.Second))
}

// unanswered is a freeze of the controllers.
var unanswered = machine.Freeze{
	Frozen: true, Since: rollNow.Add(-time.Minute), Message: "the target API server does not answer",
}

// set returns a set, and adds its machines.
func (s *scenario) set(i int, text string) *v1alpha1.MachineSet {
	text, machines, listed := strings.Cut(text, ":")
	words := strings.Fields(text)
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
	set.Spec.Template.Spec.MachineConfiguration = nil
	if s.in.Deployment.Spec.Strategy.Type == kindInPlace && name != wanted {
		set.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = "true"
	}
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		change := map[string]func(){
			"unreported":  func() { set.Generation = 2 },
			"deleting":    func() { set.DeletionTimestamp = ptr.To(metav1.NewTime(rollNow.Add(-time.Minute))) },
			"grows":       func() { delete(set.Labels, v1alpha1.LabelKeyMachineSetScaleUpDisabled) },
			"fixed":       func() { set.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = "true" },
			"foreign":     func() { set.OwnerReferences[0].UID = "another" },
			"elsewhere":   func() { set.Namespace = "another" },
			"bare":        func() { set.Labels = nil },
			"frozen":      func() { set.Labels[v1alpha1.FreezeLabelKey] = "True" },
			"picky":       func() { set.Spec.Selector.MatchExpressions = zoneExists },
			"sized":       func() { set.Annotations[desiredKey], set.Annotations[mostKey] = value, value },
			"scaled":      func() { set.Annotations[scaledKey] = ago },
			"large":       func() { set.Annotations["large"] = strings.Repeat("x", 1<<18) }, // no name fits beside it
			"names":       func() { members.NameVictims(set, strings.Split(value, ",")) },
			"ready":       func() { set.Spec.MinReadySeconds = s.number(value) },
			"revision":    func() { set.Annotations[v1alpha1.RevisionAnnotation] = value },
			"discouraged": func() { set.Annotations[v1alpha1.PreferNoScheduleKey] = "True" },
			"holding":     func() { set.Annotations[facts.JoinHeldAnnotation] = "true" }, // scale-down of joining Nodes
		}[key]
		s.known(change != nil, w)
		change()
	}
	names := strings.Fields(machines)
	for j := int32(0); !listed && j < set.Status.Replicas; j++ {
		name := fmt.Sprintf("%s-%d", set.Name, j)
		if j >= set.Status.AvailableReplicas {
			name += ".pending"
		}
		names = append(names, name)
	}
	for _, m := range names {
		s.machine(set, m)
	}
	switch n := int32(len(names)); {
	case listed && !strings.Contains(words[1], "/"):
		set.Status.Replicas, set.Status.AvailableReplicas = n, n
	case listed && strings.Count(words[1], "/") == 1:
		set.Status.AvailableReplicas = n
	}
	return set
}

var zoneExists = []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpExists}}

func (s *scenario) known(word bool, w string) {
	if !word {
		panic(fmt.Sprintf("%s: the word %q is not known", s.text, w))
	}
}

// phases are those words of a machine that are its phase.
var phases = map[string]v1alpha1.MachinePhase{
	"pending": v1alpha1.MachinePending, "unknown": v1alpha1.MachineUnknown, "failed": v1alpha1.MachineFailed,
	"empty": "", "updating": v1alpha1.MachineInPlaceUpdating, "updatefailed": v1alpha1.MachineInPlaceUpdateFailed,
}

// machine adds a machine: its name, and what is special about it and its Node.
func (s *scenario) machine(set *v1alpha1.MachineSet, text string) {
	words := strings.Split(text, ".")
	m := rollMachine(set, words[0], v1alpha1.MachineRunning)
	m.Annotations = map[string]string{}
	n := nodeOf(m)
	s.in.Machines, s.in.Nodes[n.Name] = append(s.in.Machines, m), n
	status := &m.Status.CurrentStatus
	for _, w := range words[1:] {
		if phase, ok := phases[w]; ok {
			status.Phase = phase
			continue
		}
		stage := func() { n.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeInPlaceUpdate, Reason: w}} }
		change := map[string]func(){
			v1alpha1.SelectedForUpdate: stage, v1alpha1.DrainSuccessful: stage, v1alpha1.ReadyForUpdate: stage,

			"candidate":  func() { n.Labels[candKey] = "true" },
			"picked":     func() { n.Labels[selKey] = "true" },
			"selected":   func() { n.Labels[candKey], n.Labels[selKey] = "true", "true" },
			"unreturned": func() { n.Labels[candKey], n.Labels[selKey], n.Labels[resultKey] = "true", "true", "successful" },
			"oncefailed": func() { n.Labels[resultKey] = v1alpha1.LabelValueNodeUpdateFailed },
			"updated":    func() { m.Status.Conditions = updateSucceeded },
			"done": func() {
				n.Labels[candKey], n.Labels[resultKey], m.Status.Conditions = "true", "successful", updateSucceeded
			},
			"moved":      func() { m.Labels[resultKey] = v1alpha1.LabelValueNodeUpdateSuccessful },
			"early":      func() { m.Annotations[prioKey] = "1" },
			"marked":     func() { m.Annotations[prioKey], m.Annotations[markKey] = "1", ago },
			"leaving":    func() { m.DeletionTimestamp = ptr.To(metav1.NewTime(rollNow.Add(-time.Minute))) },
			"preserved":  func() { status.Phase, status.PreserveExpiryTime = v1alpha1.MachineFailed, inOneHour },
			"kept":       func() { status.PreserveExpiryTime = ptr.To(metav1.NewTime(rollNow)) },
			"preserve":   func() { m.Annotations[v1alpha1.PreserveMachineAnnotationKey] = "when-failed" },
			"young":      func() { status.LastUpdateTime = metav1.NewTime(rollNow.Add(-time.Minute)) },
			"nocapacity": func() { status.Phase, m.Status.LastOperation = v1alpha1.MachineCrashLoopBackOff, exhausted },
			"othercode":  func() { m.Status.LastOperation.ErrorCode = "Internal" },
			"othertask":  func() { m.Status.LastOperation.Type = v1alpha1.MachineOperationHealthCheck },
			"trying":     func() { m.Status.LastOperation.State = v1alpha1.MachineStateProcessing },
			"badimage":   func() { status.Phase, m.Status.LastOperation = v1alpha1.MachineCrashLoopBackOff, noSuchImage },
			"nodeless":   func() { delete(m.Labels, v1alpha1.NodeLabelKey) },
			"unlooked":   func() { delete(s.in.Nodes, n.Name) },
			"gone":       func() { s.in.Nodes[n.Name] = nil },
			"ending":     func() { n.DeletionTimestamp = ptr.To(metav1.NewTime(rollNow)) },
			"tainted":    func() { n.Spec.Taints = discouraged },
			"held":       func() { n.Annotations[offKey], n.Annotations[ourKey] = "true", "true" },
			"changed":    func() { n.Annotations[offKey], n.Annotations[ourKey] = "never", "true" },
			"mine":       func() { n.Annotations[offKey] = "" },
		}[w]
		s.known(change != nil, w)
		change()
	}
}

var (
	inOneHour       = ptr.To(metav1.NewTime(rollNow.Add(time.Hour)))
	updateSucceeded = []corev1.NodeCondition{{Type: v1alpha1.NodeInPlaceUpdate, Reason: v1alpha1.UpdateSuccessful}}
	discouraged     = []corev1.Taint{{
		Key: v1alpha1.PreferNoScheduleKey, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule,
	}}
	noSuchImage = v1alpha1.LastOperation{State: v1alpha1.MachineStateFailed, Description: "no such image"}
	exhausted   = v1alpha1.LastOperation{
		Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed, ErrorCode: "ResourceExhausted",
	}
)

// nodeOf returns the Node of a machine.
func nodeOf(m *v1alpha1.Machine) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: m.Labels[v1alpha1.NodeLabelKey], UID: types.UID(m.Name), Labels: map[string]string{},
		Annotations: map[string]string{v1alpha1.MachineUIDAnnotation: string(m.UID)},
	}}
}

func (s *scenario) decide() deployment.Decision { return deployment.Decide(s.in, s.policy, s.now) }

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

// checkScene has the lines of a scene: its name, and what is observed. After "=" is what comes of it, after "?" a
// text that is part of what is said, after "!" one that is not, after "@" how long a hold lasts, after "+" the
// Events of the actions, and after "%" all that is written and said, in lines. After ">" that is stored, and it
// is decided again. It returns the lines as they come out now.
func checkScene(t *testing.T, block string) string {
	t.Helper()
	lines := strings.Split(block, "\n\t")
	out := lines[:1:1]
	t.Run(lines[0], func(t *testing.T) {
		var s *scenario
		var dec deployment.Decision
		for i := 1; i < len(lines); {
			if text, more := strings.CutPrefix(lines[i], "> "); more {
				s.goOn(dec, text)
			} else {
				s = newScenario(lines[i])
			}
			out = append(out, lines[i])
			end := i + 1
			for end < len(lines) && lines[end][0] != '>' {
				end++
			}
			var now []string
			dec, now = s.check(t, lines[i+1:end])
			out, i = append(out, now...), end
		}
	})
	return strings.Join(out, "\n\t")
}

// check decides, and returns the lines after what is observed as they come out now.
func (s *scenario) check(t *testing.T, lines []string) (deployment.Decision, []string) {
	text, dec := s.result()
	var want, others []string
	for _, line := range lines {
		switch what := line[min(2, len(line)):]; line[0] {
		case '=', '%':
			want = append(want, strings.TrimSpace(line))
			continue
		case '@':
			after, err := time.ParseDuration(what)
			require.NoError(t, err)
			ends := func(h machinist.Hold) bool { return h.Until.Equal(s.now.Add(after)) }
			require.True(t, slices.ContainsFunc(dec.Holds, ends), "%v", dec.Holds)
		case '+':
			require.Equal(t, what, strings.Join(reports(dec), ", "))
		default:
			require.Equal(t, line[0] == '?', strings.Contains(dec.String(), what), "%s\n%s", line, dec)
		}
		others = append(others, line)
	}
	got := []string{strings.TrimSpace("= " + text)}
	if len(want) > 1 {
		got = append(got, s.told(dec)...)
	}
	if !*update {
		require.Equal(t, want, got, "%s\n%s", s.text, dec)
	}
	slices.Reverse(s.in.Machines)
	slices.Reverse(s.in.Sets)
	require.Equal(t, dec, s.decide(), "the order does not matter")
	slices.Reverse(s.in.Machines)
	slices.Reverse(s.in.Sets)
	return dec, append(got, others...)
}

// told returns what a decision writes and says, and when it is made again.
func (s *scenario) told(dec deployment.Decision) []string {
	var out []string
	for _, a := range dec.Actions {
		out = append(out, "% "+a.String())
	}
	for _, e := range dec.Events {
		out = append(out, "% "+e.String())
	}
	if n := dec.Status; dec.WriteStatus {
		out = append(out, fmt.Sprintf("%% generation %d: %d machines, %d updated, %d ready, %d available, %d unavailable",
			n.ObservedGeneration, n.Replicas, n.UpdatedReplicas, n.ReadyReplicas, n.AvailableReplicas, n.UnavailableReplicas))
		for _, c := range n.Conditions {
			since := s.now.Sub(c.LastTransitionTime.Time)
			out = append(out, fmt.Sprintf("%% %s is %s for %s: %s: %s", c.Type, c.Status, since, c.Reason, c.Message))
		}
	}
	next := "with the next change"
	if !dec.NextCheck.IsZero() {
		next = "in " + dec.NextCheck.Sub(s.now).String()
	}
	return append(out, fmt.Sprintf("%% %s; again %s", dec.Reason, next))
}
