// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Decide returns what to do for a deployment now: for its deletion, for a change of its replicas,
// or for the replacement of its machines. It does not modify the observation.
//
// Any number of decisions, each carried out in full or in part, keeps these guarantees:
//   - The machines of all sets do not exceed replicas + maxSurge. A set counts with its replicas or
//     with its machines, terminating ones included, whichever is more. The exception: a set
//     replaces a failed or deleted machine before that is gone.
//   - The available machines do not fall below replicas - maxUnavailable. The exceptions: the only
//     active set follows the replicas at once, and [Policy.FreeCapacity] deletes one more machine
//     if maxUnavailable is 0.
//   - A template has at most one set.
//
// If [Validate] refuses the spec, or if the selector is empty, only the status changes: the
// condition Progressing has the reason InvalidSpec or EmptySelector, and one Event says so. A
// deployment with a deletion timestamp is deleted in any case.
//
// [BoundsOf] returns the bounds. The sets must select the machines to delete as [machineset.Decide]
// does, with the order of the policy.
//
// Before the first write in the life of a process, a list is requested: see [Observation].Proven.
//
// The decision contains copies, except for the machines of [Target.Victims] and the observed objects
// in [machinist.Update].Before and [machinist.Delete].Object.
func Decide(in Observation, p Policy, now time.Time) Decision {
	if in.Deployment == nil {
		return Decision{Reason: reasonViewIncomplete, Holds: []machinist.Hold{{Reason: reasonViewIncomplete, Message: "no deployment was observed"}}}
	}
	d := decide(in, p, now)
	if in.Proven || !slices.ContainsFunc(d.Actions, in.writes) {
		return d
	}
	return unproven(in, now)
}

// writes reports whether an action is wrong if the lists are old: all but a live read, a Node, which
// the next pass corrects, and the first finalizer.
func (o Observation) writes(a machinist.Action) bool {
	switch a := a.(type) {
	case machinist.Refresh:
		return false
	case machinist.Update:
		switch a.Object.(type) {
		case *corev1.Node:
			return false
		case *v1alpha1.MachineDeployment:
			return slices.Contains(o.Deployment.Finalizers, v1alpha1.MCMFinalizerName)
		}
	}
	return true
}

// unproven requests a live list, because the lists may be older than the last write of an earlier
// process.
func unproven(in Observation, now time.Time) Decision {
	c := &pass{in: in, now: now, d: in.Deployment}
	c.out.Reason, c.out.Status = reasonViewIncomplete, in.Deployment.Status
	c.holdUntil(now.Add(time.Second), "machinedeployment/"+c.d.Name, reasonViewIncomplete, "the lists of sets and machines may be older than the last write of an earlier process")
	c.add(machinist.Refresh{Kind: v1alpha1.MachineSetKind})
	return c.finish()
}

func decide(in Observation, p Policy, now time.Time) Decision {
	c := &pass{in: in, policy: p, now: now, order: p.order(now), d: in.Deployment.DeepCopy()}
	c.in.Sets = c.own(in.Sets)
	c.newSet, c.old = rollout.FindSets(c.d, c.in.Sets)
	c.out.Status = c.d.Status
	refused, why := refusal(c.d)
	pending := in.Expectations.Observe(in.find, in.Complete)
	switch {
	case !in.Complete:
		c.out.Reason = reasonViewIncomplete // no object changes when the lists become complete
		c.holdUntil(now.Add(recheck), "machinedeployment/"+c.d.Name, reasonViewIncomplete, "the lists of sets and machines are not known to be complete")
	case len(pending) > 0:
		c.expect(pending)
	case c.d.DeletionTimestamp != nil:
		c.delete()
	case refused != "":
		c.refuse(refused, why)
	case !slices.Contains(c.d.Finalizers, v1alpha1.MCMFinalizerName):
		c.out.Reason = reasonAdopting
		c.d.Finalizers = append(c.d.Finalizers, v1alpha1.MCMFinalizerName)
		c.editDeployment("finalizer is missing")
	default:
		c.proceed()
	}
	return c.finish()
}

// expect holds the deployment until the cache shows the writes of this process.
func (c *pass) expect(pending machine.Expectations) {
	c.stop(reasonWriteNotSeen, "the cache does not show the last write of "+strings.ToLower(pending[0].Kind)+" "+pending[0].Name+" yet")
	for _, x := range pending {
		due := x.At.Add(c.policy.unseen())
		switch {
		case due.After(c.now) && recorded.Known(x.At, c.now):
			c.look(due)
		case len(c.out.Actions) < c.policy.burst(len(c.in.Machines)):
			c.add(machinist.Refresh{Kind: x.Kind, Name: x.Name})
		}
	}
}

