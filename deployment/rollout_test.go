// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A rollout is a world whose machines of class c1 are up, at the moment at which another
// template is wanted. It counts machines at every write.
type rollout struct {
	*deploymenttest.World
	t       testing.TB
	kept    map[string]bool // machines that a gate keeps
	updated map[string]int  // updates in place of each machine
	made    map[string]int  // machines of each class that were created
	left    []string        // machines that were deleted, in their order
	most    int             // machines at a time
	least   int             // machines that were available at a time
}

func newRollout(t testing.TB, d *v1alpha1.MachineDeployment, m deploymenttest.Model) *rollout {
	t.Helper()
	r := &rollout{t: t, kept: map[string]bool{}, updated: map[string]int{}, made: map[string]int{}}
	m.Policy.Gates = append(m.Policy.Gates, func(c deployment.Choice) (bool, machinist.Hold) {
		return !r.kept[c.Machine.Name], machinist.Hold{Reason: "Keep", Message: "it holds data"}
	})
	m.OnWrite = r.wrote
	w, err := deploymenttest.New(d, m)
	require.NoError(t, err)
	_, rest := w.Run(24 * time.Hour)
	require.True(t, rest)
	require.Equal(t, deployment.ReasonComplete, w.Decision().Reason)
	r.World, r.most, r.least = w, 0, int(d.Spec.Replicas)
	return r
}

func (r *rollout) wrote(c deploymenttest.Change) {
	if r.World == nil {
		return
	}
	if m, ok := c.After.(*v1alpha1.Machine); ok && c.Before == nil {
		r.made[m.Spec.Class.Name]++
	}
	if was, ok := c.Before.(*v1alpha1.Machine); ok {
		m, stays := c.After.(*v1alpha1.Machine)
		switch {
		case was.DeletionTimestamp == nil && (!stays || m.DeletionTimestamp != nil):
			r.left = append(r.left, c.Name)
		case stays && m.Status.CurrentStatus.Phase == v1alpha1.MachineInPlaceUpdateSuccessful && was.Status.CurrentStatus.Phase != m.Status.CurrentStatus.Phase:
			r.updated[c.Name]++
		}
	}
	available := 0
	for _, m := range r.Machines() {
		settle := time.Duration(r.Deployment().Spec.MinReadySeconds) * time.Second
		if !members.Leaving(m) && !beingUpdated(r.Node(m)) && members.AvailableFor(m, settle, r.Now()) {
			available++
		}
	}
	r.most, r.least = max(r.most, len(r.Machines())), min(r.least, available)
}

func (r *rollout) edit(change func(*v1alpha1.MachineDeployment)) {
	require.NoError(r.t, r.Edit(change))
}

func (r *rollout) class(name string) {
	r.edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = name })
}

func (r *rollout) scale(n int32) {
	r.edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = n })
	r.least = min(r.least, int(n))
}

func (r *rollout) pause(yes bool) {
	r.edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Paused = yes })
}

// of returns the machines of a class.
func (r *rollout) of(class string) []*v1alpha1.Machine {
	return slices.DeleteFunc(r.Machines(), func(m *v1alpha1.Machine) bool { return m.Spec.Class.Name != class })
}

// set returns the set of a class.
func (r *rollout) set(class string) *v1alpha1.MachineSet {
	for _, s := range r.Sets() {
		if s.Spec.Template.Spec.Class.Name == class {
			return s
		}
	}
	return &v1alpha1.MachineSet{}
}

func (r *rollout) phases(p v1alpha1.MachinePhase) int {
	n := 0
	for _, m := range r.Machines() {
		if m.Status.CurrentStatus.Phase == p {
			n++
		}
	}
	return n
}

// until steps until something holds.
func (r *rollout) until(what string, holds func() bool) {
	r.t.Helper()
	for range 500 {
		if holds() {
			return
		}
		if _, ok := r.Step(); !ok {
			break
		}
	}
	require.True(r.t, holds(), "never: %s", what)
}

// rest runs until nothing is left to do.
func (r *rollout) rest() {
	r.t.Helper()
	_, rest := r.Run(100 * 24 * time.Hour)
	require.True(r.t, rest)
}

