// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// The judge sees the objects of the clusters, the VMs of the cloud, and the author of
// each write. It does not see the state of the controllers.

// judge is the memory of the judge.
type judge struct {
	alive            map[string]map[string]bool  // VMs, by machine
	made             map[string]types.UID        // the machine of each VM, by provider ID
	fellIll          map[string]bool             // machines whose Node has become unhealthy
	askedAt          map[string]time.Time        // the last DeleteMachine call, by machine
	requested        map[string]bool             // machines for which a VM was requested
	freed            map[string]time.Time        // the deletion of the last pod of each volume
	preserve         map[string]preserveState    // the last request of preservation, by machine
	updated          map[string]bool             // machines whose update in place has begun
	replaced         time.Time                   // when a machine was last neither Running nor Unknown
	unconfirmedToken bool                        // a token may exist whose creation was not confirmed, or whose machine was deleted by force
	unknownNode      string                      // the Node may join before or during the DeleteMachine call that deletes its VM, and be without proof
	oldClass         bool                        // the pass began with an old view of the class
	promise          promise                     // the bounds of the deployment
	strangers        map[string]bool             // Nodes that are not those of any machine
	touched          []string                    // writes to them
	refused          map[string]driver.Operation // the last call, by machine, if its credentials were refused
}

func newJudge() judge {
	return judge{
		alive: map[string]map[string]bool{}, made: map[string]types.UID{}, fellIll: map[string]bool{},
		askedAt: map[string]time.Time{}, freed: map[string]time.Time{}, preserve: map[string]preserveState{}, updated: map[string]bool{}, requested: map[string]bool{},
		refused: map[string]driver.Operation{},
	}
}

// drainTimeout is when a drain begins to use force.
const drainTimeout = 5 * time.Minute

// forceStep is how late the force of a drain may begin without other faults.
const forceStep = 90 * time.Second

func (w *world) machine(name string) *v1alpha1.Machine {
	return stored[*v1alpha1.Machine](w.control, "machines", keyOf(ns, name))
}

func (w *world) node(name string) *corev1.Node {
	return stored[*corev1.Node](w.target, "nodes", name)
}

func guarded(o metav1.Object, finalizer string) bool {
	return slices.Contains(o.GetFinalizers(), finalizer)
}

// cloudEvent checks an event of the cloud.
func (w *world) cloudEvent(e drivertest.Event) {
	w.cloudChanged = true
	w.logf("      cloud: %s", e)
	switch v := e.VM; e.Kind { //nolint:exhaustive // other events are not checked
	case drivertest.VMCreated:
		if w.judge.alive[v.Machine] == nil {
			w.judge.alive[v.Machine] = map[string]bool{}
		}
		w.judge.alive[v.Machine][v.ProviderID] = true
		w.judge.made[v.ProviderID] = types.UID(v.UID)
		if n := len(w.judge.alive[v.Machine]); n > 1 {
			w.violate("%s has %d VMs", v.Machine, n)
		}
		w.checkCreated(v)
	case drivertest.VMDeletionBegan, drivertest.VMDeleted:
		delete(w.judge.alive[v.Machine], v.ProviderID)
		if e.Kind == drivertest.VMDeletionBegan {
			w.checkDeleted(v)
		}
	}
}

// checkCreated checks that everything that must be durable before a VM exists is durable.
func (w *world) checkCreated(v drivertest.VM) {
	m := w.machine(v.Machine)
	class := stored[*v1alpha1.MachineClass](w.control, "machineclasses", keyOf(ns, "small"))
	switch {
	case m == nil || string(m.UID) != v.UID:
		w.violate("VM created for deleted machine %s", v.Machine)
	case !guarded(m, v1alpha1.MCMFinalizerName):
		w.violate("VM created for machine %s without finalizer", v.Machine)
	case m.Status.LastOperation.Type != v1alpha1.MachineOperationCreate && m.DeletionTimestamp.IsZero():
		w.violate("VM created for machine %s without a recorded create operation: %+v", v.Machine, m.Status.LastOperation)
	case m.Spec.ProviderID != "":
		w.violate("VM created for machine %s, which has VM %s", v.Machine, m.Spec.ProviderID)
	case class == nil || !guarded(class, v1alpha1.MCMFinalizerName) && !w.scenario.oldLists && !w.judge.oldClass:
		w.violate("VM created for machine %s, whose class has no finalizer", v.Machine)
	}
}