// own returns the sets that no other object controls, oldest first and each name once. It holds the
// other sets. Nil sets are left out.
func (c *pass) own(sets []*v1alpha1.MachineSet) []*v1alpha1.MachineSet {
	met := make(map[string]bool, len(sets))
	return slices.DeleteFunc(rollout.ByCreation(sets), func(s *v1alpha1.MachineSet) bool {
		owner := metav1.GetControllerOfNoCopy(s)
		if s.Namespace != c.d.Namespace || owner != nil && owner.UID != c.d.UID {
			c.hold("machineset/"+s.Name, reasonNotOurs, "another object controls it, or it is in another namespace: it is left out")
			return true
		}
		again := met[s.Name]
		met[s.Name] = true
		return again
	})
}

// proceed decides about a valid deployment that is not being deleted.
func (c *pass) proceed() {
	bounds, _ := BoundsOf(c.d) // the spec has been validated
	c.ledger = &ledger{Bounds: bounds, accounts: openAccounts(c.in, c.d, c.newSet, c.order, c.now)}
	for _, a := range c.ledger.accounts {
		_, at := members.NextAvailable(a.machines, a.minReady, c.now)
		c.look(at)
	}
	c.d.Status.Conditions = rollout.WithoutFuture(rollout.WithoutRefusal(c.d.Status), c.now)
	c.d.Status.Conditions = rollout.WithPause(c.d, c.now)
	c.d.Status.Conditions = c.withFreeze()
	c.counters()
	c.markNamed()
	c.passRetryOn()
	statusToo := c.followDeployment()
	c.allowGrowth()
	c.countDemand()
	c.settleMoves()
	switch {
	case c.in.Freeze.Frozen:
		c.out.Reason = ReasonFrozen
		c.frozen()
		c.scaleAny()
		c.counters()
	case c.d.Spec.Paused:
		c.stop(ReasonPaused, "spec.paused is true: only changes of spec.replicas are carried out")
		c.scaleAny()
		c.cleanUp()
		c.counters()
	case c.d.Spec.RollbackTo != nil:
		c.rollBack()
	case c.scaling():
		c.out.Reason = reasonScaling
		c.scaleAny()
		c.counters()
	default:
		c.rollOut()
	}
	c.beginAgain()
	c.out.WriteStatus = statusToo
}

// passRetryOn passes the annotation by which a user asks for the next attempt on to the machines that wait.
func (c *pass) passRetryOn() {
	if !facts.RetryAsked(c.d) {
		return
	}
	for _, a := range c.ledger.accounts {
		for _, m := range a.machines {
			if facts.PassesRetryOn(m) {
				metav1.SetMetaDataAnnotation(&c.editMachine(m, "retry now").ObjectMeta, v1alpha1.RetryNowAnnotation, c.d.Annotations[v1alpha1.RetryNowAnnotation])
			}
		}
	}
	delete(c.d.Annotations, v1alpha1.RetryNowAnnotation)
	c.editDeployment("retry now")
}

// unlikeDeployment begins the change of a set that gets what the deployment has. The names of the fields follow.
const unlikeDeployment = "differs from the deployment: "

// followDeployment copies fields of the deployment to the new set, and the machine configuration to
// the others. Once the new set has them, the deployment gets its revision. A Progressing condition of
// an earlier rollout is replaced then, because an old set may become the new one without being
// created. It reports whether the status is written even if it does not change, as MCM does.
func (c *pass) followDeployment() (statusToo bool) {
	for _, a := range c.ledger.accounts {
		if next := reconfigured(c.d, a.next); next != nil && (!a.isNew || a.deleting) {
			a.next = next
			a.changes = append(a.changes, unlikeDeployment+configuration)
		}
	}
	a := c.ledger.of(c.newSet)
	if a == nil {
		return false
	}
	if !a.deleting {
		if edited, fields := propagated(c.d, a.next, c.old); edited != nil {
			a.next = edited
			a.changes = append(a.changes, unlikeDeployment+strings.Join(fields, ", "))
		}
	}
	if len(a.changes) > 0 {
		return false
	}
	again := false
	revision, ok := c.newSet.Annotations[v1alpha1.RevisionAnnotation]
	if before, had := c.d.Annotations[v1alpha1.RevisionAnnotation]; ok && before != revision {
		metav1.SetMetaDataAnnotation(&c.d.ObjectMeta, v1alpha1.RevisionAnnotation, revision)
		c.editDeployment("revision is " + revision)
		statusToo = true
		again = had && c.newSet.Spec.Replicas < c.d.Spec.Replicas
	}
	cond := rollout.Condition(c.d.Status, v1alpha1.MachineDeploymentProgressing)
	if cond == nil || again && (cond.Reason == v1alpha1.NewMachineSetAvailable || cond.Reason == v1alpha1.ProgressDeadlineExceeded) {
		c.d.Status.Conditions = rollout.WithStep(c.d.Status.Conditions, v1alpha1.FoundNewMachineSet, fmt.Sprintf("Found new machine set %q", c.newSet.Name), c.now)
	}
	return statusToo
}

