// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// NamedAnnotation is put on a machine together with the marks that say that it
// goes, by the deployment that was told so ([Removals]). Its value is the
// priority that the machine had before. It tells marks that were put there for
// such a name from those of others, so that they can be taken back when the name
// is withdrawn.
const NamedAnnotation = "machinist.dev/named-for-removal"

// namedPriority is the priority of a machine that was named.
const namedPriority = "1"

// A Removal says that somebody, usually an autoscaler, wants one machine gone.
type Removal struct {
	// Machine is its name.
	Machine string
	// At is when that was asked for.
	At time.Time
}

// String returns the removal as it is written into the annotation.
func (r Removal) String() string { return r.Machine + "~" + r.At.Format(time.RFC3339) }

// Removals reads the names of the machines that are wanted gone from the
// annotation [v1alpha1.TriggerDeletionByMCM] of a deployment, in their order and
// with repetitions: name~time, separated by commas. A name without a time counts
// as written when an autoscaler last changed the replicas, or now if that is not
// known. What cannot be read is returned as it is. A nil deployment has none.
//
// The names and the replicas that are lowered for them are one intent on one
// object, and [ScaleDown] writes them together. So it cannot happen that a name
// is left over from a change of the replicas that was never made. It takes no
// number of replicas to compare with, because the resource version of the
// deployment says the same and more.
func Removals(d *v1alpha1.MachineDeployment, now time.Time) (removals []Removal, unreadable []string) {
	if d == nil || d.Annotations[v1alpha1.TriggerDeletionByMCM] == "" {
		return nil, nil
	}
	for entry := range strings.SplitSeq(d.Annotations[v1alpha1.TriggerDeletionByMCM], ",") {
		r, ok := parseRemoval(d, entry, now)
		if !ok {
			unreadable = append(unreadable, entry)
			continue
		}
		removals = append(removals, r)
	}
	return removals, unreadable
}

func parseRemoval(d *v1alpha1.MachineDeployment, entry string, now time.Time) (Removal, bool) {
	name, text, timed := strings.Cut(entry, "~")
	if name == "" {
		return Removal{}, false
	}
	if !timed {
		var scaled bool
		if text, scaled = d.Annotations[v1alpha1.LastDeploymentReplicaChangeByScalerTime]; !scaled {
			return Removal{Machine: name, At: now.UTC().Truncate(time.Second)}, true
		}
	}
	at, err := time.Parse(time.RFC3339, text)
	return Removal{Machine: name, At: at}, err == nil
}

// ErrScaleDown is wrapped by the errors of [ScaleDown].
var ErrScaleDown = errors.New("cannot scale down")

// ScaleDown returns a copy of a deployment that wants one machine less for each
// of the names, and these machines gone. Update the deployment with it, resource
// version included: then both happen or neither does, and whoever read an older
// deployment fails with a conflict. Names that it has counted already, and
// repetitions, are left out, so that asking twice is the same as asking once, also
// while the machines are leaving (see [CountedAnnotation]). Name only machines that
// exist; those that are gone have been forgotten.
//
// A name that is empty, or that contains a comma or a tilde, and more names than
// there are replicas, are errors that wrap [ErrScaleDown], as is a nil deployment.
// The deployment is not modified.
func ScaleDown(d *v1alpha1.MachineDeployment, names []string, now time.Time) (*v1alpha1.MachineDeployment, error) {
	if d == nil {
		return nil, fmt.Errorf("%w: no deployment", ErrScaleDown)
	}
	next := d.DeepCopy()
	listed := map[string]bool{}
	removals, _ := Removals(d, now)
	for _, r := range removals {
		listed[r.Machine] = true
	}
	for _, name := range counted(d) {
		listed[name] = true
	}
	at := scaleTime(d, now)
	var fresh []string
	for _, name := range names {
		switch {
		case name == "" || strings.ContainsAny(name, ",~"):
			return nil, fmt.Errorf("%w: %q is not the name of a machine", ErrScaleDown, name)
		case !listed[name]:
			listed[name] = true
			fresh = append(fresh, name)
		}
	}
	switch {
	case len(fresh) == 0:
		return next, nil
	case len(fresh) > int(d.Spec.Replicas):
		return nil, fmt.Errorf("%w: %d machines named, %d replicas", ErrScaleDown, len(fresh), d.Spec.Replicas)
	}
	next.Spec.Replicas -= int32(len(fresh)) //nolint:gosec // not more than there are replicas
	annotate(next, CountedAnnotation, strings.Join(append(counted(d), fresh...), ","))
	for i, name := range fresh {
		fresh[i] = Removal{name, at}.String()
	}
	if before := d.Annotations[v1alpha1.TriggerDeletionByMCM]; before != "" {
		fresh = slices.Insert(fresh, 0, before)
	}
	annotate(next, v1alpha1.TriggerDeletionByMCM, strings.Join(fresh, ","))
	annotate(next, v1alpha1.LastDeploymentReplicaChangeByScalerTime, at.Format(time.RFC3339))
	return next, nil
}

// scaleTime is now, or the last change of the replicas if that is later by the
// clock of somebody else: it never goes back, as marks are compared with it.
func scaleTime(d *v1alpha1.MachineDeployment, now time.Time) time.Time {
	at := now.UTC().Truncate(time.Second)
	last, err := time.Parse(time.RFC3339, d.Annotations[v1alpha1.LastDeploymentReplicaChangeByScalerTime])
	if err == nil && last.After(at) {
		return last
	}
	return at
}

