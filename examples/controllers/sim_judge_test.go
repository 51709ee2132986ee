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
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// The judge knows what the clusters and the cloud hold, and who wrote what. It
// does not know what the controllers think.

// judge is what the judge remembers.
type judge struct {
	alive    map[string]map[string]bool // VMs, by machine
	made     map[string]types.UID       // of which machine a VM is, by provider ID
	fellIll  map[string]bool            // machines whose Node has got ill
	askedAt  map[string]time.Time       // when the last of them was made, by machine
	freed    map[string]time.Time       // when the last pod that uses it went, by volume
	told     map[string]saying          // of preservation, by machine
	updated  map[string]bool            // machines whose update in place has begun
	replaced time.Time                  // when one was last neither Running nor Unknown
	unheard  bool                       // a token may exist whose creation was not confirmed
	oldClass bool                       // the pass began with an old view of the class
	promise  promise                    // of the deployment
}

func newJudge() judge {
	return judge{
		alive: map[string]map[string]bool{}, made: map[string]types.UID{}, fellIll: map[string]bool{},
		askedAt: map[string]time.Time{}, freed: map[string]time.Time{}, told: map[string]saying{}, updated: map[string]bool{},
	}
}

// drainTimeout is when a drain becomes one by force.
const drainTimeout = 5 * time.Minute

// forceStep is how long after that it may take until force begins, if nothing
// else is wrong.
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

// happened judges what happens in the cloud.
func (w *world) happened(e drivertest.Event) {
	w.stirred = true
	w.say("      cloud: %s", e)
	switch v := e.VM; e.Kind { //nolint:exhaustive // the others are not judged
	case drivertest.VMCreated:
		if w.judge.alive[v.Machine] == nil {
			w.judge.alive[v.Machine] = map[string]bool{}
		}
		w.judge.alive[v.Machine][v.ProviderID] = true
		w.judge.made[v.ProviderID] = types.UID(v.UID)
		if n := len(w.judge.alive[v.Machine]); n > 1 {
			w.wrong("I-1: %s has %d VMs", v.Machine, n)
		}
		w.checkCreated(v)
	case drivertest.VMDeletionBegan, drivertest.VMDeleted:
		delete(w.judge.alive[v.Machine], v.ProviderID)
		if e.Kind == drivertest.VMDeletionBegan {
			w.checkDeleted(v)
		}
	}
}

// checkCreated judges that all that has to be durable before a VM is.
func (w *world) checkCreated(v drivertest.VM) {
	m := w.machine(v.Machine)
	class := stored[*v1alpha1.MachineClass](w.control, "machineclasses", keyOf(ns, "small"))
	switch {
	case m == nil || string(m.UID) != v.UID:
		w.wrong("a VM is made for machine %s, which is gone", v.Machine)
	case !guarded(m, v1alpha1.MCMFinalizerName):
		w.wrong("a VM is made for machine %s, which is not guarded", v.Machine)
	case m.Status.LastOperation.Type != v1alpha1.MachineOperationCreate && m.DeletionTimestamp.IsZero():
		w.wrong("a VM is made for machine %s without an intent: %+v", v.Machine, m.Status.LastOperation)
	case m.Spec.ProviderID != "":
		w.wrong("a VM is made for machine %s, which has %s", v.Machine, m.Spec.ProviderID)
	case class == nil || !guarded(class, v1alpha1.MCMFinalizerName) && !w.scenario.oldLists && !w.judge.oldClass:
		w.wrong("a VM is made for machine %s, whose class is not guarded", v.Machine)
	}
}

// unseen returns the writes to a resource that the controllers have not been shown.
func (w *world) unseen(resource string) []entry {
	for _, i := range w.process.caches {
		if i.site == w.control && i.resource == resource {
			return i.site.log[resource][i.read:]
		}
	}
	return nil
}

// checkDeleted judges that a VM may go, and that its Node has been emptied.
func (w *world) checkDeleted(v drivertest.VM) {
	m := w.machine(v.Machine)
	if m == nil || m.DeletionTimestamp.IsZero() {
		w.wrong("the VM of machine %s is deleted, which is not", v.Machine)
		return
	}
	node := w.node(v.NodeName)
	if node == nil || w.mayForce(m, node) || !w.shownBefore("nodes", node, w.judge.askedAt[m.Name].Add(-time.Second)) {
		return
	}
	for _, pod := range all[*corev1.Pod](w.target, "pods") {
		if pod.Spec.NodeName == node.Name && pod.Status.Phase == corev1.PodRunning {
			w.wrong("the VM of machine %s is deleted with pod %s on it", v.Machine, pod.Name)
		}
	}
	w.checkDetached(m.Name, node)
}

