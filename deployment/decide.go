// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// An Observation is what [Decide] is told. The zero Observation is of a world
// nobody has looked at.
type Observation struct {
	// Deployment to decide about.
	Deployment *v1alpha1.MachineDeployment
	// Sets that the deployment owns, in any order; claiming them is the business
	// of the caller. They have to show what earlier decisions about this
	// deployment did: read them live, or wait for the cache. Nil entries are
	// skipped.
	Sets []*v1alpha1.MachineSet
	// Complete says that Sets are all there are. Without that nothing is done.
	Complete bool
	// Machines of all sets, if they are at hand. With them a set can grow while
	// machines of it are being deleted, and the Recreate strategy also waits
	// until none of an old set is left among them. Nil entries are skipped.
	Machines []*v1alpha1.Machine
	// NameTakenBy is the set that has the name of a set which could not be
	// created for that reason, nil at all other times.
	NameTakenBy *v1alpha1.MachineSet
}

// A Policy is how to decide. The zero value is fine.
type Policy struct {
	// Recheck is when to look again after a decision with actions, which may all
	// get lost. Zero and negative: 30 seconds.
	Recheck time.Duration
	// Patience is how long a roll-out has to stand still before one machine of an
	// old set that has unavailable ones is given up to get on. Zero and negative:
	// five minutes.
	Patience time.Duration
}

const (
	defaultRecheck  = 30 * time.Second
	defaultPatience = 5 * time.Minute
)

// A Decision is what to do now. Store the status first, then carry out the
// actions in their order, then report the events.
type Decision struct {
	// Reason sums the decision up.
	Reason Reason
	// Status of the deployment, complete. It is to be stored if WriteStatus.
	Status v1alpha1.MachineDeploymentStatus
	// WriteStatus says that Status differs from what is stored.
	WriteStatus bool
	// Actions to carry out, in order.
	Actions []Action
	// Events to report in any case; those of actions come with them.
	Events []machine.Event
	// Holds say what is not done, and why.
	Holds []Hold
	// NextCheck is when to decide again even if nothing changes. It is after the
	// time of the decision; zero if only a change can help.
	NextCheck time.Time
}

// Decide returns the next step for a deployment: of its deletion, of a change
// of its replicas, or of the replacement of its machines.
//
// However often it is asked, and whatever part of its actions is carried out:
//   - the machines of all sets, counted as the larger of asked for and seen,
//     never grow beyond replicas + maxSurge by its doing;
//   - the available machines never fall under replicas - maxUnavailable by its
//     doing, even if a set that shrinks deletes available machines first. There
//     are two exceptions, where standing still for ever is the alternative: the
//     only active set follows the replicas at once; and if a roll-out has stood
//     still for [Policy.Patience], all sets have done what they were told and the
//     new set is all available, one old set with unavailable machines shrinks by
//     one;
//   - there is at most one set for a template.
//
// Negative bounds are read as zero; if both are zero one machine may be
// unavailable. In-place updates and roll-backs are not supported yet: for them
// the decision is a hold, and nothing is touched.
//
// The observation is not modified, and the decision shares no memory with it.
func Decide(in Observation, p Policy, now time.Time) Decision {
	if in.Deployment == nil {
		return Decision{Reason: ReasonNothingSeen, Holds: []Hold{{Reason: ReasonNothingSeen, Message: "no deployment"}}}
	}
	c := &pass{in: in, policy: p, now: now, d: in.Deployment.DeepCopy()}
	c.newSet, c.old = FindSets(c.d, in.Sets)
	c.out.Status = c.d.Status
	errs := Validate(c.d)
	switch {
	case !in.Complete:
		c.stop(ReasonViewIncomplete, "the list of sets is not known to be complete")
	case c.d.DeletionTimestamp != nil:
		c.delete()
	case len(errs) > 0:
		c.stop(ReasonInvalid, errs.ToAggregate().Error())
	case len(c.d.Spec.Selector.MatchLabels)+len(c.d.Spec.Selector.MatchExpressions) == 0:
		c.selectsNothing()
	case !slices.Contains(c.d.Finalizers, v1alpha1.MCMFinalizerName):
		c.out.Reason = ReasonAdopting
		c.add(AddFinalizer{Finalizer: v1alpha1.MCMFinalizerName})
	default:
		c.proceed()
	}
	return c.finish()
}