// complete runs until the rollout is complete.
func (r *rollout) complete() {
	r.t.Helper()
	r.rest()
	require.Equal(r.t, deployment.ReasonComplete, r.Decision().Reason, r.Decision().String())
	require.Empty(r.t, unfinished(r.World))
}

// selectOne is a user who has another machine updated; it returns the name of its Node.
func (r *rollout) selectOne() string {
	for _, n := range r.Nodes() {
		if n.Labels[selKey] == "" && n.Labels[candKey] != "" {
			require.NoError(r.t, r.EditNode(n.Name, func(n *corev1.Node) { n.Labels[selKey] = "true" }))
			return n.Name
		}
	}
	return ""
}

func TestRollout_EveryBounds_AreKept(t *testing.T) {
	bounds := []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromString("25%"), intstr.FromString("300%")}
	for _, kind := range []v1alpha1.MachineDeploymentStrategyType{kindRolling, kindInPlace} {
		for _, replicas := range []int32{0, 1, 3, 10} {
			for _, surge := range bounds {
				for _, unavailable := range bounds {
					d := rollDeployment(replicas, kind, surge, unavailable)
					b, err := deployment.BoundsOf(d)
					require.NoError(t, err)
					r := newRollout(t, d, deploymenttest.Model{})
					r.class("c2")
					r.complete()
					name := fmt.Sprint(kind, replicas, surge.String(), unavailable.String())
					require.LessOrEqual(t, r.most, int(b.Desired+b.Surge), name)
					require.GreaterOrEqual(t, r.least, int(b.Desired-b.Unavailable), name)
					for _, times := range r.updated {
						require.Equal(t, 1, times, name)
					}
				}
			}
		}
	}
}

func TestRollout_SetsThatDoNothing_KeepTheSurge(t *testing.T) {
	idle := false
	r := newRollout(t, rolling(10, 1, 0), deploymenttest.Model{Idle: func(name string) bool { return idle && name != "md" }})
	idle = true
	r.class("c2")
	for range 20 {
		r.Wait(time.Minute)
		r.Step()
		asked := int32(0)
		for _, s := range r.Sets() {
			asked += s.Spec.Replicas
		}
		require.LessOrEqual(t, asked, int32(11))
	}
}

func TestRollout_NewMachinesNeverAvailable_Stops(t *testing.T) {
	d := rolling(10, 3, 2)
	d.Spec.ProgressDeadlineSeconds = new(int32(600))
	r := newRollout(t, d, deploymenttest.Model{Create: func(m *v1alpha1.Machine) error {
		if m.Spec.Class.Name == "bad" {
			return status.Error(codes.Internal, "no such image")
		}
		return nil
	}})
	r.class("bad")
	r.Run(2 * time.Hour)
	require.Equal(t, 8, r.least, "never below the minimum")
	require.Equal(t, 13, r.most)
	dec := r.Decision()
	require.Empty(t, dec.Actions)
	require.Contains(t, reasons(dec), deployment.ReasonNewUnavailable)
	require.Contains(t, reasons(dec), machinist.Reason("ProgressDeadlineExceeded"))
	require.Equal(t, machinist.Reason("Stuck"), dec.Reason)
	require.Contains(t, dec.Message, "no progress within 10m0s, seen at ")
	require.Contains(t, dec.Message, "no such image")
	r.class("good") // the bad ones do not hold the next generation
	r.complete()
	require.Equal(t, 8, r.least)
	require.Equal(t, 13, r.most)
}

func TestRollout_AllOldMachinesBroken_Ends(t *testing.T) {
	for _, bounds := range [][2]int32{{1, 0}, {0, 1}, {2, 2}} {
		r := newRollout(t, rolling(4, bounds[0], bounds[1]), deploymenttest.Model{})
		for _, m := range r.Machines() {
			require.NoError(t, r.SetPhase(m.Name, v1alpha1.MachineUnknown))
		}
		r.class("c2")
		r.complete()
		require.LessOrEqual(t, r.most, int(4+bounds[0]))
	}
}