// shownBefore says whether watches have shown an object before some time.
func (w *world) shownBefore(resource string, o metav1.Object, at time.Time) bool {
	log := w.target.log[resource]
	i := slices.IndexFunc(log, func(e entry) bool { return e.key == keyOf(o.GetNamespace(), o.GetName()) && !e.gone })
	return i >= 0 && w.target.shown(resource, i).Before(at)
}

// mayForce says whether the pods on a Node need not be asked any more.
func (w *world) mayForce(m *v1alpha1.Machine, node *corev1.Node) bool {
	now := w.clock.Now()
	if from := w.drainStarted(m, node); !from.IsZero() && !now.Before(from.Add(drainTimeout)) {
		return true
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue && now.Sub(c.LastTransitionTime.Time) > 5*time.Minute
	})
}

// checkForce judges that force is not put off.
func (w *world) checkForce() {
	now := w.clock.Now()
	for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
		node := w.node(m.Labels[v1alpha1.NodeLabelKey])
		if m.DeletionTimestamp.IsZero() || node == nil || m.Status.CurrentStatus.Phase != v1alpha1.MachineTerminating {
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
				w.wrong("I-9: pod %s is on node %s, which was to be forced at %s", pod.Name, node.Name, due)
			}
		}
		w.checkDetachForced(m.Name, m.DeletionTimestamp.Time, due, node)
	}
}

// assess judges one write.
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

// assessForce judges a deletion of a pod that asks no budget.
func (w *world) assessForce(write draintest.Write) {
	pod, _ := write.Before.(*corev1.Pod)
	node := w.node(pod.Spec.NodeName)
	m := w.machine(pod.Spec.NodeName)
	if node == nil || m == nil || w.drainStarted(m, node).IsZero() || !w.mayForce(m, node) {
		w.wrong("I-9: pod %s is deleted by force too early", write.Name)
	}
}

// assessForeign judges that nothing of others is lost.
func (w *world) assessForeign(name string, before, after runtime.Object) {
	was, err := meta.Accessor(before)
	must(err)
	is, err := meta.Accessor(after)
	must(err)
	if d, ok := before.(*v1alpha1.MachineDeployment); ok && d.Spec.RollbackTo != nil {
		return // a roll-back brings back the annotations as well
	}
	theirs := func(key string) bool { return strings.HasPrefix(key, "example.com/") }
	for _, maps := range [][2]map[string]string{{was.GetLabels(), is.GetLabels()}, {was.GetAnnotations(), is.GetAnnotations()}} {
		for key, value := range maps[0] {
			if theirs(key) && maps[1][key] != value {
				w.wrong("I-14: %s of %s is lost", key, name)
			}
		}
	}
	for _, f := range was.GetFinalizers() {
		if theirs(f) && !guarded(is, f) {
			w.wrong("I-14: finalizer %s of %s is lost", f, name)
		}
	}
	node, ok := before.(*corev1.Node)
	if !ok {
		return
	}
	now, _ := after.(*corev1.Node)
	for _, t := range node.Spec.Taints {
		if theirs(t.Key) && !slices.Contains(now.Spec.Taints, t) {
			w.wrong("I-14: taint %s of %s is lost", t.Key, name)
		}
	}
	for _, c := range node.Status.Conditions {
		if !slices.Contains(ourConditions, c.Type) && !slices.Contains(now.Status.Conditions, c) {
			w.wrong("I-14: condition %s of %s is lost", c.Type, name)
		}
	}
}

// ourConditions are those that we write.
var ourConditions = []corev1.NodeConditionType{v1alpha1.NodeTerminationCondition, v1alpha1.NodePreserved, v1alpha1.NodeInPlaceUpdate}

