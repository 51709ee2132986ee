// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// editInPlace has a user change what causes no rollout: the node template, a timeout, the priority
// of a machine.
func (r *randomWorld) editInPlace(n int) {
	machines := r.w.Machines()
	switch {
	case n%3 == 1:
		r.user(otherTimeout, func(d *v1alpha1.MachineDeployment) {
			d.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineDrainTimeout: &metav1.Duration{Duration: time.Duration(n) * time.Minute}}
		}, "user: drain timeout %dm", n)
	case n%3 == 2 && len(machines) > 0:
		m := machines[n%len(machines)]
		r.note(otherPriority, "user: priority of %s is %d", m.Name, n%3)
		r.must(r.w.EditMachine(m.Name, func(m *v1alpha1.Machine) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.MachinePriority, strconv.Itoa(n%3))
		}))
	default:
		r.user(otherNodes, func(d *v1alpha1.MachineDeployment) {
			d.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"n": fmt.Sprint(n)}
		}, "user: other node template")
	}
}

// movedByOthers gives a machine that was updated in place the class of a former set, as MCM left it.
func (r *randomWorld) movedByOthers() {
	machines := slices.DeleteFunc(r.w.Machines(), func(m *v1alpha1.Machine) bool {
		s := r.setOf(m)
		return s == nil || s.DeletionTimestamp != nil || !slices.ContainsFunc(m.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == v1alpha1.NodeInPlaceUpdate && c.Reason == v1alpha1.UpdateSuccessful
		})
	})
	if len(machines) == 0 {
		return
	}
	r.note(classOfFormerSet, "MCM: %s keeps its former class", machines[0].Name)
	r.must(r.w.EditMachine(machines[0].Name, func(m *v1alpha1.Machine) { m.Spec.Class.Name = "former" }))
}

// ofItsClass: no controller leaves a machine in a set of another class.
func (l *laws) ofItsClass(c deploymenttest.Change, s *v1alpha1.MachineSet, m *v1alpha1.Machine) {
	was, existed := c.Before.(*v1alpha1.Machine)
	if existed && (controllerOf(was) == controllerOf(m) || was.Spec.Class.Name == "former") || c.By == "user" {
		return
	}
	if s != nil && m.Spec.Class.Name != s.Spec.Template.Spec.Class.Name {
		l.r.failf("%s of set %s has class %s by %s, and the set has %s", m.Name, s.Name, m.Spec.Class.Name, c.By, s.Spec.Template.Spec.Class.Name)
	}
}

// configured: a decision about sizes brings the configuration of the deployment to each set that has
// machines.
func (l *laws) configured(in deployment.Observation, d deployment.Decision) {
	if len(d.Targets) == 0 {
		return
	}
	written := map[string]*v1alpha1.MachineSet{}
	for _, s := range writes[*v1alpha1.MachineSet](d) {
		written[s.Name] = s
	}
	for _, s := range in.Sets {
		have := s
		if written[s.Name] != nil {
			have = written[s.Name]
		}
		want := in.Deployment.Spec.Template.Spec.MachineConfiguration
		if (s.Spec.Replicas > 0 || s.Status.Replicas > 0) && !apiequality.Semantic.DeepEqual(want, have.Spec.Template.Spec.MachineConfiguration) {
			l.r.failf("%s keeps its timeouts: %s", s.Name, d)
		}
	}
}

// setConfigured: a decision of a set brings its configuration to each machine, in every phase.
func (l *laws) setConfigured(in machineset.Observation, d machineset.Decision) {
	synced := map[string]*v1alpha1.Machine{}
	for _, a := range d.Actions {
		u, _ := a.(machinist.Update)
		if m, ok := u.Object.(*v1alpha1.Machine); ok {
			synced[m.Name] = m
		}
	}
	for _, m := range in.Machines {
		if m == nil || controllerOf(m) != in.Set.UID {
			continue
		}
		have := m
		if synced[m.Name] != nil {
			have = synced[m.Name]
		}
		if !apiequality.Semantic.DeepEqual(in.Set.Spec.Template.Spec.MachineConfiguration, have.Spec.MachineConfiguration) {
			l.r.failf("%s of phase %s keeps its timeouts: %s", m.Name, m.Status.CurrentStatus.Phase, d)
		}
	}
}

// unavailableFirst: a scale-down of a paused rollout deletes no available machine while another set has
// an unavailable one, as far as the controller sees all machines and none is marked.
func (l *laws) unavailableFirst(in deployment.Observation, d deployment.Decision) {
	k := l.r.kind
	if !in.Deployment.Spec.Paused || k.strategy != kindRolling || k.gates || k.quota || k.resizes || k.badOrder || len(l.demanded) > 0 {
		return
	}
	lost := map[types.UID]bool{}
	for _, t := range d.Targets {
		for _, v := range t.Victims {
			lost[v.Machine.UID] = true
		}
	}
	available, unavailable := "", ""
	for _, s := range in.Sets {
		n := 0
		for _, m := range in.Machines {
			if m == nil || controllerOf(m) != s.UID {
				continue
			}
			if priority, marked := m.Annotations[v1alpha1.MachinePriority]; members.Leaving(m) || marked && priority != strconv.Itoa(v1alpha1.DefaultMachinePriority) {
				return
			}
			n++
			switch ready := members.AvailableFor(m, time.Duration(s.Spec.MinReadySeconds)*time.Second, l.r.w.Now()); {
			case ready && lost[m.UID]:
				available = m.Name
			case !ready && !lost[m.UID]:
				unavailable = m.Name
			}
		}
		if s.DeletionTimestamp != nil || s.Status.ObservedGeneration < s.Generation || int(s.Status.Replicas) != n || int(s.Spec.Replicas) != n {
			return
		}
	}
	if available != "" && unavailable != "" {
		l.r.failf("%s goes, and the unavailable %s stays: %s %v", available, unavailable, d, d.Targets)
	}
}
