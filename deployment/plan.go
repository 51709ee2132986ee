// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// Plan returns everything that one pass over a deployment intends: for its
// deletion, for a change of its replicas, or for the replacement of its machines.
//
// However often it is asked, and whatever part of its actions is carried out:
//   - the machines of all sets, counted as the larger of asked for and seen, those
//     on their way out included, never grow beyond replicas + maxSurge by its doing;
//     a set that replaces a machine which failed or was deleted does not wait until
//     that is gone, so that there may be as many more as are on their way out;
//   - the available machines never fall under replicas - maxUnavailable by its
//     doing, except that the only active set follows the replicas at once, and that
//     [NoCapacityUseUnavailable] gives up one more if maxUnavailable is 0;
//   - there is at most one set for a template.
//
// A spec that [Validate] refuses, or whose selector is empty, changes nothing but the
// status: the Progressing condition has the reason InvalidSpec or EmptySelector, and
// one Event says so. A deployment that is being deleted is deleted nevertheless.
//
// It reads the bounds as [Normalise] tells. The sets have to choose who goes as
// [machineset.Decide] does, and by the order of the policy, as far as nobody is named.
//
// The observation is not modified. What the decision holds is a copy, except for
// the machines of [Target.Victims] and the Nodes of [WriteNode.Before], which are
// those of the observation.
func Plan(in Observation, p Policy, now time.Time) Decision {
	if in.Deployment == nil {
		return Decision{Reason: ReasonNothingSeen, Holds: []machinist.Hold{{Reason: ReasonNothingSeen, Message: "no deployment"}}}
	}
	c := &pass{in: in, policy: p, now: now, d: in.Deployment.DeepCopy()}
	c.in.Sets = c.own(in.Sets)
	c.newSet, c.old = FindSets(c.d, c.in.Sets)
	c.out.Status = c.d.Status
	refused, why := refusal(c.d)
	pending := in.Expectations.Observe(in.find, in.Complete)
	switch {
	case !in.Complete:
		c.out.Reason = ReasonViewIncomplete // that a view is whole now is no change of an object
		c.holdUntil(now.Add(p.recheck()), c.d.Name, ReasonViewIncomplete, "the lists of sets and machines are not known to be complete")
	case len(pending) > 0:
		c.expect(pending)
	case c.d.DeletionTimestamp != nil:
		c.delete()
	case refused != "":
		c.refuse(refused, why)
	case !slices.Contains(c.d.Finalizers, v1alpha1.MCMFinalizerName):
		c.out.Reason = ReasonAdopting
		c.d.Finalizers = append(c.d.Finalizers, v1alpha1.MCMFinalizerName)
		c.editDeployment("finalizer is missing")
	default:
		c.open()
		c.proceed()
	}
	return c.finish()
}

// A pass is one decision in the making.
type pass struct {
	in          Observation
	policy      Policy
	now         time.Time
	d           *v1alpha1.MachineDeployment // a copy, to be worked on
	newSet      *v1alpha1.MachineSet        // as observed
	old         []*v1alpha1.MachineSet      // as observed
	accounts    []*account                  // of all sets, oldest first
	edits       edits
	updating    map[*v1alpha1.Machine]bool // see noteUpdates
	wanted      map[types.UID]bool         // machines that somebody wants gone
	asked       map[types.UID]bool         // what the gates said about a machine
	refusals    int                        // how often they said no
	refusedMore int                        // the hold that counts most of them
	report      *machinist.Event           // for the write of the deployment
	created     *v1alpha1.MachineSet       // the new set that this pass creates
	statusToo   bool                       // the status is written, whether it differs or not
	out         Decision
}

func (c *pass) add(a Action) { c.out.Actions = append(c.out.Actions, a) }

// hold says what is not done, and why, until something changes.
func (c *pass) hold(subject string, r machinist.Reason, message string) {
	c.holdUntil(time.Time{}, subject, r, message)
}

// holdUntil says what is not done before a time.
func (c *pass) holdUntil(until time.Time, subject string, r machinist.Reason, message string) {
	c.out.Holds = append(c.out.Holds, machinist.Hold{Subject: subject, Reason: r, Message: message, Until: until})
}

