// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// observation is a view of the world that fits the statuses of its sets: the new
// set first, then the old ones, and their machines with a Node each.
func (g world) observation() deployment.Observation {
	in := deployment.Observation{Deployment: g.MachineDeployment.object(), Complete: true, Proven: true, Nodes: map[string]*corev1.Node{}}
	if s := g.NewMS.object(); s != nil {
		in.Sets = append(in.Sets, s)
		s.Spec.Template.Spec.Class = in.Deployment.Spec.Template.Spec.Class
	}
	for _, s := range setsOf(g.OldMSs) {
		in.Sets = append(in.Sets, s)
		if s.Spec.Template.Spec.Class.Name == in.Deployment.Spec.Template.Spec.Class.Name {
			s.Spec.Template.Spec.Class.Name = "before"
		}
	}
	for _, s := range in.Sets {
		s.Annotations = maps.Clone(s.Annotations)
		in.Machines = slices.Concat(in.Machines, machinesFor(s))
	}
	for _, m := range in.Machines {
		n := nodeFor(m)
		in.Nodes[n.Name] = n
	}
	return in
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

// reportOf returns the Event of an action, or nil.
func reportOf(a machinist.Action) *machinist.Event {
	update, _ := a.(machinist.Update)
	create, _ := a.(machinist.Create)
	return cmp.Or(update.Report, create.Report)
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
	for _, a := range deployment.Decide(deployment.Observation{Deployment: d, Sets: old, Complete: true, Proven: true}, deployment.Policy{}, now).Actions {
		create, _ := a.(machinist.Create)
		if s, ok := create.Object.(*v1alpha1.MachineSet); ok {
			return s, nil
		}
	}
	return nil, errors.New("no set is created")
}
