// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// epoch is the time from which the vectors count, now that of all decisions.
var (
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now   = epoch.Add(time.Hour)
)

const namespace = "ns"

// bound is a maxSurge or maxUnavailable, nil inside if it is null.
type bound struct{ *intstr.IntOrString }

func (b *bound) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	b.IntOrString = new(intstr.IntOrString)
	return b.IntOrString.UnmarshalJSON(data)
}

// MarshalJSON is the opposite of UnmarshalJSON.
func (b bound) MarshalJSON() ([]byte, error) {
	if b.IntOrString == nil {
		return []byte("null"), nil
	}
	return b.IntOrString.MarshalJSON()
}

func (b bound) missing() bool {
	return b.IntOrString != nil && b.Type == intstr.String && b.StrVal == "<nilblock>"
}

type condition struct {
	Type                     string
	Status                   string
	Reason                   string
	Message                  string
	LastUpdateAgoSeconds     *int
	LastTransitionAgoSeconds *int
	LastUpdateTime           string
	LastTransitionTime       string
}

func ago(seconds *int) metav1.Time {
	if seconds == nil {
		return metav1.Time{}
	}
	return metav1.NewTime(now.Add(-time.Duration(*seconds) * time.Second))
}

type template struct {
	Labels              map[string]string
	Annotations         map[string]string
	ClassKind           string
	ClassName           string
	ClassAPIGroup       string `json:"classApiGroup"`
	NodeTemplateLabels  map[string]string
	DrainTimeoutSeconds *int
	ProviderID          string
	Finalizer           string
}

func (g *template) object() v1alpha1.MachineTemplateSpec {
	if g == nil {
		g = &template{Labels: map[string]string{"app": "w"}, ClassKind: "MachineClass", ClassName: "c1"}
	}
	t := v1alpha1.MachineTemplateSpec{}
	t.Labels, t.Annotations = maps.Clone(g.Labels), maps.Clone(g.Annotations)
	if g.Finalizer != "" {
		t.Finalizers = []string{g.Finalizer}
	}
	t.Spec.Class = v1alpha1.ClassSpec{Kind: g.ClassKind, Name: g.ClassName, APIGroup: g.ClassAPIGroup}
	t.Spec.ProviderID = g.ProviderID
	t.Spec.NodeTemplateSpec.Labels = maps.Clone(g.NodeTemplateLabels)
	if g.DrainTimeoutSeconds != nil {
		t.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{
			MachineDrainTimeout: &metav1.Duration{Duration: time.Duration(*g.DrainTimeoutSeconds) * time.Second},
		}
	}
	return t
}

// bare returns the condition without its times.
func (c condition) bare() condition {
	return condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}
}

// recast returns a value as one of another type whose fields have the same names.
func recast[T any](v any) (out T) {
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

// plain are the conditions of any object without their times.
func plain(list any) []condition {
	out := recast[[]condition](list)
	for i, c := range out {
		out[i] = c.bare()
	}
	return out
}

// status is that of a deployment or of a set.
type status struct {
	Replicas, UpdatedReplicas, ReadyReplicas, AvailableReplicas        int32
	UnavailableReplicas, PreservedFailedReplicas, FullyLabeledReplicas int32
	AutoPreserveFailedMachineCount                                     int32
	ObservedGeneration                                                 int64
	CollisionCount                                                     *int32
	Conditions                                                         []condition
	FailedMachines                                                     []string
}

// counters are the fields that a deployment or a set has as well.
func (g status) counters() status {
	g.Conditions, g.FailedMachines = nil, nil
	return g
}

func (g status) ofDeployment() v1alpha1.MachineDeploymentStatus {
	s := recast[v1alpha1.MachineDeploymentStatus](g.counters())
	for _, c := range g.Conditions {
		s.Conditions = append(s.Conditions, v1alpha1.MachineDeploymentCondition{
			Type: v1alpha1.MachineDeploymentConditionType(c.Type), Status: v1alpha1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			LastUpdateTime: ago(c.LastUpdateAgoSeconds), LastTransitionTime: ago(c.LastTransitionAgoSeconds),
		})
	}
	for _, m := range g.FailedMachines {
		s.FailedMachines = append(s.FailedMachines, failedMachine(m))
	}
	return s
}

func failedMachine(name string) *v1alpha1.MachineSummary {
	return &v1alpha1.MachineSummary{Name: name, LastOperation: v1alpha1.LastOperation{Description: "d-" + name}}
}

func (g status) ofSet() v1alpha1.MachineSetStatus {
	s := recast[v1alpha1.MachineSetStatus](g.counters())
	for _, c := range g.Conditions {
		s.Conditions = append(s.Conditions, v1alpha1.MachineSetCondition{
			Type: v1alpha1.MachineSetConditionType(c.Type), Status: v1alpha1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			LastTransitionTime: ago(c.LastTransitionAgoSeconds),
		})
	}
	if len(g.FailedMachines) > 0 {
		var list []v1alpha1.MachineSummary
		for _, m := range g.FailedMachines {
			list = append(list, *failedMachine(m))
		}
		s.FailedMachines = &list
	}
	return s
}

type machineDeployment struct {
	Name                         string
	Replicas                     int32
	Strategy                     string
	MaxSurge, MaxUnavailable     bound
	OrchestrationType            string
	Generation                   int64
	Paused                       bool
	Annotations, Labels          map[string]string
	ProgressDeadlineSeconds      *int32
	RevisionHistoryLimit         *int32
	MinReadySeconds              int32
	AutoPreserveFailedMachineMax int32
	Template                     *template
	Status                       status
}

// strategyOf returns a strategy with its block, unless the surge says that there
// is none.
func strategyOf(kind, orchestration string, surge, unavailable bound) v1alpha1.MachineDeploymentStrategy {
	s := v1alpha1.MachineDeploymentStrategy{Type: v1alpha1.MachineDeploymentStrategyType(kind)}
	if surge.missing() {
		return s
	}
	u := v1alpha1.UpdateConfiguration{MaxSurge: surge.IntOrString, MaxUnavailable: unavailable.IntOrString}
	switch s.Type {
	case v1alpha1.RollingUpdateMachineDeploymentStrategyType:
		s.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: u}
	case v1alpha1.InPlaceUpdateMachineDeploymentStrategyType:
		s.InPlaceUpdate = &v1alpha1.InPlaceUpdateMachineDeployment{UpdateConfiguration: u, OrchestrationType: v1alpha1.OrchestrationType(orchestration)}
	}
	return s
}