// assessMachine judges a write of a machine: from was, to is, which is nil if
// it has gone by it.
func (w *world) assessMachine(was, is *v1alpha1.Machine) {
	if guarded(was, v1alpha1.MCMFinalizerName) && (is == nil || !guarded(is, v1alpha1.MCMFinalizerName)) {
		w.checkReleased(was)
	}
	if is == nil {
		return
	}
	if id := was.Spec.ProviderID; id != "" && is.Spec.ProviderID != id {
		w.wrong("the provider ID of %s changes from %q to %q", was.Name, id, is.Spec.ProviderID)
	}
	if id := is.Spec.ProviderID; id != "" && w.judge.made[id] != is.UID {
		w.wrong("machine %s gets %s, the VM of %q", is.Name, id, w.judge.made[id])
	}
	spec := *is.Spec.DeepCopy()
	spec.ProviderID = was.Spec.ProviderID
	if !equality.Semantic.DeepEqual(was.Spec, spec) {
		w.wrong("I-14: the spec of %s changes", was.Name)
	}
	w.assessPhase(was, is)
	w.assessPreservation(was, is)
	w.assessUpdate(was, is)
}

// recorded returns when it was that the controllers wrote down as t by their clock.
func (w *world) recorded(t metav1.Time) time.Time { return t.Add(-w.scenario.clockAhead) }

// assessPhase judges that a machine fails only when its time is over.
func (w *world) assessPhase(was, is *v1alpha1.Machine) {
	from, to, now := was.Status.CurrentStatus, is.Status.CurrentStatus, w.clock.Now()
	switch {
	case from.Phase == to.Phase:
	case to.Phase == v1alpha1.MachineFailed && from.Phase == v1alpha1.MachineUnknown:
		if since := w.recorded(from.LastUpdateTime); now.Before(since.Add(w.policy.HealthTimeout)) {
			w.wrong("machine %s fails after %s", is.Name, now.Sub(since))
		}
		w.checkOutages(is, w.policy.HealthTimeout)
		w.checkReplacements(is)
	case to.Phase == v1alpha1.MachineFailed:
		if now.Before(is.CreationTimestamp.Add(w.policy.CreationTimeout)) {
			w.wrong("machine %s fails after %s", is.Name, now.Sub(is.CreationTimestamp.Time))
		}
		w.checkOutages(is, w.policy.CreationTimeout)
	case from.Phase == v1alpha1.MachineFailed && to.Phase == v1alpha1.MachineRunning && from.PreserveExpiryTime != nil:
	case from.Phase == v1alpha1.MachineFailed && to.Phase == v1alpha1.MachineRunning && w.readySince(is).After(from.LastUpdateTime.Time):
	case from.Phase == v1alpha1.MachineTerminating, from.Phase == v1alpha1.MachineFailed && to.Phase != v1alpha1.MachineTerminating:
		w.wrong("machine %s goes from %s to %s", is.Name, from.Phase, to.Phase)
	}
}

// longOutage is how long an outage lasts at least that no process can have missed.
const longOutage = 4 * time.Minute

// checkOutages judges that a machine is not failed during a long outage of an API server,
// or within its timeout after the end of one.
func (w *world) checkOutages(failed *v1alpha1.Machine, timeout time.Duration) {
	now := w.clock.Now()
	for _, s := range []*site{w.control, w.target} {
		for _, o := range s.outages {
			until := o.to
			if now.Before(until) {
				until = now
			}
			if until.Sub(o.from) >= longOutage && now.Before(o.to.Add(timeout)) {
				w.wrong("machine %s is failed %s after the outage of %s, which lasted from %s to %s", failed.Name, now.Sub(o.to), s.name, o.from, o.to)
			}
		}
	}
}

// readySince returns since when the Node of a machine is Ready, or zero.
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

// checkReplacements judges that not too many machines of a deployment are failed
// at a time.
func (w *world) checkReplacements(failed *v1alpha1.Machine) {
	if !w.scenario.deployment {
		return
	}
	for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
		if m.Name != failed.Name && m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed && m.Status.CurrentStatus.PreserveExpiryTime == nil {
			w.wrong("I-15: machine %s fails, and %s has failed", failed.Name, m.Name)
		}
	}
}