// scaleAny carries out a change of the replicas.
func (c *pass) scaleAny() {
	if c.inPlace() {
		c.scaleInPlace()
	} else {
		c.scale()
	}
}

// beginAgain writes the size of a new set that may create machines again, so that the set does not
// fill up to its former size.
func (c *pass) beginAgain() {
	a := c.ledger.of(c.newSet)
	if a == nil || a.deleting || !members.ScaleUpDisabled(a.set) || members.ScaleUpDisabled(a.next) {
		return
	}
	if rollout.Narrow(a.spec) != a.next.Spec.Replicas {
		c.resize(a, a.spec, "it may create machines again, and begins with the size that it has")
	}
}

// rollOut takes the next step of a rollout.
func (c *pass) rollOut() {
	c.out.Reason = reasonProgressing
	var created *v1alpha1.MachineSet
	switch c.d.Spec.Strategy.Type {
	case v1alpha1.RecreateMachineDeploymentStrategyType:
		created = c.recreate()
	case v1alpha1.InPlaceUpdateMachineDeploymentStrategyType:
		created = c.updateInPlace()
	case v1alpha1.RollingUpdateMachineDeploymentStrategyType:
		created = c.roll()
	}
	c.markNodes()
	if c.out.Reason == reasonNameTaken {
		return
	}
	atRest := !c.changing() && c.ledger.atRest()
	status, expires := rollout.Status(c.d, cmp.Or(c.newSet, created), c.old, c.now, atRest)
	if atRest && Complete(c.d, status) {
		c.out.Reason = ReasonComplete
		c.cleanUp()
	} else if cond := rollout.Condition(status, v1alpha1.MachineDeploymentProgressing); cond != nil && cond.Reason == v1alpha1.NewMachineSetAvailable && c.newSet == nil {
		// The end of the last rollout is not that of this one, whose set cannot be created yet.
		status.Conditions = rollout.WithStep(status.Conditions, v1alpha1.MachineSetUpdated, "No machine set has the present template yet", c.now)
	}
	c.out.Status = status
	if !c.changing() && c.out.Reason != ReasonComplete {
		c.waiting()
	}
	c.judgeProgress(status)
	c.look(expires)
}

// judgeProgress sets the reason and the message of a rollout: Stuck if the progress deadline is
// exceeded, Progressing otherwise. The condition Progressing has the same message. The begin and the
// end of Stuck have an Event each.
func (c *pass) judgeProgress(status v1alpha1.MachineDeploymentStatus) {
	cond, was := rollout.Condition(status, v1alpha1.MachineDeploymentProgressing), rollout.Condition(c.d.Status, v1alpha1.MachineDeploymentProgressing)
	exceeded := cond != nil && cond.Reason == v1alpha1.ProgressDeadlineExceeded
	if c.out.Reason == reasonProgressing {
		c.out.Message = fmt.Sprintf("%d of %d machines updated, %d available", status.UpdatedReplicas, c.d.Spec.Replicas, status.AvailableReplicas)
		if exceeded {
			c.out.Reason = ReasonStuck
			c.out.Message = fmt.Sprintf("no progress within %s, seen at %s", deadlineOf(c.d), cond.LastUpdateTime.UTC().Format(time.RFC3339))
		}
		if h, ok := cause(c.out.Holds); ok {
			c.out.Message += ", waits for " + h.String()
		}
		c.out.Status.Conditions = rollout.WithMessage(status.Conditions, c.out.Message)
	}
	switch stuck := was != nil && was.Reason == v1alpha1.ProgressDeadlineExceeded; {
	case exceeded && !stuck:
		c.out.Events = append(c.out.Events, machinist.Event{Type: eventWarning, Reason: eventStuck, Message: brief(c.out.Message)})
	case stuck && !exceeded:
		c.out.Events = append(c.out.Events, machinist.Event{Type: eventNormal, Reason: eventUnstuck, Message: "The rollout makes progress again: " + brief(c.out.Message)})
	}
	if exceeded {
		c.hold("machinedeployment/"+c.d.Name, reasonProgressDeadline, cond.Message)
	}
}