// bounded is a deployment of which only the bounds count.
type bounded struct {
	Replicas                    int32
	MaxSurge, MaxUnavailable    bound
	Strategy, OrchestrationType string
}

func (g bounded) object() *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{}
	d.Spec.Replicas, d.Spec.Strategy = g.Replicas, strategyOf(g.Strategy, g.OrchestrationType, g.MaxSurge, g.MaxUnavailable)
	return d
}

// surge is the one that the strategy's block says, nil without a block.
func (g machineDeployment) surge() *intstr.IntOrString {
	if g.Strategy == "Recreate" || g.MaxSurge.missing() {
		return nil
	}
	return g.MaxSurge.IntOrString
}

func (g machineDeployment) object() *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{}
	d.Namespace, d.Name, d.UID, d.Generation = namespace, g.Name, types.UID("uid-"+g.Name), g.Generation
	d.Annotations, d.Labels = maps.Clone(g.Annotations), maps.Clone(g.Labels)
	d.Finalizers = []string{v1alpha1.MCMFinalizerName}
	d.Spec = v1alpha1.MachineDeploymentSpec{
		Replicas: g.Replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}, Template: g.Template.object(),
		Strategy:             strategyOf(g.Strategy, g.OrchestrationType, g.MaxSurge, g.MaxUnavailable),
		RevisionHistoryLimit: g.RevisionHistoryLimit, Paused: g.Paused, ProgressDeadlineSeconds: g.ProgressDeadlineSeconds,
		MinReadySeconds: g.MinReadySeconds, AutoPreserveFailedMachineMax: g.AutoPreserveFailedMachineMax,
	}
	d.Status = g.Status.ofDeployment()
	return d
}

type machineSet struct {
	Name                         string
	CreatedOffset                int
	Replicas                     int32
	Annotations, Labels          map[string]string
	Deleting                     bool
	Generation                   int64
	AutoPreserveFailedMachineMax int32
	Template                     *template
	Status                       status
}

// object returns the set as one of deployment "md", nil for nil.
func (g *machineSet) object() *v1alpha1.MachineSet {
	if g == nil {
		return nil
	}
	const hashLabel = v1alpha1.DefaultMachineDeploymentUniqueLabelKey
	s := &v1alpha1.MachineSet{}
	s.Namespace, s.Name, s.UID, s.Generation = namespace, g.Name, types.UID("uid-"+g.Name), g.Generation
	s.Annotations = maps.Clone(g.Annotations)
	s.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(g.CreatedOffset) * time.Second))
	s.Finalizers = []string{v1alpha1.MCMFinalizerName}
	s.OwnerReferences = []metav1.OwnerReference{controlledBy("MachineDeployment", "md")}
	if g.Deleting {
		s.DeletionTimestamp = &metav1.Time{Time: epoch}
	}
	s.Spec.Replicas, s.Spec.Template = g.Replicas, g.Template.object()
	s.Spec.AutoPreserveFailedMachineMax = g.AutoPreserveFailedMachineMax
	s.Labels = maps.Clone(s.Spec.Template.Labels)
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	if s.Labels[hashLabel] == "" {
		s.Labels[hashLabel] = "h-" + g.Name
	}
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w", hashLabel: s.Labels[hashLabel]}}
	s.Spec.Template.Labels = maps.Clone(s.Labels)
	maps.Copy(s.Labels, g.Labels)
	s.Status = g.Status.ofSet()
	return s
}