func TestRollout_OneBrokenMachine_DeletedFirst(t *testing.T) {
	r := newRollout(t, rolling(5, 1, 0), deploymenttest.Model{})
	r.least = 4
	require.NoError(t, r.EditMachine(r.Machines()[0].Name, func(m *v1alpha1.Machine) { m.Annotations = map[string]string{prioKey: "1"} }))
	sick := r.Machines()[3].Name
	require.NoError(t, r.SetPhase(sick, v1alpha1.MachineUnknown))
	r.class("c2")
	r.complete()
	require.Equal(t, sick, r.left[0])
	require.Equal(t, 4, r.least)
}

func TestRollout_MinReadySeconds_MachinesCountWhenTheyAreOldEnough(t *testing.T) {
	d := rolling(3, 1, 0)
	d.Spec.MinReadySeconds = 300
	r := newRollout(t, d, deploymenttest.Model{})
	r.Wait(time.Hour)
	begin := r.Now()
	r.class("c2")
	r.complete()
	require.Equal(t, 3, r.least)
	require.Equal(t, 4, r.most)
	require.Greater(t, r.Now().Sub(begin), 15*time.Minute, "each new machine takes five minutes")
}

// vms returns how many VMs there are.
func vms(w *deploymenttest.World) int {
	return len(slices.DeleteFunc(w.Machines(), func(m *v1alpha1.Machine) bool { return m.Spec.ProviderID == "" }))
}

// limit is a provider with places for so many machines.
func limit(r **rollout, quota *int) func(*v1alpha1.Machine) error {
	return func(*v1alpha1.Machine) error {
		if *r != nil && vms((*r).World) >= *quota {
			return status.Error(codes.ResourceExhausted, "no more machines in this zone")
		}
		return nil
	}
}

func TestRollout_QuotaForTheReplicas_FollowsThePolicy(t *testing.T) {
	free := deployment.Policy{FreeCapacity: true, Discourage: deployment.DiscourageNone}
	for name, c := range map[string]struct {
		d      *v1alpha1.MachineDeployment
		policy deployment.Policy
		places int
		broken bool // one old machine
		least  int  // available machines
		ends   bool
	}{
		"it waits if no machine may be unavailable":       {rolling(3, 1, 0), rollPolicy, 3, false, 3, false},
		"it goes on if one may be unavailable":            {rolling(3, 1, 1), rollPolicy, 3, false, 2, true},
		"one machine makes place for one":                 {rolling(3, 1, 0), free, 3, false, 2, true},
		"one machine makes place for one, three may come": {rolling(3, 3, 0), free, 3, false, 2, true},
		"a broken machine makes place first":              {rolling(3, 1, 0), free, 3, true, 2, true},
		"a recreation waits":                              {recreating(3), free, 2, false, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			var r *rollout
			places := 1000
			r = newRollout(t, c.d, deploymenttest.Model{Policy: c.policy, Create: limit(&r, &places)})
			places = c.places
			r.class("c2")
			last := r.of("c1")[2].Name
			if c.broken {
				require.NoError(t, r.SetPhase(last, v1alpha1.MachineUnknown))
			}
			if c.ends {
				r.complete()
			} else {
				r.Run(2 * time.Hour)
				require.Contains(t, reasons(r.Decision()), machinist.Reason("NoCapacity"))
				require.Contains(t, r.Decision().String(), "no more machines in this zone")
			}
			require.Equal(t, c.least, r.least)
			require.LessOrEqual(t, r.most, int(boundsOf(c.d).Most()))
			require.True(t, !c.broken || r.left[0] == last)
		})
	}
}

