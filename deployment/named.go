// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

const (
	// countedAnnotation on a deployment has the names for which [ScaleDown] decreased the replicas,
	// separated by commas, while their machines exist. As in MCM, a name is removed from
	// v1alpha1.TriggerDeletionByMCM when its machine begins to terminate, which may take hours.
	// ScaleDown with the same name must not decrease the replicas again in the meantime.
	countedAnnotation = "machinist.dev/scaled-down-for"
	// namedAnnotation on a machine says that the deployment named it for deletion. Its value is the
	// former priority of the machine, which is restored if the name is withdrawn.
	namedAnnotation = "machinist.dev/named-for-removal"
	// namedPriority is the priority of a named machine.
	namedPriority = "1"
)

// removal is a machine that a user or an autoscaler named for deletion.
type removal struct {
	machine string    // name
	at      time.Time // of the request
}

func (r removal) String() string { return r.machine + "~" + r.at.Format(time.RFC3339) }

// removals returns the machines in the annotation [v1alpha1.TriggerDeletionByMCM] of a deployment,
// in order and with repetitions, and the entries that cannot be parsed. The format is name~time,
// separated by commas. The default time is that of the last change of the replicas by an
// autoscaler, or else now.
func removals(d *v1alpha1.MachineDeployment, now time.Time) (list []removal, unreadable []string) {
	text := d.Annotations[v1alpha1.TriggerDeletionByMCM]
	if text == "" {
		return nil, nil
	}
	for entry := range strings.SplitSeq(text, ",") {
		if r, ok := parseRemoval(d, entry, now); ok {
			list = append(list, r)
		} else {
			unreadable = append(unreadable, entry)
		}
	}
	return list, unreadable
}

func parseRemoval(d *v1alpha1.MachineDeployment, entry string, now time.Time) (removal, bool) {
	name, text, timed := strings.Cut(entry, "~")
	if name == "" {
		return removal{}, false
	}
	if !timed {
		var scaled bool
		if text, scaled = d.Annotations[v1alpha1.LastDeploymentReplicaChangeByScalerTime]; !scaled {
			return removal{name, now.UTC().Truncate(time.Second)}, true
		}
	}
	at, err := time.Parse(time.RFC3339, text)
	return removal{name, at}, err == nil
}

// errScaleDown is wrapped by the errors of [ScaleDown].
var errScaleDown = errors.New("cannot scale down")

// ScaleDown returns a copy of a deployment with one replica less for each name, and with these
// machines named for deletion. Update the deployment with the copy: both changes happen in one
// request, and a conflict means that the deployment has changed. Names that count already are
// skipped, so that the call can be repeated, also while machines are terminating. Name only
// machines that exist.
//
// It returns an error for a nil deployment, for a name that is empty or contains a comma or a
// tilde, and for more names than replicas.
func ScaleDown(d *v1alpha1.MachineDeployment, names []string, now time.Time) (*v1alpha1.MachineDeployment, error) {
	if d == nil {
		return nil, fmt.Errorf("%w: no deployment", errScaleDown)
	}
	next, listed := d.DeepCopy(), map[string]bool{}
	already, _ := removals(d, now)
	for _, r := range already {
		listed[r.machine] = true
	}
	for _, name := range counted(d) {
		listed[name] = true
	}
	at := scaleTime(d, now)
	var fresh, entries []string
	if before := d.Annotations[v1alpha1.TriggerDeletionByMCM]; before != "" {
		entries = append(entries, before)
	}
	for _, name := range names {
		switch {
		case name == "" || strings.ContainsAny(name, ",~"):
			return nil, fmt.Errorf("%w: %q is not the name of a machine", errScaleDown, name)
		case !listed[name]:
			listed[name] = true
			fresh, entries = append(fresh, name), append(entries, removal{name, at}.String())
		}
	}
	switch {
	case len(fresh) == 0:
		return next, nil
	case len(fresh) > int(d.Spec.Replicas):
		return nil, fmt.Errorf("%w: %d machines named, %d replicas", errScaleDown, len(fresh), d.Spec.Replicas)
	}
	next.Spec.Replicas -= int32(len(fresh)) //nolint:gosec // not more than there are replicas
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, countedAnnotation, strings.Join(append(counted(d), fresh...), ","))
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, v1alpha1.TriggerDeletionByMCM, strings.Join(entries, ","))
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, v1alpha1.LastDeploymentReplicaChangeByScalerTime, at.Format(time.RFC3339))
	return next, nil
}