// stop holds the whole deployment.
func (c *pass) stop(r machinist.Reason, message string) {
	c.out.Reason = r
	c.hold(c.d.Name, r, message)
}

// proceed decides about a valid deployment that is not being deleted.
func (c *pass) proceed() {
	c.d.Status.Conditions = withoutFuture(withoutRefusal(c.d.Status), c.now)
	c.d.Status.Conditions = withPause(c.d, c.now)
	c.counters()
	c.named()
	c.backfill()
	c.propagate()
	c.adoptRevision()
	c.allowGrowth()
	c.demand()
	c.settleMoves()
	switch {
	case c.d.Spec.Paused:
		c.stop(ReasonPaused, "roll-outs are paused, only changes of the replicas are carried out")
		c.scale()
		c.cleanUp()
		c.counters()
	case c.d.Spec.RollbackTo != nil:
		c.rollBack()
	case c.scaling():
		c.out.Reason = ReasonScaling
		c.scale()
		c.counters()
	default:
		c.rollOut()
	}
	c.beginAgain()
}

// beginAgain writes the size of a new set that may create machines again, whatever
// the pass has made of it: it must not fill up to what it wanted before.
func (c *pass) beginAgain() {
	a := c.account(c.newSet)
	if a == nil || a.doomed || !machineset.ScaleUpDisabled(a.set) || machineset.ScaleUpDisabled(a.next) {
		return
	}
	if narrow(a.spec) != a.next.Spec.Replicas {
		c.resize(a, a.spec, "it creates machines again, beginning with those that it has")
	}
}

// counters brings the status up to date, roll-outs apart.
func (c *pass) counters() {
	c.out.Status = Status(c.d, c.newSet, c.old, c.now)
}

func (c *pass) rollOut() {
	c.out.Reason = ReasonRollingOut
	switch c.d.Spec.Strategy.Type {
	case v1alpha1.RecreateMachineDeploymentStrategyType:
		c.recreate()
	case v1alpha1.InPlaceUpdateMachineDeploymentStrategyType:
		c.updateInPlace()
	case v1alpha1.RollingUpdateMachineDeploymentStrategyType:
		c.roll()
	}
	c.markNodes()
	if c.out.Reason == ReasonNameTaken {
		return
	}
	atRest := !c.changing() && c.ledger().atRest()
	status, expires := rolloutStatus(c.d, cmp.Or(c.newSet, c.created), c.old, c.now, atRest)
	c.out.Status = status
	if atRest && Complete(c.d, status) {
		c.out.Reason = ReasonComplete
		c.cleanUp()
	}
	if !c.changing() && c.out.Reason != ReasonComplete {
		c.waiting()
	}
	if cond := GetCondition(status, v1alpha1.MachineDeploymentProgressing); cond != nil && cond.Reason == v1alpha1.ProgressDeadlineExceeded {
		c.hold(c.d.Name, ReasonProgressDeadline, cond.Message)
	}
	c.look(expires)
}

// look asks for a decision at a time, if that is still to come.
func (c *pass) look(at time.Time) {
	if at.After(c.now) && (c.out.NextCheck.IsZero() || at.Before(c.out.NextCheck)) {
		c.out.NextCheck = at
	}
}

// changing says whether the pass changes a set, so that a roll-out cannot be
// complete.
func (c *pass) changing() bool {
	return len(c.out.Actions) > 0 || slices.ContainsFunc(c.accounts, (*account).edited)
}

func (c *pass) finish() Decision {
	for _, a := range c.accounts {
		c.out.Targets = append(c.out.Targets, Target{
			Name: a.set.Name, UID: a.set.UID, From: a.set.Spec.Replicas, To: a.next.Spec.Replicas, Victims: a.victims, Message: a.why,
		})
	}
	c.write()
	if len(c.out.Actions) > 0 {
		c.look(c.now.Add(c.policy.recheck()))
	}
	for _, h := range c.out.Holds {
		c.look(h.Until)
	}
	c.out.Status = *c.out.Status.DeepCopy()
	c.out.WriteStatus = c.statusToo || !equality.Semantic.DeepEqual(c.out.Status, c.in.Deployment.Status)
	return c.out
}
