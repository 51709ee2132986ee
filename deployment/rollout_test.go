// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
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
	"github.com/machinist-dev/machinist/machine"
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

// TestRollout_NewMachinesNeverAvailable_Stops has no more machines than allowed, no fewer available machines than the
// minimum, and says why. The next template is not held by the machines that never became available.
func TestRollout_NewMachinesNeverAvailable_Stops(t *testing.T) { checkScenes(t) }

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
		first func(deployment.Choice) (bool, machinist.Hold)
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
			r := newRollout(t, c.d, deploymenttest.Model{Policy: deployment.Policy{Gates: []func(deployment.Choice) (bool, machinist.Hold){c.first}}})
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
	r := newRollout(t, rolling(3, 1, 0), deploymenttest.Model{Policy: deployment.Policy{Gates: []func(deployment.Choice) (bool, machinist.Hold){deployment.SelectedByLabel}}})
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

// A hotLoop counts what is done for the machines of a class that does not work.
type hotLoop struct {
	w     *deploymenttest.World
	class string
	made  []time.Time // machines
	calls []time.Time // of the provider
	most  int         // machines at a time that are not leaving
}

// hotLoopJoin is how long machines take to come up. They are not healthy then.
const hotLoopJoin = 2 * time.Minute

// newHotLoop is a world in which machines of the class fail. The timeouts are those that
// machines have by default.
func newHotLoop(t *testing.T, d *v1alpha1.MachineDeployment, class string, sick time.Duration, m deploymenttest.Model) *hotLoop {
	t.Helper()
	l := &hotLoop{class: class}
	m.CreationTimeout = machine.DefaultPolicy().CreationTimeout
	create := m.Create
	m.Create = func(m *v1alpha1.Machine) error {
		if m.Spec.Class.Name != class || create == nil {
			return nil
		}
		l.calls = append(l.calls, l.w.Now())
		return create(m)
	}
	m.OnWrite = func(c deploymenttest.Change) {
		m, ok := c.After.(*v1alpha1.Machine)
		if !ok || c.Before != nil || m.Spec.Class.Name != class {
			return
		}
		l.made = append(l.made, c.At)
		before := max(0, len(l.made)-100)
		require.True(t, before == 0 || l.made[before].Before(c.At), "machines are made and deleted without time passing")
		if sick > 0 {
			l.w.At(c.At.Add(hotLoopJoin), func(w *deploymenttest.World) { _ = w.SetPhase(m.Name, v1alpha1.MachineUnknown) })
			l.w.At(c.At.Add(sick), func(w *deploymenttest.World) { _ = w.SetPhase(m.Name, v1alpha1.MachineFailed) })
		}
	}
	w, err := deploymenttest.New(d, m)
	require.NoError(t, err)
	l.w = w
	return l
}

// run lets time pass, and counts the machines.
func (l *hotLoop) run(d time.Duration) {
	end := l.w.Now().Add(d)
	for l.w.Now().Before(end) {
		next := l.w.Now().Add(time.Minute)
		l.w.Run(time.Minute)
		l.w.Wait(next.Sub(l.w.Now())) // if it has come to rest
		present := 0
		for _, m := range l.w.Machines() {
			if m.Spec.Class.Name == l.class && m.DeletionTimestamp == nil {
				present++
			}
		}
		l.most = max(l.most, present)
	}
}