// unseen returns the writes to a resource that the controllers have not received.
func (w *world) unseen(resource string) []entry {
	for _, i := range w.process.caches {
		if i.site == w.control && i.resource == resource {
			return i.site.log[resource][i.read:]
		}
	}
	return nil
}

// checkDeleted checks that a VM may be deleted, and that its Node was drained.
func (w *world) checkDeleted(v drivertest.VM) {
	m := w.machine(v.Machine)
	if m == nil || m.DeletionTimestamp.IsZero() {
		w.violate("VM of machine %s deleted, but the machine is not being deleted", v.Machine)
		return
	}
	node := w.node(v.NodeName)
	if node == nil || w.mayForce(m, node) || !w.shownBefore("nodes", node, w.judge.askedAt[m.Name].Add(-time.Second)) {
		return
	}
	for _, pod := range all[*corev1.Pod](w.target, "pods") {
		if pod.Spec.NodeName == node.Name && pod.Status.Phase == corev1.PodRunning {
			w.violate("VM of machine %s deleted while pod %s runs on it", v.Machine, pod.Name)
		}
	}
	w.checkDetached(m.Name, node)
}

// shownBefore reports whether watches have shown an object before a time.
func (w *world) shownBefore(resource string, o metav1.Object, at time.Time) bool {
	log := w.target.log[resource]
	i := slices.IndexFunc(log, func(e entry) bool { return e.key == keyOf(o.GetNamespace(), o.GetName()) && !e.gone })
	return i >= 0 && w.target.shown(resource, i).Before(at)
}

// mayForce reports whether the pods on a Node may be deleted by force.
func (w *world) mayForce(m *v1alpha1.Machine, node *corev1.Node) bool {
	now := w.clock.Now()
	if from := w.drainStarted(m, node); !from.IsZero() && !now.Before(from.Add(drainTimeout)) {
		return true
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue && now.Sub(c.LastTransitionTime.Time) > 5*time.Minute
	})
}

// checkForce checks that force is not late.
func (w *world) checkForce() {
	now := w.clock.Now()
	for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
		node := w.node(m.Labels[v1alpha1.NodeLabelKey])
		if m.DeletionTimestamp.IsZero() || node == nil || w.judge.strangers[node.Name] || m.Status.CurrentStatus.Phase != v1alpha1.MachineTerminating {
			continue
		}
		due := m.DeletionTimestamp.Add(drainTimeout)
		if w.calmFrom.After(due) {
			due = w.calmFrom
		}
		if now.Before(due.Add(forceStep)) {
			continue
		}
		for _, pod := range all[*corev1.Pod](w.target, "pods") {
			if pod.Spec.NodeName == node.Name && pod.DeletionTimestamp.IsZero() {
				w.violate("pod %s is still on node %s, force was due at %s", pod.Name, node.Name, due)
			}
		}
		w.checkDetachForced(m.Name, m.DeletionTimestamp.Time, due, node)
	}
}

// assess checks one write.
func (w *world) assess(s *site, write draintest.Write, by author) {
	w.notePods(write)
	w.follow(write.Before, write.After, by)
	if by == others || !write.ByClient() {
		return
	}
	if write.Resource.Resource == "pods" && write.Verb == "delete" && write.Subresource == "" {
		w.assessForce(write)
	}
	if pod, ok := write.Before.(*corev1.Pod); ok && write.Subresource == "eviction" {
		w.assessEviction(pod)
	}
	if w.scenario.rollout != nil {
		w.assessRollout(write.Before, write.After)
	}
	w.assessStranger(write)
	w.assessNeeded(write)
	if write.Before == nil {
		return
	}
	if write.After != nil {
		w.assessForeign(write.Name, write.Before, write.After)
	}
	switch was := write.Before.(type) {
	case *v1alpha1.Machine:
		is, _ := write.After.(*v1alpha1.Machine)
		w.assessMachine(was, is)
	case *storagev1.VolumeAttachment:
		if write.Verb == "delete" && was.DeletionTimestamp.IsZero() {
			w.assessDetach(was)
		}
	case *corev1.Node:
		if is, ok := write.After.(*corev1.Node); ok {
			w.assessReady(was, is)
			w.assessDrained(was, is)
		}
		if write.Verb == "delete" && was.DeletionTimestamp.IsZero() {
			w.assessNodeDeletion(was)
		}
	}
}