// checkReplaced judges that no machine waits to be failed when nothing is in its
// way.
func (w *world) checkReplaced() {
	if w.scenario.guard != (safety.GuardPolicy{}) { // which is judged by what it holds
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
		if w.process != nil { // health timeouts begin anew with a process, and after a freeze
			due = later(due, w.process.freeze.now().ClocksFrom.Add(w.policy.HealthTimeout-w.scenario.clockAhead))
		}
		if m.Status.CurrentStatus.Phase == v1alpha1.MachineUnknown && m.DeletionTimestamp.IsZero() && now.After(due.Add(2*time.Minute)) {
			w.wrong("machine %s was to be failed at %s", m.Name, due)
		}
	}
}

// checkReleased judges that nothing is left of a machine that is let go.
func (w *world) checkReleased(m *v1alpha1.Machine) {
	left := w.cloud.Snapshot().Of(m.Name)
	for _, v := range left.VMs {
		if v.DeletedAt.IsZero() {
			w.wrong("I-2: machine %s is let go, and its VM lives: %s", m.Name, v)
		}
	}
	for _, r := range left.SideResources {
		w.wrong("I-2: machine %s is let go, and there is the %s %s", m.Name, r.Kind, r.ID)
	}
}

// assessNodeDeletion judges that a Node is deleted only after its VM.
func (w *world) assessNodeDeletion(node *corev1.Node) {
	m := w.machine(node.Name)
	if m == nil || m.DeletionTimestamp.IsZero() {
		w.wrong("node %s is deleted, but not its machine", node.Name)
	}
	if len(w.judge.alive[node.Name]) > 0 {
		w.wrong("node %s is deleted before its VM", node.Name)
	}
}

// checkRest judges what is left when nothing happens any more: all of the
// machines that were not deleted, and nothing of the others.
func (w *world) checkRest() {
	w.collect(others)
	snapshot := w.cloud.Snapshot()
	machines := all[*v1alpha1.Machine](w.control, "machines")
	for _, m := range machines {
		w.checkSettled(m, snapshot.Of(m.Name))
	}
	if len(snapshot.VMs) != len(machines) || len(machines) == 0 && !snapshot.Empty() {
		w.wrong("I-2: at rest there are %d machines, and\n%s", len(machines), snapshot)
	}
	if w.process == nil {
		w.wrong("at rest there are no controllers")
	}
	w.checkDeployed()
	for _, node := range all[*corev1.Node](w.target, "nodes") {
		if w.machine(node.Name) == nil {
			w.wrong("at rest there is node %s, and no machine of it", node.Name)
		}
	}
	for _, secret := range all[*corev1.Secret](w.target, "secrets") {
		// A token whose creation was not confirmed may be observed late; it expires by itself.
		forgiven := (w.judge.unheard || w.scenario.oldLists) && len(secret.Data["expiration"]) > 0
		if secret.Type == corev1.SecretTypeBootstrapToken && !forgiven {
			w.wrong("at rest there is bootstrap token %s", secret.Name)
		}
	}
	class := stored[*v1alpha1.MachineClass](w.control, "machineclasses", keyOf(ns, "small"))
	if guarded(class, v1alpha1.MCMFinalizerName) != (len(machines) > 0) {
		w.wrong("at rest there are %d machines, and finalizers %v on their class", len(machines), class.Finalizers)
	}
	secret := stored[*corev1.Secret](w.control, "secrets", keyOf(ns, "small"))
	if !guarded(secret, v1alpha1.MCFinalizerName) {
		w.wrong("at rest the secret of a class is not guarded")
	}
}

// checkSettled judges a machine at rest.
func (w *world) checkSettled(m *v1alpha1.Machine, own drivertest.Snapshot) {
	want := v1alpha1.MachineRunning
	if w.scenario.noTarget {
		want = v1alpha1.MachineAvailable
	}
	if m.Status.CurrentStatus.Phase != want || !m.DeletionTimestamp.IsZero() {
		w.wrong("%s rests in phase %q: %s", m.Name, m.Status.CurrentStatus.Phase, m.Status.LastOperation.Description)
		return
	}
	if len(own.VMs) != 1 || own.VMs[0].ProviderID != m.Spec.ProviderID || !own.VMs[0].Initialized || len(own.Leftovers()) > 0 {
		w.wrong("%s with %q rests with\n%s", m.Name, m.Spec.ProviderID, own)
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
		w.wrong("%s rests with node %v", m.Name, node)
	}
}