// cause returns the hold that explains best why a rollout is stuck: one about a machine
// before one about the bounds.
func cause(holds []machinist.Hold) (machinist.Hold, bool) {
	for _, h := range holds {
		switch h.Reason {
		case ReasonNewUnavailable, reasonNoCapacity, reasonGate:
			return h, true
		}
	}
	if len(holds) == 0 {
		return machinist.Hold{}, false
	}
	return holds[0], true
}

// deadlineOf returns the progress deadline of a deployment, or zero.
func deadlineOf(d *v1alpha1.MachineDeployment) time.Duration {
	if d.Spec.ProgressDeadlineSeconds == nil {
		return 0
	}
	return time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second
}

// cleanUp deletes the old sets that are not kept as history.
func (c *pass) cleanUp() {
	for _, s := range surplusSets(c.old, c.d.Spec.RevisionHistoryLimit) {
		c.ledger.of(s).changes = nil // what is deleted is not written
		c.add(machinist.Delete{
			Object: s, Unchanged: true,
			Message: fmt.Sprintf("it is empty, and %d newer old sets are kept as history", max(0, *c.d.Spec.RevisionHistoryLimit)),
		})
	}
}

// delete deletes all sets, and then removes the finalizer. If the deployment is deleted with
// --cascade=orphan, the sets stay, and the garbage collector removes their owner references. MCM
// deletes them.
func (c *pass) delete() {
	sets := c.in.Sets
	switch {
	case !slices.Contains(c.d.Finalizers, v1alpha1.MCMFinalizerName):
		c.stop(reasonDeleted, "the deployment is being deleted, and its finalizer is removed")
		return
	case len(sets) == 0:
		c.out.Reason = reasonDeleting
		c.d.Finalizers = slices.DeleteFunc(c.d.Finalizers, func(f string) bool { return f == v1alpha1.MCMFinalizerName })
		c.editDeployment("no set is left")
		return
	case slices.Contains(c.d.Finalizers, metav1.FinalizerOrphanDependents):
		c.hold("machineset/"+sets[0].Name, reasonDeleting, fmt.Sprintf("%d sets are orphaned by this deletion; the garbage collector has not removed their owner references yet", len(sets)))
	default:
		for _, s := range sets {
			if s.DeletionTimestamp == nil {
				c.add(machinist.Delete{Object: s, Message: "the deployment is being deleted"})
				continue
			}
			c.hold("machineset/"+s.Name, reasonSetDeleting, plural(int64(s.Status.Replicas), "%d machine is left", "%d machines are left"))
			if next := reconfigured(c.d, s); next != nil {
				c.add(updateSet(s, next, []string{unlikeDeployment + configuration}))
			}
		}
	}
	c.out.Reason = reasonDeleting
	c.counters()
}

// refuse holds a deployment with a spec that cannot be used. The condition Progressing says so, and
// one Event does when the condition changes.
func (c *pass) refuse(r machinist.Reason, message string) {
	c.stop(r, message)
	c.counters()
	event := r
	if r == ReasonSelectsNothing {
		event = eventSelectsAll
	}
	cond := rollout.NewCondition(v1alpha1.MachineDeploymentProgressing, v1alpha1.ConditionFalse, string(r), message, c.now)
	if present := rollout.Condition(c.d.Status, cond.Type); present != nil && present.Status == cond.Status {
		if present.Reason == cond.Reason && present.Message == cond.Message {
			return
		}
		cond.LastTransitionTime = present.LastTransitionTime
	}
	c.out.Status.Conditions = append(rollout.Without(c.out.Status.Conditions, cond.Type), cond)
	c.out.Events = append(c.out.Events, machinist.Event{Type: eventWarning, Reason: event, Message: brief(message)})
}

// finish returns the decision of the pass.
func (c *pass) finish() Decision {
	if c.ledger != nil {
		for _, a := range c.ledger.accounts {
			c.out.Targets = append(c.out.Targets, Target{
				Name: a.set.Name, UID: a.set.UID, From: a.set.Spec.Replicas, To: a.next.Spec.Replicas, Victims: a.victims, Message: a.why,
			})
		}
	}
	c.write()
	if len(c.out.Actions) > 0 {
		c.look(c.now.Add(recheck))
	}
	for _, h := range c.out.Holds {
		c.look(h.Until)
	}
	c.out.Status = *c.out.Status.DeepCopy()
	c.out.WriteStatus = c.out.WriteStatus || !equality.Semantic.DeepEqual(c.out.Status, c.in.Deployment.Status)
	return c.out
}