// assessForce checks the deletion of a pod without eviction.
func (w *world) assessForce(write draintest.Write) {
	pod, _ := write.Before.(*corev1.Pod)
	node := w.node(pod.Spec.NodeName)
	m := w.machine(pod.Spec.NodeName)
	if node == nil || m == nil || w.drainStarted(m, node).IsZero() || !w.mayForce(m, node) {
		w.violate("pod %s deleted by force too early", write.Name)
	}
}

// assessForeign checks that labels, annotations, finalizers, taints and conditions of other clients
// stay.
func (w *world) assessForeign(name string, before, after runtime.Object) {
	was, err := meta.Accessor(before)
	must(err)
	is, err := meta.Accessor(after)
	must(err)
	if d, ok := before.(*v1alpha1.MachineDeployment); ok && d.Spec.RollbackTo != nil {
		return // a rollback restores the annotations too
	}
	theirs := func(key string) bool {
		return strings.HasPrefix(key, "example.com/") && key != "example.com/generation"
	} // which is in the template
	for _, maps := range [][2]map[string]string{{was.GetLabels(), is.GetLabels()}, {was.GetAnnotations(), is.GetAnnotations()}} {
		for key, value := range maps[0] {
			if theirs(key) && maps[1][key] != value {
				w.violate("%s of %s was removed", key, name)
			}
		}
	}
	for _, f := range was.GetFinalizers() {
		if theirs(f) && !guarded(is, f) {
			w.violate("finalizer %s of %s was removed", f, name)
		}
	}
	node, ok := before.(*corev1.Node)
	if !ok {
		return
	}
	now, _ := after.(*corev1.Node)
	for _, t := range node.Spec.Taints {
		if theirs(t.Key) && !slices.Contains(now.Spec.Taints, t) {
			w.violate("taint %s of %s was removed", t.Key, name)
		}
	}
	for _, c := range node.Status.Conditions {
		if !slices.Contains(ourConditions, c.Type) && !slices.Contains(now.Status.Conditions, c) {
			w.violate("condition %s of %s was removed", c.Type, name)
		}
	}
}

// ourConditions are the Node conditions that the controllers write.
var ourConditions = []corev1.NodeConditionType{v1alpha1.NodeTerminationCondition, v1alpha1.NodePreserved, v1alpha1.NodeInPlaceUpdate}

// assessMachine checks a write of a machine from was to is. A nil machine was deleted by the write.
func (w *world) assessMachine(was, is *v1alpha1.Machine) {
	if guarded(was, v1alpha1.MCMFinalizerName) && (is == nil || !guarded(is, v1alpha1.MCMFinalizerName)) {
		w.checkReleased(was)
	}
	if is == nil {
		return
	}
	if id := was.Spec.ProviderID; id != "" && is.Spec.ProviderID != id {
		w.violate("provider ID of %s changed from %q to %q", was.Name, id, is.Spec.ProviderID)
	}
	if id := is.Spec.ProviderID; id != "" && id != was.Spec.ProviderID && w.judge.made[id] != is.UID {
		w.violate("machine %s got %s, the VM of %q", is.Name, id, w.judge.made[id])
	}
	spec := *is.Spec.DeepCopy()
	spec.ProviderID = was.Spec.ProviderID
	if !equality.Semantic.DeepEqual(was.Spec, spec) {
		w.violate("spec of %s changed", was.Name)
	}
	w.assessPhase(was, is)
	w.assessSharedCause(was, is)
	w.assessPreservation(was, is)
	w.assessUpdate(was, is)
}

// recorded returns the time at which the controllers recorded t by their clock.
func (w *world) recorded(t metav1.Time) time.Time { return t.Add(-w.scenario.clockAhead) }