// scaleTime returns now, or the recorded time of the last change of the replicas if that is later.
// The time never decreases, because marks are compared with it.
func scaleTime(d *v1alpha1.MachineDeployment, now time.Time) time.Time {
	at := now.UTC().Truncate(time.Second)
	last, err := time.Parse(time.RFC3339, d.Annotations[v1alpha1.LastDeploymentReplicaChangeByScalerTime])
	if err == nil && last.After(at) {
		return last
	}
	return at
}

// counted returns the names in the [countedAnnotation].
func counted(d *v1alpha1.MachineDeployment) []string {
	return slices.DeleteFunc(strings.Split(d.Annotations[countedAnnotation], ","), func(name string) bool { return name == "" })
}

// markNamed marks the machines of this deployment that were named for deletion, removes finished
// names, and removes the marks of withdrawn names.
func (c *pass) markNamed() {
	c.ledger.named = map[types.UID]bool{}
	text := c.d.Annotations[v1alpha1.TriggerDeletionByMCM]
	list, unreadable := removals(c.d, c.now)
	for _, entry := range unreadable {
		c.hold("machinedeployment/"+c.d.Name, reasonNotRemoved, fmt.Sprintf("%q in %s is not the name of a machine and a time", entry, v1alpha1.TriggerDeletionByMCM))
	}
	asked := map[string]time.Time{}
	for _, r := range list {
		asked[r.machine] = r.at // the last entry counts
	}
	unfinished := c.sortNamed(asked)
	c.forgetCounted(unfinished)
	var kept []string
	for _, r := range list {
		if unfinished[r.machine] {
			kept = append(kept, r.String())
		}
	}
	if left := strings.Join(kept, ","); left != text {
		metav1.SetMetaDataAnnotation(&c.d.ObjectMeta, v1alpha1.TriggerDeletionByMCM, left)
		// If no entry has the form of a name, MCM leaves an empty annotation.
		if left == "" && slices.ContainsFunc(strings.Split(text, ","), func(e string) bool { return strings.Count(e, "~") <= 1 }) {
			delete(c.d.Annotations, v1alpha1.TriggerDeletionByMCM)
		}
		c.editDeployment(fmt.Sprintf("%d of %d machines named for deletion are left", len(kept), len(list)+len(unreadable)))
	}
}

// sortNamed marks the named machines, and removes the marks of all others. It returns the
// unfinished names.
func (c *pass) sortNamed(asked map[string]time.Time) map[string]bool {
	kept, met := map[string]bool{}, map[string]bool{}
	for _, a := range c.ledger.accounts {
		for _, m := range a.machines {
			at, named := asked[m.Name]
			if !named {
				c.unmarkMachine(m)
				continue
			}
			met[m.Name] = true
			switch {
			case m.DeletionTimestamp != nil:
			case members.Failed(m):
				c.hold("machine/"+m.Name, reasonNotRemoved, "it is named for deletion and has failed; its set replaces it")
			default:
				kept[m.Name] = true
				c.markMachine(m, at)
			}
		}
	}
	if len(asked) == len(met) {
		return kept
	}
	others := slices.DeleteFunc(slices.Clone(c.in.Machines), func(m *v1alpha1.Machine) bool {
		if m == nil || met[m.Name] || m.DeletionTimestamp != nil {
			return true
		}
		_, named := asked[m.Name]
		return !named
	})
	for _, m := range members.Distinct(others) {
		kept[m.Name] = kept[m.Name] || len(m.OwnerReferences) == 0
		c.hold("machine/"+m.Name, reasonNotRemoved, "it is named for deletion, but this deployment does not own it")
	}
	return kept
}