// A pass is one decision in the making.
type pass struct {
	in     Observation
	policy Policy
	now    time.Time
	d      *v1alpha1.MachineDeployment // a copy, to be worked on
	newSet *v1alpha1.MachineSet
	old    []*v1alpha1.MachineSet
	out    Decision
}

func (c *pass) add(a Action) { c.out.Actions = append(c.out.Actions, a) }

func (c *pass) hold(subject string, r Reason, message string) {
	c.out.Holds = append(c.out.Holds, Hold{Subject: subject, Reason: r, Message: message})
}

// stop holds the whole deployment.
func (c *pass) stop(r Reason, message string) {
	c.out.Reason = r
	c.hold(c.d.Name, r, message)
}

func (c *pass) selectsNothing() {
	const message = "This deployment is selecting all machines. A non-empty selector is required."
	c.stop(ReasonSelectsNothing, message)
	if c.d.Status.ObservedGeneration < c.d.Generation {
		c.out.Status.ObservedGeneration = c.d.Generation
		c.out.Events = append(c.out.Events, machine.Event{Type: eventWarning, Reason: EventSelectingAll, Message: message})
	}
}

// proceed decides about a valid deployment that is not being deleted.
func (c *pass) proceed() {
	c.d.Status.Conditions = withPause(c.d, c.now)
	c.counters()
	if c.unsupported() || c.propagate() {
		return
	}
	c.adoptRevision()
	switch {
	case c.d.Spec.Paused:
		c.stop(ReasonPaused, "roll-outs are paused, only changes of the replicas are carried out")
		c.scale()
		c.cleanUp()
		c.counters()
	case c.scaling():
		c.out.Reason = ReasonScaling
		c.scale()
		c.counters()
	default:
		c.rollOut()
	}
}

// unsupported holds what is not built yet.
func (c *pass) unsupported() bool {
	switch {
	case c.d.Spec.Strategy.Type == v1alpha1.InPlaceUpdateMachineDeploymentStrategyType:
		c.stop(ReasonNotSupportedYet, "strategy InPlaceUpdate is not supported yet; no set is created, scaled or changed")
	case c.d.Spec.RollbackTo != nil:
		c.stop(ReasonNotSupportedYet, "spec.rollbackTo is not supported yet; remove it and set the template to that of the wanted revision")
	default:
		return false
	}
	return true
}

// counters brings the status up to date, roll-outs apart.
func (c *pass) counters() {
	c.out.Status = Status(c.d, c.newSet, c.old, c.now)
}

func (c *pass) rollOut() {
	c.out.Reason = ReasonRollingOut
	if c.d.Spec.Strategy.Type == v1alpha1.RecreateMachineDeploymentStrategyType {
		c.recreate()
	} else {
		c.roll()
	}
	if c.out.Reason == ReasonNameTaken {
		return
	}
	atRest := len(c.out.Actions) == 0 && c.ledger().atRest()
	status, expires := rolloutStatus(c.d, c.newSet, c.old, c.now, atRest)
	c.out.Status = status
	if atRest && Complete(c.d, status) {
		c.out.Reason = ReasonComplete
		c.cleanUp()
	}
	if len(c.out.Actions)+len(c.out.Holds) == 0 && c.out.Reason != ReasonComplete {
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

func (c *pass) finish() Decision {
	if len(c.out.Actions) > 0 {
		recheck := c.policy.Recheck
		if recheck <= 0 {
			recheck = defaultRecheck
		}
		c.look(c.now.Add(recheck))
	}
	for _, h := range c.out.Holds {
		c.look(h.Until)
	}
	c.out.Status = *c.out.Status.DeepCopy()
	c.out.WriteStatus = !equality.Semantic.DeepEqual(c.out.Status, c.in.Deployment.Status)
	return c.out
}