func annotate(d *v1alpha1.MachineDeployment, key, value string) {
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[key] = value
}

// named deals with the machines that were named: those of this deployment get
// their marks and are wanted gone; names that are done with are forgotten; and
// marks whose name was withdrawn are taken back.
func (c *pass) named() {
	c.wanted = map[types.UID]bool{}
	text := c.d.Annotations[v1alpha1.TriggerDeletionByMCM]
	removals, unreadable := Removals(c.d, c.now)
	for _, entry := range unreadable {
		c.hold(c.d.Name, ReasonNotRemoved, fmt.Sprintf("%q in %s is not the name of a machine and a time", entry, v1alpha1.TriggerDeletionByMCM))
	}
	asked := map[string]time.Time{}
	for _, r := range removals {
		asked[r.Machine] = r.At // the last word counts
	}
	mine := c.sortNamed(asked)
	c.forgetCounted(mine)
	var kept []string
	for _, r := range removals {
		if mine[r.Machine] {
			kept = append(kept, r.String())
		}
	}
	if left := strings.Join(kept, ","); left != text {
		annotate(c.d, v1alpha1.TriggerDeletionByMCM, left)
		if left == "" && slices.ContainsFunc(strings.Split(text, ","), shaped) {
			delete(c.d.Annotations, v1alpha1.TriggerDeletionByMCM)
		}
		c.editDeployment(fmt.Sprintf("%d of %d names of machines that are to go are left", len(kept), len(removals)+len(unreadable)))
	}
}

// shaped says whether an entry has the shape of a name, with or without a time.
// Where none has, the reference system leaves an empty annotation behind.
func shaped(entry string) bool { return strings.Count(entry, "~") <= 1 }

// sortNamed marks the machines that were named, and takes back the marks of those
// that are not any more. It returns the names that are not done with.
func (c *pass) sortNamed(asked map[string]time.Time) map[string]bool {
	kept, met := map[string]bool{}, map[string]bool{}
	for _, a := range c.accounts {
		for _, m := range a.machines {
			at, named := asked[m.Name]
			switch {
			case !named:
				c.unmarkNamed(m)
			case m.DeletionTimestamp != nil:
				met[m.Name] = true
			case machineset.Failed(m):
				met[m.Name] = true
				c.hold(m.Name, ReasonNotRemoved, "it is to go and has failed by itself; its set deals with it")
			default:
				met[m.Name], kept[m.Name] = true, true
				c.markNamed(m, at)
			}
		}
	}
	for _, m := range c.others(asked, met) {
		if len(m.OwnerReferences) == 0 {
			kept[m.Name] = true
			c.hold(m.Name, ReasonNotRemoved, "it is to go and belongs to nobody yet")
		} else {
			c.hold(m.Name, ReasonNotRemoved, "it is to go and does not belong to this deployment")
		}
	}
	return kept
}

// others returns the machines with these names that no set of the deployment
// controls, by name.
func (c *pass) others(asked map[string]time.Time, met map[string]bool) []*v1alpha1.Machine {
	if len(asked) == len(met) {
		return nil
	}
	found := map[string]*v1alpha1.Machine{}
	for _, m := range c.in.Machines {
		if m == nil || met[m.Name] || m.DeletionTimestamp != nil {
			continue
		}
		if _, named := asked[m.Name]; named {
			found[m.Name] = m
		}
	}
	var out []*v1alpha1.Machine
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[name])
	}
	return out
}

// markNamed marks a machine as one that goes first, and by demand once the autoscaler's
// change of the replicas has reached its set.
func (c *pass) markNamed(m *v1alpha1.Machine, at time.Time) {
	if m.UID != "" {
		c.wanted[m.UID] = true
	}
	_, marked := machineset.MarkedAt(m)
	if marked && m.Annotations[v1alpha1.MachinePriority] == namedPriority {
		return
	}
	next := c.editMachine(m, "somebody wants it gone")
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	if _, ok := next.Annotations[NamedAnnotation]; !ok {
		next.Annotations[NamedAnnotation] = m.Annotations[v1alpha1.MachinePriority]
	}
	next.Annotations[v1alpha1.MachinePriority] = namedPriority
	if !marked {
		next.Annotations[v1alpha1.MarkedForDeletionTime] = at.Format(time.RFC3339)
	}
}

// unmarkNamed takes back what markNamed has put on a machine that stays.
func (c *pass) unmarkNamed(m *v1alpha1.Machine) {
	before, named := m.Annotations[NamedAnnotation]
	if !named || machineset.Leaving(m) || machineset.Failed(m) {
		return
	}
	next := c.editMachine(m, "nobody wants it gone any more")
	delete(next.Annotations, NamedAnnotation)
	delete(next.Annotations, v1alpha1.MarkedForDeletionTime)
	if next.Annotations[v1alpha1.MachinePriority] != namedPriority {
		return
	}
	if before == "" {
		delete(next.Annotations, v1alpha1.MachinePriority)
		return
	}
	next.Annotations[v1alpha1.MachinePriority] = before
}