func setsOf(list []*machineSet) []*v1alpha1.MachineSet {
	var out []*v1alpha1.MachineSet
	for _, s := range list {
		out = append(out, s.object())
	}
	return out
}

func controlledBy(kind, name string) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: types.UID("uid-" + name),
		Controller: &yes, BlockOwnerDeletion: &yes,
	}
}

// world is a deployment with its sets.
type world struct {
	MachineDeployment machineDeployment
	NewMS             *machineSet
	OldMSs            []*machineSet
}

type machine struct {
	Name                    string
	CreatedOffset           int
	Phase                   v1alpha1.MachinePhase
	Annotations, Labels     map[string]string
	Deleting                bool
	PreserveExpiryInSeconds *int
	LastOperationState      v1alpha1.MachineState
	LastOperationType       v1alpha1.MachineOperationType
	Node, Owner             string
	InPlaceConditionReason  string
}

func (g machine) object() *v1alpha1.Machine {
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: g.Name, Namespace: namespace, UID: types.UID("uid-" + g.Name),
			CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(g.CreatedOffset) * time.Second)),
			Annotations:       maps.Clone(g.Annotations), Labels: maps.Clone(g.Labels),
		},
		Spec: v1alpha1.MachineSpec{ProviderID: "pid-" + g.Name, Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: "c1"}},
		Status: v1alpha1.MachineStatus{
			CurrentStatus: v1alpha1.CurrentStatus{Phase: g.Phase, PreserveExpiryTime: expiry(g.PreserveExpiryInSeconds)},
			LastOperation: v1alpha1.LastOperation{State: g.LastOperationState, Type: g.LastOperationType},
		},
	}
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	if g.Node != "" {
		m.Labels[v1alpha1.NodeLabelKey] = g.Node
	}
	if g.Deleting {
		m.DeletionTimestamp = &metav1.Time{Time: epoch}
	}
	if g.Owner != "" {
		m.OwnerReferences = []metav1.OwnerReference{controlledBy("MachineSet", g.Owner)}
	}
	if g.InPlaceConditionReason != "" {
		m.Status.Conditions = append(m.Status.Conditions, inPlaceCondition(g.InPlaceConditionReason))
	}
	return m
}

func expiry(seconds *int) *metav1.Time {
	if seconds == nil {
		return nil
	}
	return &metav1.Time{Time: now.Add(time.Duration(*seconds) * time.Second)}
}

func machinesOf(list []machine) []*v1alpha1.Machine {
	machines := make([]*v1alpha1.Machine, 0, len(list))
	for _, g := range list {
		machines = append(machines, g.object())
	}
	return machines
}

func atoi(text string) (int32, bool) {
	var n int32
	err := json.Unmarshal([]byte(text), &n)
	return n, err == nil
}

func inPlaceCondition(reason string) corev1.NodeCondition {
	return corev1.NodeCondition{Type: v1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: reason}
}

func number(n int32) bound { return bound{ptr.To(intstr.FromInt32(n))} }

// view is what is seen of a deployment with these sets, and with their machines.
func view(d *v1alpha1.MachineDeployment, sets ...*v1alpha1.MachineSet) deployment.Observation {
	in := deployment.Observation{Deployment: d, Sets: sets, Complete: true, Proven: true, Nodes: map[string]*corev1.Node{}}
	for _, s := range sets {
		in.Machines = slices.Concat(in.Machines, machinesFor(s))
	}
	for _, m := range in.Machines {
		in.Nodes[m.Labels[v1alpha1.NodeLabelKey]] = nodeFor(m)
	}
	return in
}

func decide(in deployment.Observation) deployment.Decision {
	return deployment.Decide(in, deployment.Policy{}, now)
}

// reports are the texts of the Events of actions.
func reports(actions []machinist.Action) (out []string) {
	for _, a := range actions {
		update, _ := a.(machinist.Update)
		create, _ := a.(machinist.Create)
		if e := cmp.Or(update.Report, create.Report); e != nil {
			out = append(out, e.String())
		}
	}
	return out
}