// markMachine gives a machine the priority for deletion and the time of its mark. The set deletes
// it first, and in any case once the set has the time of the change of the replicas.
func (c *pass) markMachine(m *v1alpha1.Machine, at time.Time) {
	if m.UID != "" {
		c.ledger.named[m.UID] = true
	}
	_, timed := members.MarkedAt(m)
	if timed && m.Annotations[v1alpha1.MachinePriority] == namedPriority {
		return
	}
	next := c.editMachine(m, "the deployment names it for deletion")
	if !metav1.HasAnnotation(m.ObjectMeta, namedAnnotation) {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, namedAnnotation, m.Annotations[v1alpha1.MachinePriority])
	}
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, v1alpha1.MachinePriority, namedPriority)
	if !timed {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, v1alpha1.MarkedForDeletionTime, at.Format(time.RFC3339))
	}
}

// unmarkMachine removes the marks of markMachine from a machine that is no longer named.
func (c *pass) unmarkMachine(m *v1alpha1.Machine) {
	before, named := m.Annotations[namedAnnotation]
	if !named || members.Leaving(m) || members.Failed(m) {
		return
	}
	next := c.editMachine(m, "the deployment no longer names it for deletion")
	delete(next.Annotations, namedAnnotation)
	delete(next.Annotations, v1alpha1.MarkedForDeletionTime)
	switch {
	case next.Annotations[v1alpha1.MachinePriority] != namedPriority:
	case before == "":
		delete(next.Annotations, v1alpha1.MachinePriority)
	default:
		next.Annotations[v1alpha1.MachinePriority] = before
	}
}

// forgetCounted removes the counted names whose machines are gone, and those that were withdrawn,
// so that they count when they are named again.
func (c *pass) forgetCounted(unfinished map[string]bool) {
	names := counted(c.d)
	if len(names) == 0 {
		return
	}
	going := map[string]bool{}
	for _, m := range c.in.Machines {
		if m != nil && (unfinished[m.Name] || members.Leaving(m) || members.Failed(m)) {
			going[m.Name] = true
		}
	}
	left := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !going[name] })
	if len(left) == len(names) {
		return
	}
	delete(c.d.Annotations, countedAnnotation)
	if len(left) > 0 {
		metav1.SetMetaDataAnnotation(&c.d.ObjectMeta, countedAnnotation, strings.Join(left, ","))
	}
	c.editDeployment("machines named for deletion are gone")
}

// countDemand moves machines to the outgoing ones that their sets will delete because of the writes
// of this pass: marks on machines, and on a set the time of the last change of the replicas.
func (c *pass) countDemand() {
	const key = v1alpha1.LastDeploymentReplicaChangeByScalerTime
	for _, a := range c.ledger.accounts {
		if len(c.ledger.named) == 0 && a.next.Annotations[key] == a.set.Annotations[key] {
			continue
		}
		demanded := func(m *v1alpha1.Machine) bool { return members.NamedByAutoscaler(a.next, c.edited(m)) }
		stay := make([]*v1alpha1.Machine, 0, len(a.stay))
		for _, m := range a.stay {
			if !demanded(m) {
				stay = append(stay, m)
				continue
			}
			a.outgoing = append(a.outgoing, machineset.Victim{Machine: m, By: members.ByDemand})
			if a.isAvailable(m) {
				a.available--
			}
		}
		a.stay, a.victims = stay, a.outgoing
		a.exposed = slices.DeleteFunc(a.exposed, demanded) // they are deleted in any case
	}
}

// demanded returns how many machines the set deletes for an autoscaler at any size, while its size
// does not account for them yet.
func (a *account) demanded() int64 {
	n := count(a.outgoing, func(v machineset.Victim) bool { return v.By == members.ByDemand })
	return min(n, max(0, a.spec-a.unseen-int64(len(a.stay))))
}

// namedToStay returns how many machines of a set were named, and are deleted only if the set
// becomes smaller.
func (l *ledger) namedToStay(a *account) int64 {
	return count(a.stay, func(m *v1alpha1.Machine) bool { return l.named[m.UID] })
}