func TestRollout_GateDenies_StopsItsMachineAndNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		d     *v1alpha1.MachineDeployment
		phase v1alpha1.MachinePhase // of the machine
		first deployment.Gate
	}{
		"one more":          {rolling(5, 1, 0), "", nil},
		"one fewer":         {rolling(5, 0, 1), "", nil},
		"everything":        {rolling(5, 5, 5), "", nil},
		"recreate":          {recreating(5), "", nil},
		"in place":          {updating(5, 0, 1), "", nil},
		"a broken machine":  {rolling(5, 2, 0), v1alpha1.MachineUnknown, nil},
		"another one allow": {rolling(5, 1, 0), "", denies()},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRollout(t, c.d, deploymenttest.Model{Policy: deployment.Policy{Gates: []deployment.Gate{c.first}}})
			kept := r.Machines()[1].Name
			r.kept[kept] = true
			if c.phase != "" {
				require.NoError(t, r.SetPhase(kept, c.phase))
			}
			r.class("c2")
			r.rest()
			left := r.MachinesOf(r.set("c1"))
			require.Len(t, left, 1)
			require.Equal(t, kept, left[0].Name)
			require.Contains(t, r.Decision().String(), kept+": Gate: Keep: it holds data")
			if c.d.Spec.Strategy.Type == kindRecreate {
				require.Len(t, r.Machines(), 1, "no new machine comes before the last old one is gone")
			}
			delete(r.kept, kept)
			r.edit(func(d *v1alpha1.MachineDeployment) { d.Labels = map[string]string{"asked": "again"} })
			r.complete()
		})
	}
}

func TestRollout_SelectedByLabel_ReplacesMachinesOfSelectedNodes(t *testing.T) {
	r := newRollout(t, rolling(3, 1, 0), deploymenttest.Model{Policy: deployment.Policy{Gates: []deployment.Gate{deployment.SelectedByLabel}}})
	r.class("c2")
	r.rest()
	require.Empty(t, r.left, "none is selected")
	require.Contains(t, r.Decision().String(), "NotSelected")
	second := r.of("c1")[1]
	require.NoError(t, r.EditNode(r.Node(second).Name, func(n *corev1.Node) { n.Labels = map[string]string{selKey: "true"} }))
	r.rest()
	require.Equal(t, []string{second.Name}, r.left)
}

// TestScaleDown_DuringRollout_DeletesExactlyNamed asserts that the machines that an autoscaler
// names are deleted, in any set, wherever the controller crashes.
func TestScaleDown_DuringRollout_DeletesExactlyNamed(t *testing.T) {
	for _, classes := range [][]string{{"c1"}, {"c2"}, {"c1", "c2"}} {
		for i, bounds := range [][2]int32{{0, 1}, {1, 0}, {1, 1}, {2, 0}} {
			for crash := range 10 {
				t.Run(fmt.Sprint(classes, " surge ", bounds[0], " unavailable ", bounds[1], " crash ", crash), func(t *testing.T) {
					calls, at := 0, -1
					call := func(controller, _, _, _ string) deploymenttest.Outcome {
						if controller != "md" {
							return deploymenttest.Done
						}
						if calls++; calls == at {
							return deploymenttest.CrashBefore
						}
						return deploymenttest.Done
					}
					p := deployment.Policy{Burst: i % 2}
					r := newRollout(t, rolling(6, bounds[0], bounds[1]), deploymenttest.Model{Policy: p, Call: call})
					r.class("c2")
					r.until("half is new", func() bool { return r.set("c2").Status.AvailableReplicas >= 3 })
					r.pause(true) // so that no other machine goes
					r.rest()
					var names []string
					for _, class := range classes {
						names = append(names, r.of(class)[1].Name)
					}
					r.left, calls, at = nil, 0, crash
					r.scaleDown(names...)
					r.rest()
					slices.Sort(r.left)
					slices.Sort(names)
					require.Equal(t, names, r.left)
					require.NotContains(t, r.Deployment().Annotations, namesKey)
					r.pause(false)
					r.complete()
				})
			}
		}
	}
}