// perHour returns the most of these times within any hour.
func perHour(times []time.Time) int {
	most, first := 0, 0
	for i, at := range times {
		for at.Sub(times[first]) >= time.Hour {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// hotLoopBound is how many of what comes once in a period fall into a time: one at
// its beginning, and one after each period.
func hotLoopBound(d, period time.Duration) int {
	return 1 + int((d-1)/period)
}

// TestHotLoop_FailingMachines_ReplacedSlowly asserts that machines that fail, or cannot be
// created, are replaced no faster than the policies allow. A machine is replaced when it has not
// joined within the creation timeout, or when it is Failed. Of machines that fail at once, at most
// as many are in deletion as the set has replicas or has released.
//
//	machines per hour <= places * (1 + hour/period)
//	calls per hour    <= machines per hour * (1 + CreationTimeout/Retry)
func TestHotLoop_FailingMachines_ReplacedSlowly(t *testing.T) {
	const join, leave = hotLoopJoin, 5 * time.Minute
	policy := machine.DefaultPolicy()
	for name, c := range map[string]struct {
		replicas, surge int32
		class           string // c2: in a rollout
		places          int
		period          time.Duration
		refusal         error         // of the provider
		sick            time.Duration // after which a machine is Failed, from its creation; 0: never
		free            bool
	}{
		"ten replicas, no capacity":          {10, 1, "c1", 10, policy.CreationTimeout, status.Error(codes.ResourceExhausted, "none left"), 0, false},
		"a rollout, no capacity":             {10, 2, "c2", 2 + 1, policy.CreationTimeout, status.Error(codes.ResourceExhausted, "none left"), 0, false},
		"a rollout, capacity is freed":       {10, 2, "c2", 2 + 1 + 1, policy.CreationTimeout, status.Error(codes.ResourceExhausted, "none left"), 0, true},
		"a rollout, a wrong request":         {10, 2, "c2", 2 + 1, policy.CreationTimeout, status.Error(codes.InvalidArgument, "no such image"), 0, false},
		"a rollout, sick after they came up": {10, 2, "c2", 2 + 1, join + policy.HealthTimeout, nil, join + policy.HealthTimeout, false},
		"a rollout, sick when they come up":  {10, 2, "c2", 2 + 1, join, nil, join, false},
		"one replica that fails at once":     {1, 1, "c1", 1 + 3, leave, nil, time.Second, false},
		"ten replicas that fail at once":     {10, 1, "c1", 10 + 10, leave, nil, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := deploymenttest.Model{
				Join:  func(*v1alpha1.Machine) (time.Duration, bool) { return join, true },
				Leave: func(*v1alpha1.Machine) time.Duration { return leave },
			}
			m.Policy.FreeCapacity = c.free
			if c.refusal != nil { // asked again as a machine controller does, and all its waits but the first are longer
				m.Create, m.Retry = func(*v1alpha1.Machine) error { return c.refusal }, codes.Backoff(codes.BackoffPolicy{}, codes.FailureOf(c.refusal, 1), nil)
			}
			l := newHotLoop(t, rolling(c.replicas, c.surge, 1), c.class, c.sick, m)
			l.run(time.Hour)
			if c.class != "c1" {
				require.NoError(t, l.w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = l.class }))
			}
			l.run(12 * time.Hour)
			machines := c.places * hotLoopBound(time.Hour, c.period)
			t.Logf("machines per hour: %d of %d, places: %d of %d, calls: %d", perHour(l.made), machines, l.most, c.places, perHour(l.calls))
			require.LessOrEqual(t, l.most, c.places)
			require.LessOrEqual(t, perHour(l.made), machines)
			require.Greater(t, perHour(l.made), machines/4, "machines are replaced")
			if c.refusal != nil {
				require.LessOrEqual(t, perHour(l.calls), machines*hotLoopBound(policy.CreationTimeout, m.Retry))
			}
		})
	}
}

// movesRoom is how many pods a Node has room for; movesUsed are how many there are for each
// Node in the beginning.
const movesRoom = 8

var movesUsed = []int{2, 4, 6, 8}

// A movesScheduler has pods on the Nodes of a rollout, each as large as another. As in the
// scheduler of Kubernetes, it is worth more not to have a PreferNoSchedule taint than to be
// a good fit.
type movesScheduler struct {
	*rollout
	pack bool // pods go where there is least room, and not where there is most
	rng  *rand.Rand
	pods []movesPod
}

type movesPod struct {
	node  string // empty: pending
	moves int
}

// A movesNode is one to which pods may go.
type movesNode struct {
	name   string
	taint  int  // pods should go elsewhere
	load   int  // pods
	closed bool // no pod may come
}

// nodes returns the Nodes of machines that stay, by name. The others are cordoned before
// their first pod is evicted, so that no pod goes from one of them to another.
func (s *movesScheduler) nodes() map[string]*movesNode {
	nodes := map[string]*movesNode{}
	for _, m := range s.Machines() {
		n := s.Node(m)
		if n == nil || members.Leaving(m) {
			continue
		}
		nodes[n.Name] = &movesNode{n.Name, len(n.Spec.Taints), 0, taintOf(n) == corev1.TaintEffectNoSchedule}
	}
	return nodes
}