// assessPhase checks that a machine fails only after its timeout.
func (w *world) assessPhase(was, is *v1alpha1.Machine) {
	from, to, now := was.Status.CurrentStatus, is.Status.CurrentStatus, w.clock.Now()
	switch {
	case from.Phase == to.Phase:
	case to.Phase == v1alpha1.MachineFailed && from.Phase == v1alpha1.MachineUnknown:
		if since := w.recorded(from.LastUpdateTime); now.Before(since.Add(w.policy.HealthTimeout)) {
			w.violate("machine %s failed after %s", is.Name, now.Sub(since))
		}
		w.checkOutages(is, w.policy.HealthTimeout)
		w.checkReplacements(is)
	case to.Phase == v1alpha1.MachineFailed:
		if now.Before(is.CreationTimestamp.Add(w.policy.CreationTimeout)) {
			w.violate("machine %s failed after %s", is.Name, now.Sub(is.CreationTimestamp.Time))
		}
		w.checkOutages(is, w.policy.CreationTimeout)
	case from.Phase == v1alpha1.MachineFailed && to.Phase == v1alpha1.MachineRunning && from.PreserveExpiryTime != nil:
	case from.Phase == v1alpha1.MachineFailed && to.Phase == v1alpha1.MachineRunning && w.readySince(is).After(from.LastUpdateTime.Time):
	case from.Phase == v1alpha1.MachineTerminating, from.Phase == v1alpha1.MachineFailed && to.Phase != v1alpha1.MachineTerminating:
		w.violate("machine %s changed from phase %s to %s", is.Name, from.Phase, to.Phase)
	}
}

// longOutage is the least duration of an outage that every process notices.
const longOutage = 4 * time.Minute

// checkOutages checks that no machine fails during a long outage of an API server, or within its
// timeout after the end of one.
func (w *world) checkOutages(failed *v1alpha1.Machine, timeout time.Duration) {
	now := w.clock.Now()
	for _, s := range []*site{w.control, w.target} {
		for _, o := range s.outages {
			until := o.to
			if now.Before(until) {
				until = now
			}
			if until.Sub(o.from) >= longOutage && now.Before(o.to.Add(timeout)) {
				w.violate("machine %s failed %s after the outage of %s from %s to %s", failed.Name, now.Sub(o.to), s.name, o.from, o.to)
			}
		}
	}
}

// readySince returns since when the Node of a machine is Ready. Zero means that it is not.
func (w *world) readySince(m *v1alpha1.Machine) time.Time {
	if node := w.node(m.Labels[v1alpha1.NodeLabelKey]); node != nil {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return c.LastTransitionTime.Time
			}
		}
	}
	return time.Time{}
}

// checkReplacements checks that not too many machines of a deployment are failed at a time.
func (w *world) checkReplacements(failed *v1alpha1.Machine) {
	if !w.scenario.deployment {
		return
	}
	for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
		if m.Name != failed.Name && m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed && m.Status.CurrentStatus.PreserveExpiryTime == nil {
			w.violate("machine %s failed while %s is failed", failed.Name, m.Name)
		}
	}
}

// checkReplaced checks that no machine waits to fail although it may.
func (w *world) checkReplaced() {
	if w.scenario.guard != (safety.GuardPolicy{}) { // judgeSilence checks the guard
		return
	}
	now, machines := w.clock.Now(), all[*v1alpha1.Machine](w.control, "machines")
	for _, m := range machines {
		if phase := m.Status.CurrentStatus.Phase; phase != v1alpha1.MachineRunning && phase != v1alpha1.MachineUnknown {
			w.judge.replaced = now
		}
	}
	for _, m := range machines {
		due := w.recorded(m.Status.CurrentStatus.LastUpdateTime).Add(w.policy.HealthTimeout)
		due = later(later(due, w.judge.replaced), w.calmFrom)
		if w.process != nil { // health timeouts begin again with a process, and after a freeze
			due = later(due, w.process.freeze().ClocksFrom.Add(w.policy.HealthTimeout-w.scenario.clockAhead))
		}
		if m.Status.CurrentStatus.Phase == v1alpha1.MachineUnknown && m.DeletionTimestamp.IsZero() && now.After(due.Add(2*time.Minute)) {
			w.violate("machine %s has not failed, due at %s", m.Name, due)
		}
	}
}

// checkReleased checks that a released machine leaves neither VM nor side resources.
func (w *world) checkReleased(m *v1alpha1.Machine) {
	if force := m.DeletionTimestamp; force != nil && m.Labels[v1alpha1.LabelKeyForceDeletion] == "true" || force != nil && w.clock.Now().After(force.Add(drainTimeout)) {
		w.judge.unconfirmedToken = w.judge.unconfirmedToken || w.clock.Now().After(force.Add(time.Minute)) // then a token may be left
	}
	left := w.cloud.Snapshot().Of(m.Name)
	for _, v := range left.VMs {
		if v.DeletedAt.IsZero() {
			w.violate("machine %s released while its VM exists: %s", m.Name, v)
		}
	}
	for _, r := range left.SideResources {
		w.violate("machine %s released while %s %s exists", m.Name, r.Kind, r.ID)
	}
}