// observation is a view of the world that fits the statuses of its sets: the new
// set first, then the old ones, and their machines with a Node each.
func (g world) observation() deployment.Observation {
	d, sets := g.MachineDeployment.object(), setsOf(g.OldMSs)
	for _, s := range sets {
		if s.Spec.Template.Spec.Class.Name == d.Spec.Template.Spec.Class.Name {
			s.Spec.Template.Spec.Class.Name = "before"
		}
	}
	if s := g.NewMS.object(); s != nil {
		s.Spec.Template.Spec.Class = d.Spec.Template.Spec.Class
		sets = slices.Insert(sets, 0, s)
	}
	return view(d, sets...)
}

// machinesFor makes as many machines as the status of a set tells of: available
// ones are Running, the others Pending.
func machinesFor(s *v1alpha1.MachineSet) []*v1alpha1.Machine {
	var out []*v1alpha1.Machine
	for i := range s.Status.Replicas {
		name := fmt.Sprintf("%s-m%d", s.Name, i)
		phase := v1alpha1.MachineRunning
		if i >= s.Status.AvailableReplicas {
			phase = v1alpha1.MachinePending
		}
		out = append(out, machine{Name: name, Phase: phase, Labels: s.Spec.Selector.MatchLabels, Owner: s.Name, Node: "node-" + name}.object())
	}
	return out
}

func nodeFor(m *v1alpha1.Machine) *corev1.Node {
	n := &corev1.Node{}
	n.Name, n.Annotations = m.Labels[v1alpha1.NodeLabelKey], map[string]string{v1alpha1.MachineUIDAnnotation: string(m.UID)}
	return n
}

// surgeOf returns the surge of MCM: of an update in place there is none.
func surgeOf(d *v1alpha1.MachineDeployment) int32 {
	if d.Spec.Strategy.Type != v1alpha1.RollingUpdateMachineDeploymentStrategyType {
		b, _ := deployment.BoundsOf(d)
		return int32(b.Surge)
	}
	surge, _ := boundsModel(d.Spec.Strategy.RollingUpdate.MaxSurge, d.Spec.Strategy.RollingUpdate.MaxUnavailable, d.Spec.Replicas)
	return surge
}

// unavailableOf returns how many machines may be unavailable in MCM.
func unavailableOf(d *v1alpha1.MachineDeployment) int32 {
	b, err := deployment.BoundsOf(d)
	if err != nil || d.Spec.Strategy.Type == v1alpha1.RecreateMachineDeploymentStrategyType {
		return 0
	}
	return int32(b.Unavailable)
}

// boundsModel reads bounds as MCM does: negative ones stay negative.
func boundsModel(maxSurge, maxUnavailable *intstr.IntOrString, desired int32) (surge, unavailable int32) {
	read := func(v *intstr.IntOrString, round func(float64) float64) int32 {
		if v == nil || v.Type == intstr.Int {
			return ptr.Deref(v, intstr.IntOrString{}).IntVal
		}
		percent, _ := strconv.Atoi(strings.ReplaceAll(v.StrVal, "%", ""))
		return int32(round(float64(percent) * float64(desired) / 100))
	}
	surge, unavailable = read(maxSurge, math.Ceil), read(maxUnavailable, math.Floor)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

// conditionOf returns the condition of a type, nil if there is none.
func conditionOf(s v1alpha1.MachineDeploymentStatus, kind v1alpha1.MachineDeploymentConditionType) *v1alpha1.MachineDeploymentCondition {
	i := slices.IndexFunc(s.Conditions, func(c v1alpha1.MachineDeploymentCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &s.Conditions[i]
}

// newSetOf returns the set that is created for a template beside the old ones.
func newSetOf(t v1alpha1.MachineTemplateSpec, old ...*v1alpha1.MachineSet) (*v1alpha1.MachineSet, error) {
	d := machineDeployment{Name: "md", Replicas: 1, Strategy: "RollingUpdate", MaxSurge: number(1), MaxUnavailable: number(0)}.object()
	d.Spec.Template = *t.DeepCopy()
	d.Spec.Template.Labels = maps.Clone(t.Labels)
	if d.Spec.Template.Labels == nil {
		d.Spec.Template.Labels = map[string]string{}
	}
	d.Spec.Template.Labels["selected"] = "here"
	d.Spec.Template.Spec.Class.Kind, d.Spec.Template.Spec.Class.Name = "MachineClass", cmp.Or(t.Spec.Class.Name, "new")
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"selected": "here"}}
	for _, a := range decide(deployment.Observation{Deployment: d, Sets: old, Complete: true, Proven: true}).Actions {
		create, _ := a.(machinist.Create)
		if s, ok := create.Object.(*v1alpha1.MachineSet); ok {
			return s, nil
		}
	}
	return nil, errors.New("no set is created")
}