// schedule takes pods off the Nodes whose machines leave, and puts pending pods on Nodes
// with room, in any order.
func (s *movesScheduler) schedule() {
	nodes := s.nodes()
	for i, p := range s.pods {
		if n := nodes[p.node]; n != nil {
			n.load++
		} else {
			s.pods[i].node = ""
		}
	}
	for _, i := range s.rng.Perm(len(s.pods)) {
		if s.pods[i].node != "" {
			continue
		}
		var fitting []*movesNode
		for _, n := range nodes {
			if n.load < movesRoom && !n.closed {
				fitting = append(fitting, n)
			}
		}
		if len(fitting) == 0 {
			return // all Nodes are full
		}
		best := slices.MinFunc(fitting, func(a, b *movesNode) int {
			more := cmp.Compare(a.load, b.load)
			if s.pack {
				more = -more
			}
			return cmp.Or(cmp.Compare(a.taint, b.taint), more, cmp.Compare(a.name, b.name))
		})
		best.load++
		s.pods[i] = movesPod{best.name, s.pods[i].moves + 1}
	}
}

// fill begins with pods on any Nodes: some have been there for long, when there were other
// Nodes, so the load is not even.
func (s *movesScheduler) fill(pods int) {
	var places []movesPod
	for _, n := range s.Nodes() {
		places = append(places, slices.Repeat([]movesPod{{node: n.Name}}, movesRoom)...)
	}
	s.rng.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	s.pods = places[:pods]
}

// movesJoin has machines join after one to six minutes, each after its own time.
func movesJoin(m *v1alpha1.Machine) (time.Duration, bool) {
	h := fnv.New32a()
	h.Write([]byte(m.Name))
	return time.Minute + time.Duration(h.Sum32()%300)*time.Second, true
}

// mostMoves plays a rollout once, for several schedulers that do not know of each other:
// what becomes of the machines does not depend on pods. It returns how often a pod moved
// at most.
func mostMoves(t *testing.T, d *v1alpha1.MachineDeployment, p deployment.Policy, pack bool) int {
	t.Helper()
	r := newRollout(t, d, deploymenttest.Model{Policy: p, Join: movesJoin})
	var all []*movesScheduler
	for seed, used := range movesUsed {
		s := &movesScheduler{rollout: r, pack: pack, rng: rand.New(rand.NewPCG(uint64(d.Spec.Replicas), uint64(seed)))}
		s.fill(int(d.Spec.Replicas) * used)
		all = append(all, s)
	}
	r.class("c2")
	for _, ok := r.Step(); ok; _, ok = r.Step() {
		for _, s := range all {
			s.schedule()
		}
	}
	r.complete()
	most := 0
	for _, s := range all {
		for _, pod := range s.pods {
			require.NotEmpty(t, pod.node, "a pod is pending")
			require.Positive(t, pod.moves, "a pod has not left its old Node")
			most = max(most, pod.moves)
		}
	}
	return most
}

// TestMoves_PodsOfARollout asserts that a pod moves at most twice in a rollout whose old Nodes are
// discouraged, the default. It moves twice if machines may be unavailable: the first old machines
// are deleted before there is a new Node, and their pods move to old Nodes. It does not move three
// times: later machines are replaced by available ones, whose Nodes are preferred and have as much
// room.
func TestMoves_PodsOfARollout(t *testing.T) {
	surge := [][2]string{{"1", "0"}, {"3", "0"}, {"100%", "0"}}
	bounds := append(slices.Clip(surge), [][2]string{{"0", "1"}, {"1", "1"}, {"0", "3"}, {"2", "3"}, {"25%", "50%"}}...)
	for name, c := range map[string]struct {
		discourage deployment.Discourage
		bounds     [][2]string
		most       int
	}{
		"old Nodes are discouraged":                {"", bounds, 2},
		"no machine may be unavailable":            {"", surge, 1},
		"pods may not go to old Nodes":             {deployment.DiscourageNoSchedule, bounds, 1},
		"pods bounce if Nodes are not discouraged": {deployment.DiscourageNone, bounds, -1},
	} {
		for _, pack := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", packed: ", pack), func(t *testing.T) {
				most := 0
				for _, replicas := range []int32{1, 2, 3, 5, 8} {
					for _, b := range c.bounds {
						d := rollDeployment(replicas, kindRolling, intstr.Parse(b[0]), intstr.Parse(b[1]))
						most = max(most, mostMoves(t, d, deployment.Policy{Discourage: c.discourage}, pack))
					}
				}
				require.True(t, most == c.most || c.most < 0 && most > 2, "a pod moves %d times", most)
			})
		}
	}
}
