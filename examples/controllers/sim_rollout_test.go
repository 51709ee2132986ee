// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Rollouts of a deployment: changes by its user, and the bounds that must hold.

// rollout is the deployment of a scenario, and the changes by its user.
type rollout struct {
	replicas, surge, unavailable int32
	strategy                     v1alpha1.MachineDeploymentStrategyType
	changes                      []change
}

func (r rollout) String() string {
	return fmt.Sprintf("%s of %d with surge %d and unavailable %d, %v", r.strategy, r.replicas, r.surge, r.unavailable, r.changes)
}

// change is a write of the user, at a time after the begin of the scenario.
type change struct {
	after time.Duration
	patch string
}

// renewed returns a patch with a new template.
func renewed(n int) string {
	return fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"example.com/generation":"%d"}}}}}`, n)
}

// rolling returns a deployment with rolling updates.
func rolling(replicas, surge, unavailable int32, changes ...change) *rollout {
	return &rollout{
		replicas: replicas, surge: surge, unavailable: unavailable, changes: changes,
		strategy: v1alpha1.RollingUpdateMachineDeploymentStrategyType,
	}
}

// anyRollout returns a random deployment with random changes. At the end it is not paused.
func anyRollout(rng *rand.Rand) *rollout {
	r := rolling(1+rng.Int32N(3), rng.Int32N(3), rng.Int32N(2))
	switch rng.IntN(6) {
	case 0:
		r.strategy = v1alpha1.RecreateMachineDeploymentStrategyType
	case 1, 2:
		r.strategy = v1alpha1.InPlaceUpdateMachineDeploymentStrategyType
	}
	span := []time.Duration{time.Minute, 10 * time.Minute, 30 * time.Minute}[rng.IntN(3)]
	at := func() time.Duration { return time.Duration(rng.Int64N(int64(span))) }
	for n := range 1 + rng.IntN(3) {
		r.changes = append(r.changes, change{at(), renewed(n)})
	}
	if rng.IntN(2) == 0 {
		r.changes = append(r.changes, change{at(), fmt.Sprintf(`{"spec":{"replicas":%d}}`, rng.IntN(5))})
	}
	if rng.IntN(4) == 0 {
		r.changes = append(r.changes, change{at(), `{"spec":{"rollbackTo":{}}}`})
	}
	if rng.IntN(3) == 0 {
		r.changes = append(r.changes, change{at(), `{"spec":{"paused":true}}`}, change{span, `{"spec":{"paused":false}}`})
	}
	return r
}

// randomRollout is a rollout with random faults. A new process has no expectations, and its first
// lists may be old.
func randomRollout(seed uint64, verbose bool) *world {
	rng := rand.New(rand.NewPCG(seed, 2))
	s := scenario{name: "random rollout", joins: true, deployment: true, rollout: anyRollout(rng), cloud: anyCloud(rng)}
	s.pods, s.foreignFinalizers = max(0, rng.IntN(6)-3), rng.IntN(3) == 0
	s.oldLists = rng.IntN(2) == 0
	return play(s, rng, randomFaults(rng), verbose)
}

// TestRollouts checks that rollouts complete despite faults, and keep their bounds.
func TestRollouts(t *testing.T) {
	t.Parallel()
	playAll(t, "TestRollouts", 1000, randomRollout)
}

// deploy creates the deployment, and schedules the changes of its user.
func (w *world) deploy() {
	r, labels := w.scenario.rollout, map[string]string{v1alpha1.LabelKeyMachineDeploymentName: "d"}
	if w.scenario.unlabeled {
		labels = map[string]string{"example.com/pool": "a"}
	}
	surge, unavailable := intstr.FromInt32(r.surge), intstr.FromInt32(r.unavailable)
	bounds := v1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &unavailable}
	d := &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "d"},
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: r.replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Strategy: v1alpha1.MachineDeploymentStrategy{Type: r.strategy},
			Template: v1alpha1.MachineTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: machineSpec()},
		},
	}
	switch r.strategy { //nolint:exhaustive // Recreate has no bounds
	case v1alpha1.RollingUpdateMachineDeploymentStrategyType:
		d.Spec.Strategy.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: bounds}
	case v1alpha1.InPlaceUpdateMachineDeploymentStrategyType:
		d.Spec.Strategy.InPlaceUpdate = &v1alpha1.InPlaceUpdateMachineDeployment{UpdateConfiguration: bounds, OrchestrationType: v1alpha1.OrchestrationTypeAuto}
	}
	foreign(&d.ObjectMeta)
	must(w.control.cluster.Add(d))
	for _, c := range r.changes {
		w.later(c.after, func() {
			_, err := w.machines.MachineV1alpha1().MachineDeployments(ns).Patch(ofOthers, "d", types.MergePatchType, []byte(c.patch), metav1.PatchOptions{})
			w.logf("the user patches the deployment with %s: %v", c.patch, err)
		})
	}
}

// machineSpec returns the spec of all machines.
func machineSpec() v1alpha1.MachineSpec {
	return v1alpha1.MachineSpec{
		Class: v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"},
		NodeTemplateSpec: v1alpha1.NodeTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pool": "a"}}, Spec: corev1.NodeSpec{
			Taints: []corev1.Taint{{Key: "pool", Value: "a", Effect: corev1.TaintEffectPreferNoSchedule}},
		}},
	}
}

func (w *world) deployment() *v1alpha1.MachineDeployment {
	return stored[*v1alpha1.MachineDeployment](w.control, "machinedeployments", keyOf(ns, "d"))
}

// promise is the bounds of the rollout.
type promise struct {
	most     int32 // the largest spec.replicas since the pass began
	least    int32 // the smallest spec.replicas since the rollout was complete
	complete bool  // the rollout was complete
	harmed   int   // machines deleted by others since it was complete
}

// follow updates the bounds after a write.
func (w *world) follow(before, after any, by author) {
	if d, ok := after.(*v1alpha1.MachineDeployment); ok {
		p := &w.judge.promise
		p.most, p.least = max(p.most, d.Spec.Replicas), min(p.least, d.Spec.Replicas)
		if deployment.Complete(d, d.Status) && len(w.available()) >= int(d.Spec.Replicas) {
			*p = promise{most: p.most, least: d.Spec.Replicas, complete: true}
		}
	}
	was, _ := before.(*v1alpha1.Machine)
	is, _ := after.(*v1alpha1.Machine)
	if by == others && was != nil && (is == nil || is.DeletionTimestamp != nil) && was.DeletionTimestamp == nil {
		w.judge.promise.harmed++
	}
}

// assessRollout checks a write of the controllers to sets and machines.
func (w *world) assessRollout(before, after any) {
	d := w.deployment()
	if d == nil || d.DeletionTimestamp != nil {
		return
	}
	if m, ok := after.(*v1alpha1.Machine); ok && before == nil {
		w.assessCreation(m)
	}
	if m, ok := before.(*v1alpha1.Machine); ok && m.DeletionTimestamp == nil {
		if is, _ := after.(*v1alpha1.Machine); is == nil || is.DeletionTimestamp != nil {
			w.assessDeletion(d, m)
		}
	}
	is, _ := after.(*v1alpha1.MachineSet)
	was, _ := before.(*v1alpha1.MachineSet)
	if is != nil && is.Spec.Replicas > 0 && (was == nil || is.Spec.Replicas > was.Spec.Replicas) {
		w.assessGrowth(d, is)
	}
}

// living returns the machines of a set that are not being deleted.
func (w *world) living(set types.UID) (out []*v1alpha1.Machine) {
	for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
		if owner := metav1.GetControllerOf(m); owner != nil && owner.UID == set && m.DeletionTimestamp == nil {
			out = append(out, m)
		}
	}
	return out
}

// available returns the available machines that are not being deleted.
func (w *world) available() []*v1alpha1.Machine {
	return slices.DeleteFunc(all[*v1alpha1.Machine](w.control, "machines"), func(m *v1alpha1.Machine) bool {
		return !availablePhase(m) || m.DeletionTimestamp != nil
	})
}

// availablePhase reports whether the phase of a machine is Running or Available.
func availablePhase(m *v1alpha1.Machine) bool {
	return m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning || m.Status.CurrentStatus.Phase == v1alpha1.MachineAvailable
}

// setOf returns the set that controls a machine, or nil.
func (w *world) setOf(m *v1alpha1.Machine) *v1alpha1.MachineSet {
	owner := metav1.GetControllerOf(m)
	for _, s := range all[*v1alpha1.MachineSet](w.control, "machinesets") {
		if owner != nil && owner.UID == s.UID {
			return s
		}
	}
	return nil
}

// assessCreation checks that a set creates no surplus machine. The machine is not stored yet.
func (w *world) assessCreation(m *v1alpha1.Machine) {
	set := w.setOf(m)
	if set == nil {
		w.violate("machine %s created without a set", m.Name)
		return
	}
	moved := map[string]bool{} // into the set from another one, and not in the cache yet
	for _, e := range w.unseen("machines") {
		if m, ok := e.object.(*v1alpha1.Machine); ok && metav1.IsControlledBy(m, set) && !strings.HasPrefix(m.Name, set.Name+"-") {
			moved[m.Name] = true
		}
	}
	living := slices.DeleteFunc(w.living(set.UID), func(m *v1alpha1.Machine) bool { return moved[m.Name] })
	if n := len(living) + 1; n > int(set.Spec.Replicas) {
		w.violate("set %s created %s: %d machines of %d", set.Name, m.Name, n, set.Spec.Replicas)
	}
}

// assessGrowth checks that the sets of a deployment together keep the upper bound. The grown set is
// not stored yet. The machines of the others count if the set lacks machines: then it will create
// them, while a set into which machines have moved only keeps them, also if a user has decreased
// the replicas meanwhile.
func (w *world) assessGrowth(d *v1alpha1.MachineDeployment, grown *v1alpha1.MachineSet) {
	sum, have := int(grown.Spec.Replicas), len(w.living(grown.UID))
	creates := sum > have
	for _, s := range all[*v1alpha1.MachineSet](w.control, "machinesets") {
		if s.UID == grown.UID {
			continue
		}
		living := len(w.living(s.UID))
		have += living
		if creates {
			sum += max(int(s.Spec.Replicas), living)
		} else {
			sum += int(s.Spec.Replicas)
		}
	}
	most := d.DeepCopy()
	most.Spec.Replicas = max(w.judge.promise.most, d.Spec.Replicas)
	b, _ := deployment.BoundsOf(most)
	if room := int(b.Most()); sum > room && (creates || sum > have) {
		w.violate("%s scaled to %d: %d machines of at most %d", grown.Name, grown.Spec.Replicas, sum, room)
	}
}

// assessDeletion checks that a machine may be deleted. The machine is still stored.
func (w *world) assessDeletion(d *v1alpha1.MachineDeployment, m *v1alpha1.Machine) {
	set := w.setOf(m)
	if m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed || set == nil || set.DeletionTimestamp != nil {
		return
	}
	lost := map[string]bool{} // deleted by others, and not in the cache yet
	for _, e := range w.unseen("machines") {
		if m, ok := e.object.(*v1alpha1.Machine); ok && (e.gone || m.DeletionTimestamp != nil) && metav1.IsControlledBy(m, set) {
			lost[m.Name] = true
		}
	}
	if n := len(w.living(set.UID)) + len(lost); n <= int(set.Spec.Replicas) {
		w.violate("set %s deleted %s: %d machines of %d", set.Name, m.Name, n, set.Spec.Replicas)
	}
	p := w.judge.promise
	if !p.complete || !availablePhase(m) || d.Spec.Strategy.Type == v1alpha1.RecreateMachineDeploymentStrategyType {
		return
	}
	available := len(w.available()) - 1
	asked := d.DeepCopy()
	asked.Spec.Replicas = min(p.least, d.Spec.Replicas)
	b, _ := deployment.BoundsOf(asked)
	if floor := int(b.Least()) - p.harmed; available < floor {
		w.violate("machine %s deleted: %d available, at least %d needed", m.Name, available, floor)
	}
}

// checkDeployed checks the deployment in the final state.
func (w *world) checkDeployed() {
	d := w.deployment()
	if d == nil {
		return
	}
	if !deployment.Complete(d, d.Status) {
		data, err := json.Marshal(d.Status)
		must(err)
		w.violate("at the end the deployment of %d has %s", d.Spec.Replicas, data)
	}
	if n := len(all[*v1alpha1.Machine](w.control, "machines")); n != int(d.Spec.Replicas) {
		w.violate("at the end the deployment of %d has %d machines", d.Spec.Replicas, n)
	}
}

// undeploy deletes the deployment.
func (w *world) undeploy() {
	w.logf("the user deletes the deployment")
	must(w.machines.MachineV1alpha1().MachineDeployments(ns).Delete(ofOthers, "d", metav1.DeleteOptions{}))
}

// checkUndeployed checks that nothing of the deployment is left.
func (w *world) checkUndeployed() {
	if n := len(w.control.now["machinesets"]) + len(w.control.now["machinedeployments"]); n > 0 {
		w.violate("at the end: %d sets and deployments", n)
	}
}