// TestUpdateInPlace_ChangeInTheMiddle_Completes asserts that whatever is changed in the middle of
// an update in place, it completes.
func TestUpdateInPlace_ChangeInTheMiddle_Completes(t *testing.T) {
	for name, c := range map[string]struct {
		d        *v1alpha1.MachineDeployment
		updating int   // machines at the time of the change
		moved    int32 // the size of the new set then, at least
		change   func(r *rollout)
	}{
		"the template is taken back at once":     {updating(4, 0, 1), 1, 0, func(r *rollout) { r.class("c1") }},
		"the template is taken back later":       {updating(4, 0, 1), 1, 2, func(r *rollout) { r.class("c1") }},
		"a machine vanishes":                     {updating(4, 0, 1), 1, 0, func(r *rollout) { require.NoError(t, r.Vanish(r.of("c1")[0].Name)) }},
		"more machines are wanted":               {updating(5, 0, 1), 1, 2, func(r *rollout) { r.scale(8) }},
		"fewer machines are wanted":              {updating(5, 0, 1), 1, 2, func(r *rollout) { r.scale(3) }},
		"fewer machines are wanted than updated": {updating(6, 0, 3), 3, 0, func(r *rollout) { r.scale(2) }},
		"another strategy": {updating(4, 1, 1), 1, 2, func(r *rollout) {
			r.edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy = rolling(4, 1, 1).Spec.Strategy })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRollout(t, c.d, deploymenttest.Model{})
			r.class("c2")
			r.until(name, func() bool {
				return r.phases(v1alpha1.MachineInPlaceUpdating) == c.updating && r.set("c2").Spec.Replicas >= c.moved
			})
			require.True(t, members.ScaleUpDisabled(r.set("c1")))
			c.change(r)
			r.complete()
			r.scale(6) // also a set that could not grow
			r.complete()
		})
	}
}

func TestUpdateInPlace_SomeUpdatesFail_OthersContinue(t *testing.T) {
	t.Run("as many as may be unavailable are updated at a time", func(t *testing.T) {
		r := newRollout(t, updating(8, 0, 4), deploymenttest.Model{})
		r.class("c2")
		r.until("updates have begun", func() bool { return r.phases(v1alpha1.MachineInPlaceUpdating) == 4 })
		require.Equal(t, 4, r.least)
	})
	for name, timeout := range map[string]time.Duration{"for good": 0, "until it is replaced": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			failing := ""
			r := newRollout(t, updating(4, 0, 2), deploymenttest.Model{
				HealthTimeout: timeout,
				Update:        func(m *v1alpha1.Machine) (time.Duration, bool) { return time.Minute, m.Name != failing },
			})
			failing = r.Machines()[1].Name
			r.class("c2")
			if timeout > 0 {
				r.complete()
				require.Nil(t, r.Machine(failing))
				return
			}
			r.rest()
			require.EqualValues(t, 3, r.set("c2").Status.AvailableReplicas)
			require.Equal(t, 1, r.phases(v1alpha1.MachineInPlaceUpdateFailed))
		})
	}
}

// TestChoice_ReplaceOrUpdate_IsTheSame asserts that a rollout and an update in place ask about the
// same machines in the same order.
func TestChoice_ReplaceOrUpdate_IsTheSame(t *testing.T) {
	order := func(d *v1alpha1.MachineDeployment) []string {
		r := newRollout(t, d, deploymenttest.Model{})
		for i, priority := range map[int]string{3: "1", 1: "2"} {
			require.NoError(t, r.EditMachine(r.Machines()[i].Name, func(m *v1alpha1.Machine) { m.Annotations = map[string]string{prioKey: priority} }))
		}
		number := map[string]string{}
		for i, m := range r.Machines() {
			number[m.Name] = fmt.Sprint(i)
			r.kept[m.Name] = true
		}
		r.class("c2")
		r.rest()
		var out []string
		for _, h := range r.Decision().Holds {
			if name := strings.TrimPrefix(h.Subject, "machine/"); r.kept[name] {
				out = append(out, number[name])
			}
		}
		return out
	}
	require.Equal(t, []string{"3", "1", "0", "2", "4", "5"}, order(rolling(6, 0, 2)))
	require.Equal(t, order(rolling(6, 0, 2)), order(updating(6, 0, 2)))
}

func TestSets_LabelsRemovedRepeatedly_NotReplacedForever(t *testing.T) {
	r := newRollout(t, rolling(3, 1, 0), deploymenttest.Model{})
	for range 6 {
		for _, s := range r.Sets() {
			if len(s.OwnerReferences) > 0 {
				require.NoError(t, r.EditSet(s.Name, func(s *v1alpha1.MachineSet) { delete(s.Labels, "app") }))
			}
		}
		r.Run(time.Hour)
	}
	require.LessOrEqual(t, len(r.Machines()), 12)
	require.Equal(t, machinist.Reason("SetsReleased"), r.Decision().Holds[0].Reason)
	require.False(t, r.Decision().NextCheck.IsZero(), "no event tells of sets that are not its own")
}