// assessNodeDeletion checks that a Node is deleted only after its VM.
func (w *world) assessNodeDeletion(node *corev1.Node) {
	m := w.machine(node.Name)
	if m == nil || m.DeletionTimestamp.IsZero() {
		w.violate("node %s deleted, but its machine is not being deleted", node.Name)
	}
	if len(w.judge.alive[node.Name]) > 0 {
		w.violate("node %s deleted before its VM", node.Name)
	}
}

// checkRest checks the final state: everything of the existing machines, and nothing of deleted
// ones.
func (w *world) checkRest() {
	w.collect(others)
	snapshot := w.cloud.Snapshot()
	machines := all[*v1alpha1.Machine](w.control, "machines")
	for _, m := range machines {
		w.checkSettled(m, snapshot.Of(m.Name))
	}
	if len(snapshot.VMs) != len(machines) || len(machines) == 0 && !snapshot.Empty() {
		w.violate("at the end: %d machines, and\n%s", len(machines), snapshot)
	}
	if w.process == nil {
		w.violate("at the end no process runs")
	}
	w.checkDeployed()
	for _, node := range all[*corev1.Node](w.target, "nodes") {
		if w.machine(node.Name) == nil && node.Name != w.judge.unknownNode {
			w.violate("at the end node %s has no machine", node.Name)
		}
	}
	for _, secret := range all[*corev1.Secret](w.target, "secrets") {
		// A token whose creation was not confirmed may be observed late; it expires by itself.
		forgiven := (w.judge.unconfirmedToken || w.scenario.oldLists) && len(secret.Data["expiration"]) > 0
		if secret.Type == corev1.SecretTypeBootstrapToken && !forgiven {
			w.violate("at the end bootstrap token %s exists", secret.Name)
		}
	}
	class := stored[*v1alpha1.MachineClass](w.control, "machineclasses", keyOf(ns, "small"))
	named := len(all[*v1alpha1.MachineDeployment](w.control, "machinedeployments")) > 0 || slices.ContainsFunc(all[*v1alpha1.MachineSet](w.control, "machinesets"), func(s *v1alpha1.MachineSet) bool { return s.Spec.Template.Spec.Class.Name == class.Name })
	if guarded(class, v1alpha1.MCMFinalizerName) != (len(machines) > 0 || named) {
		w.violate("at the end: %d machines, and finalizers %v on their class", len(machines), class.Finalizers)
	}
	secret := stored[*corev1.Secret](w.control, "secrets", keyOf(ns, "small"))
	if !guarded(secret, v1alpha1.MCFinalizerName) {
		w.violate("at the end the Secret of a class has no finalizer")
	}
}

// checkSettled checks a machine in the final state.
func (w *world) checkSettled(m *v1alpha1.Machine, own drivertest.Snapshot) {
	want := v1alpha1.MachineRunning
	if w.scenario.noTarget {
		want = v1alpha1.MachineAvailable
	}
	if m.Status.CurrentStatus.Phase != want || !m.DeletionTimestamp.IsZero() {
		w.violate("at the end %s is in phase %q: %s", m.Name, m.Status.CurrentStatus.Phase, m.Status.LastOperation.Description)
		return
	}
	if len(own.VMs) != 1 || own.VMs[0].ProviderID != m.Spec.ProviderID || !own.VMs[0].Initialized || len(own.Leftovers()) > 0 {
		w.violate("at the end %s with provider ID %q has\n%s", m.Name, m.Spec.ProviderID, own)
	}
	if w.scenario.noTarget {
		return
	}
	node := w.node(m.Labels[v1alpha1.NodeLabelKey])
	if node != nil {
		w.checkUnpreserved(m, node)
		w.checkUpdated(node)
	}
	if node == nil || node.Labels[v1alpha1.MachineNameLabelKey] != m.Name || !guarded(node, v1alpha1.NodeFinalizerName) || node.Labels["pool"] != "a" ||
		!slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "pool" }) {
		w.violate("at the end %s has node %v", m.Name, node)
	}
}
