// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/decided"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestDecide_ViewIncomplete_NothingIsDone(t *testing.T) {
	deleted := rolling(3, 1, 0)
	deleted.DeletionTimestamp = ptr.To(metav1.NewTime(rollNow))
	for _, d := range []*v1alpha1.MachineDeployment{nil, rolling(3, 1, 0), deleted, {}} {
		dec := deployment.Decide(deployment.Observation{Deployment: d}, rollPolicy, rollNow)
		require.Empty(t, dec.Actions)
		require.False(t, dec.WriteStatus)
		require.Equal(t, machinist.Reason("ViewIncomplete"), dec.Reason)
		require.Equal(t, d == nil, dec.NextCheck.IsZero(), "no change of an object tells that the view is whole")
	}
}

func TestDecide_SetOfAnotherDeployment_IsLeftAlone(t *testing.T) { checkScenes(t) }

func TestDecide_ObjectsSeenTwiceOrUnderAnotherName_CountOnce(t *testing.T) {
	s := newScenario("rolling 3 +1 -1 taint; old 3/3/3; new 1/1/1")
	s.in.Sets = append(s.in.Sets, nil, s.in.Sets[0].DeepCopy())
	require.Len(t, s.decide().Targets, 2)

	twin := s.in.Machines[0].DeepCopy()
	twin.Status.CurrentStatus.Phase = v1alpha1.MachineTerminating
	s.in.Machines = append(s.in.Machines, twin)
	last := s.decide()
	slices.Reverse(s.in.Machines)
	require.Equal(t, last.String(), s.decide().String(), "of two views of a machine the leaving one counts")

	for name := range s.in.Nodes {
		s.in.Nodes[name] = &corev1.Node{}
	}
	require.Empty(t, decided.Writes[*corev1.Node](s.decide().Actions), "a Node of another name is not known")
}

// TestExpectations_StaleView_DecidesNothingTwice asserts that a cache that lags behind decides
// nothing twice: what was written is waited for, and looked at when it takes long.
func TestExpectations_StaleView_DecidesNothingTwice(t *testing.T) {
	s := newScenario("rolling 3 +1; old 3/3/3")
	created := decided.Creates[*v1alpha1.MachineSet](s.decide().Actions)[0]
	created.UID, created.ResourceVersion = "created", "10"
	s.in.Expectations = machine.Expectations{}.Created(created, rollNow)
	at := func(after time.Duration) deployment.Decision {
		return deployment.Decide(s.in, s.policy, rollNow.Add(after))
	}
	again := at(29 * time.Second)
	require.Empty(t, again.Actions)
	require.Equal(t, machinist.Reason("WriteNotSeen"), again.Reason)
	require.Equal(t, rollNow.Add(30*time.Second), again.NextCheck)
	look := []machinist.Action{machinist.Refresh{Kind: v1alpha1.MachineSetKind, Name: created.Name}}
	require.Equal(t, look, at(30*time.Second).Actions)
	require.Equal(t, look, at(-time.Hour).Actions, "the clock has gone back since")

	released := created.DeepCopy() // before the cache showed it, as its labels were taken away
	released.ResourceVersion, released.OwnerReferences, released.Labels = "12", nil, nil
	expected := s.in.Expectations
	s.in.Expectations = expected.Looked(v1alpha1.MachineSetKind, created.Name, released, rollNow)
	require.NotEqual(t, machinist.Reason("WriteNotSeen"), at(time.Hour).Reason)
	s.in.Expectations, s.in.Sets = expected, append(s.in.Sets, created)
	require.NotEqual(t, machinist.Reason("WriteNotSeen"), at(0).Reason)
}

func TestExpectations_ManyWrites_LimitedLooks(t *testing.T) {
	s := newScenario("rolling 9 burst=4; new 9/9/9")
	for _, m := range s.in.Machines {
		m = m.DeepCopy()
		m.ResourceVersion = "99"
		s.in.Expectations = s.in.Expectations.Updated(m, rollNow.Add(-time.Hour))
	}
	require.Len(t, decided.Of[machinist.Refresh](s.decide().Actions), 4)
}

// TestExpectations_FutureTime_LooksAtOnce asserts that an object is not looked at
// again at the time of the last look, whatever clock recorded its write.
func TestExpectations_FutureTime_LooksAtOnce(t *testing.T) {
	s := newScenario("rolling 3 +1; new 3/3/3")
	written := s.in.Sets[0].DeepCopy()
	s.in.Sets[0].ResourceVersion, written.ResourceVersion = "5", "7"
	s.in.Expectations = machine.Expectations{}.Updated(written, rollNow.Add(time.Hour))
	require.Equal(t, []machinist.Action{machinist.Refresh{Kind: v1alpha1.MachineSetKind, Name: "new"}}, s.decide().Actions)
	s.in.Expectations = s.in.Expectations.Looked(v1alpha1.MachineSetKind, "new", s.in.Sets[0], rollNow)
	dec := s.decide()
	require.Empty(t, decided.Of[machinist.Refresh](dec.Actions))
	require.True(t, dec.NextCheck.IsZero() || dec.NextCheck.After(rollNow))
}

// TestDecide_Unproven_Law asserts that no set, machine or deployment is written on lists that may be
// old, and that live lists are requested instead (I-23). Nodes are corrected by the next pass, and the
// first finalizer depends on no list.
func TestDecide_Unproven_Law(t *testing.T) {
	t.Parallel()
	lists := 0
	for seed := range uint64(3000) {
		in := chance{rand.New(rand.NewPCG(seed, 9))}.observation()
		if in.Deployment == nil {
			continue
		}
		in.Proven = true
		proven := deployment.Decide(in, deployment.Policy{}, rollNow)
		in.Proven = false
		d := deployment.Decide(in, deployment.Policy{}, rollNow)
		written := slices.ContainsFunc(proven.Actions, func(a machinist.Action) bool {
			switch kind := kindOf(a); {
			case kind == "update node", strings.HasPrefix(kind, "read "):
				return false
			case kind == "update machinedeployment":
				return slices.Contains(in.Deployment.Finalizers, v1alpha1.MCMFinalizerName)
			default:
				return true
			}
		})
		if !written {
			require.Equal(t, proven, d, "seed %d", seed)
			continue
		}
		lists++
		require.Equal(t, []machinist.Action{machinist.Refresh{Kind: "MachineSet"}}, d.Actions, "seed %d: %s", seed, d)
		require.Equal(t, machinist.Reason("ViewIncomplete"), d.Reason)
		require.False(t, d.WriteStatus)
		require.NotEmpty(t, d.Holds)
		require.True(t, d.NextCheck.After(rollNow))
	}
	require.Greater(t, lists, 500)
}

func TestFreeze_RolloutAndScaleUp_AreHeld(t *testing.T) { checkScenes(t) }

func TestFreeze_BeginAndEnd_HaveConditionAndEvent(t *testing.T) { checkScenes(t) }

// A chance makes a view of anything that may be seen, and of much that may not.
type chance struct{ *rand.Rand }

func chosen[T any](c chance, list ...T) T { return list[c.IntN(len(list))] }

func (c chance) number() int32 {
	return chosen(c, int32(c.IntN(6)), int32(c.IntN(6)), int32(c.IntN(6)), int32(c.IntN(6)), -1, math.MaxInt32, math.MinInt32)
}

func (c chance) bound() *intstr.IntOrString {
	return chosen(c, nil, ptr.To(intstr.FromInt32(c.number())), ptr.To(intstr.FromInt32(1)), ptr.To(intstr.FromInt32(0)),
		ptr.To(intstr.FromString("25%")), ptr.To(intstr.FromString("-400%")), ptr.To(intstr.FromString("x")), &intstr.IntOrString{Type: 7})
}

func (c chance) text() string {
	return chosen(c, "", "1", "3", "-1", "true", "True", "now", "m-1,m-2", "m-3~2026-03-01T11:00:00Z", "2026-03-01T11:00:00Z", "99999999999999999999", "\x00")
}

func (c chance) time() metav1.Time {
	return metav1.NewTime(rollNow.Add(time.Duration(c.IntN(7200)-3600) * time.Second))
}

// some returns a few of the keys with any value.
func (c chance) some(keys ...string) map[string]string {
	out := map[string]string{}
	for _, k := range keys {
		if c.IntN(3) == 0 {
			out[k] = c.text()
		}
	}
	return chosen(c, nil, out, out, out)
}

func (c chance) deployment() *v1alpha1.MachineDeployment {
	d := rollDeployment(c.number(), chosen(c, kindRolling, kindRolling, kindRecreate, kindInPlace, "Sometimes"), intstr.FromInt32(1), intstr.FromInt32(0))
	u := v1alpha1.UpdateConfiguration{MaxSurge: c.bound(), MaxUnavailable: c.bound()}
	if c.IntN(3) > 0 && d.Spec.Strategy.RollingUpdate != nil {
		d.Spec.Strategy.RollingUpdate.UpdateConfiguration = u
	}
	if c.IntN(3) > 0 && d.Spec.Strategy.InPlaceUpdate != nil {
		d.Spec.Strategy.InPlaceUpdate.UpdateConfiguration = u
		d.Spec.Strategy.InPlaceUpdate.OrchestrationType = chosen(c, v1alpha1.OrchestrationTypeAuto, v1alpha1.OrchestrationTypeManual, "")
	}
	d.Annotations = c.some(v1alpha1.RevisionAnnotation, v1alpha1.TriggerDeletionByMCM, v1alpha1.LastDeploymentReplicaChangeByScalerTime)
	d.Labels = chosen(c, nil, nil, map[string]string{v1alpha1.FreezeLabelKey: "True"})
	d.Spec.Paused = c.IntN(5) == 0
	d.Spec.MinReadySeconds = chosen(c, 0, 0, c.number())
	if c.IntN(6) == 0 {
		d.Spec.RollbackTo = &v1alpha1.RollbackConfig{Revision: int64(c.number())}
	}
	if c.IntN(4) == 0 {
		d.Spec.RevisionHistoryLimit, d.Spec.ProgressDeadlineSeconds = ptr.To(c.number()), ptr.To(c.number())
	}
	if c.IntN(9) == 0 {
		d.DeletionTimestamp = ptr.To(c.time())
	}
	switch c.IntN(12) {
	case 0:
		d.Spec.Selector = nil
	case 1:
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{}}
	case 2:
		d.Finalizers = nil
	case 3:
		return nil
	}
	return d
}

func (c chance) set(d *v1alpha1.MachineDeployment, i int) *v1alpha1.MachineSet {
	if d == nil {
		d = rolling(1, 1, 0)
	}
	s := rollSet(d, chosen(c, "c0", "c1", "c2"), c.number(), c.number(), c.number())
	s.Name = fmt.Sprint("s", i)
	s.UID = types.UID(chosen(c, s.Name, s.Name, s.Name, s.Name, ""))
	s.CreationTimestamp = c.time()
	s.Generation = int64(c.IntN(3))
	maps.Copy(s.Annotations, c.some(v1alpha1.RevisionAnnotation, v1alpha1.DesiredReplicasAnnotation, v1alpha1.MaxReplicasAnnotation, "machinist.dev/delete-first", v1alpha1.LastDeploymentReplicaChangeByScalerTime))
	maps.Copy(s.Labels, c.some(v1alpha1.FreezeLabelKey, v1alpha1.LabelKeyMachineSetScaleUpDisabled))
	if c.IntN(9) == 0 {
		s.DeletionTimestamp = ptr.To(c.time())
	}
	if c.IntN(9) == 0 {
		s.Annotations, s.Labels, s.Spec.Selector = nil, nil, nil
	}
	return chosen(c, s, s, s, s, s, s, s, nil)
}

func (c chance) machine(s *v1alpha1.MachineSet, i int) *v1alpha1.Machine {
	m := rollMachine(s, fmt.Sprint("m-", i), chosen(c, v1alpha1.MachineRunning, v1alpha1.MachineRunning, v1alpha1.MachineRunning, v1alpha1.MachinePending,
		v1alpha1.MachineFailed, v1alpha1.MachineUnknown, v1alpha1.MachineInPlaceUpdating, ""))
	m.CreationTimestamp = c.time()
	m.UID = types.UID(chosen(c, m.Name, m.Name, m.Name, m.Name, m.Name, ""))
	m.Annotations = c.some(deployment.NamedAnnotation, v1alpha1.MachinePriority, v1alpha1.MarkedForDeletionTime, v1alpha1.PreserveMachineAnnotationKey)
	if c.IntN(6) == 0 {
		m.DeletionTimestamp = ptr.To(c.time())
	}
	if c.IntN(6) == 0 {
		m.Status.CurrentStatus.PreserveExpiryTime = ptr.To(c.time())
	}
	if c.IntN(6) == 0 {
		m.Status.LastOperation = v1alpha1.LastOperation{Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed, ErrorCode: chosen(c, "ResourceExhausted", "?")}
	}
	if c.IntN(9) == 0 {
		m.Labels, m.OwnerReferences = nil, nil
	}
	return chosen(c, m, m, m, m, m, m, m, nil)
}

func (c chance) observation() deployment.Observation {
	in := deployment.Observation{Deployment: c.deployment(), Complete: c.IntN(9) > 0, Proven: true, NoCluster: c.IntN(9) == 0}
	for i := range c.IntN(5) {
		in.Sets = append(in.Sets, c.set(in.Deployment, i))
	}
	if c.IntN(5) > 0 {
		in.Nodes = map[string]*corev1.Node{}
	}
	for _, s := range in.Sets {
		for range c.IntN(7) {
			if s == nil {
				continue
			}
			m := c.machine(s, len(in.Machines))
			in.Machines = append(in.Machines, m)
			if m != nil && m.Labels != nil && in.Nodes != nil && c.IntN(3) > 0 {
				n := &corev1.Node{}
				n.Name = m.Labels[v1alpha1.NodeLabelKey]
				n.Labels = c.some(v1alpha1.LabelKeyNodeCandidateForUpdate, v1alpha1.LabelKeyNodeSelectedForUpdate, v1alpha1.LabelKeyNodeUpdateResult)
				n.Annotations = map[string]string{v1alpha1.MachineUIDAnnotation: chosen(c, string(m.UID), string(m.UID), "other")}
				in.Nodes[n.Name] = chosen(c, n, n, n, nil)
			}
		}
	}
	if len(in.Sets) > 0 && c.IntN(5) == 0 {
		in.Sets = append(in.Sets, in.Sets[0]) // seen twice
	}
	if len(in.Machines) > 0 && c.IntN(5) == 0 {
		in.Machines = append(in.Machines, in.Machines[0])
	}
	c.Shuffle(len(in.Machines), func(i, j int) { in.Machines[i], in.Machines[j] = in.Machines[j], in.Machines[i] })
	return in
}

func (c chance) policy() deployment.Policy {
	p := deployment.Policy{
		Unseen: time.Duration(c.number()), Burst: int(c.number()),
		FreeCapacity:   c.IntN(3) == 0,
		Discourage:     chosen(c, "", deployment.DiscourageNone, deployment.DiscouragePreferNoSchedule, deployment.DiscourageNoSchedule, "?"),
		HoldAutoscaler: c.IntN(2) == 0,
		Order:          chosen(c, nil, nil, machineset.Order{}, machineset.Order{{}}, machineset.Order{{Rank: func(m *v1alpha1.Machine) int64 { return -m.CreationTimestamp.Unix() }}}),
	}
	if c.IntN(4) == 0 {
		p.Gates = []func(deployment.Choice) (bool, machinist.Hold){nil, denies("m-1", "m-4")}
	}
	if c.IntN(6) == 0 {
		p.Gates = append(p.Gates, deployment.SelectedByLabel)
	}
	return p
}

func copyOf(in deployment.Observation) deployment.Observation {
	out := in
	out.Deployment = in.Deployment.DeepCopy()
	out.Sets, out.Machines, out.Nodes = copies(in.Sets), copies(in.Machines), nil
	if in.Nodes != nil {
		out.Nodes = map[string]*corev1.Node{}
	}
	for name, n := range in.Nodes {
		out.Nodes[name] = n.DeepCopy()
	}
	return out
}

func copies[T interface{ DeepCopy() T }](list []T) (out []T) {
	for _, o := range list {
		out = append(out, o.DeepCopy())
	}
	return out
}

// same tells how two values differ. To tell is slow, and there is mostly nothing to be told.
func same(t require.TestingT, want, got any, message string) {
	if !reflect.DeepEqual(want, got) {
		require.Empty(t, cmp.Diff(want, got), message)
	}
}

// checkPlan holds one plan against what has to be true of each.
func checkPlan(t require.TestingT, in deployment.Observation, p deployment.Policy) deployment.Decision {
	before := copyOf(in)
	dec := deployment.Decide(in, p, rollNow)
	same(t, before, in, "the observation was modified")
	slices.Reverse(in.Sets)
	slices.Reverse(in.Machines)
	same(t, dec, deployment.Decide(in, p, rollNow), "the order of the view matters")
	require.Empty(t, brokenBy(before, dec, rollNow), "%s", dec)
	checkTargets(t, before, dec)
	checkWrites(t, dec)
	return dec
}

// checkTargets: every set has one or none has, and the bounds hold.
func checkTargets(t require.TestingT, in deployment.Observation, dec deployment.Decision) {
	if len(dec.Targets) == 0 {
		require.Empty(t, decided.Writes[*v1alpha1.MachineSet](dec.Actions))
		return
	}
	bounds, err := deployment.BoundsOf(in.Deployment)
	require.NoError(t, err)
	if in.Deployment.Spec.Strategy.Type == kindInPlace {
		bounds.Surge = math.MaxInt32 // it is resolved at the creation of a set only
	}
	var was, will int64
	grown := func(s *v1alpha1.MachineSet, size int32) int32 {
		if members.ScaleUpDisabled(s) {
			return 0
		}
		return size
	}
	met := map[string]bool{} // sets, of which one may be seen twice
	for _, s := range in.Sets {
		if s == nil || met[s.Name] {
			continue
		}
		met[s.Name] = true
		i := slices.IndexFunc(dec.Targets, func(x deployment.Target) bool { return x.UID == s.UID && x.Name == s.Name })
		require.GreaterOrEqual(t, i, 0)
		target := dec.Targets[i]
		seen, twice := int32(0), map[string]bool{}
		for _, m := range in.Machines {
			if m != nil && metav1.IsControlledBy(m, s) && !twice[m.Name] {
				seen++
				twice[m.Name] = true
			}
		}
		was += int64(max(seen, grown(s, s.Spec.Replicas), s.Status.Replicas))
		will += int64(max(seen, grown(decided.After(s, dec.Actions), target.To), s.Status.Replicas))
		for _, v := range target.Victims {
			require.True(t, metav1.IsControlledBy(v.Machine, s))
			require.False(t, members.Leaving(v.Machine))
		}
	}
	for _, s := range decided.Creates[*v1alpha1.MachineSet](dec.Actions) {
		require.GreaterOrEqual(t, s.Spec.Replicas, int32(0))
		will += int64(s.Spec.Replicas)
	}
	require.LessOrEqual(t, will, max(was, bounds.Most()))
}

// checkWrites: each action has a text, and the machines that go for a cut are named.
func checkWrites(t require.TestingT, dec deployment.Decision) {
	for _, a := range dec.Actions {
		require.NotEmpty(t, a.String())
	}
	for _, u := range decided.Of[machinist.Update](dec.Actions) {
		checkUpdate(t, u)
	}
	for _, s := range decided.Writes[*v1alpha1.MachineSet](dec.Actions) {
		target := dec.Targets[slices.IndexFunc(dec.Targets, func(x deployment.Target) bool { return x.Name == s.Name })]
		if 0 < target.To && target.To < target.From {
			checkNames(t, dec, target, s)
		}
	}
}

// checkUpdate: an update has both preconditions, and does not write the observed object.
func checkUpdate(t require.TestingT, u machinist.Update) {
	before, _ := u.Before.(metav1.Object)
	next, _ := u.Object.(metav1.Object)
	require.NotNil(t, before)
	require.NotSame(t, before, next)
	require.Equal(t, []any{before.GetName(), before.GetUID(), before.GetResourceVersion()}, []any{next.GetName(), next.GetUID(), next.GetResourceVersion()})
	require.True(t, u.Unchanged)
	require.Empty(t, u.Subresource)
	require.NotEmpty(t, u.Changes)
}

// checkNames: the machines that go for a cut are named in it, unless the set knows them already.
func checkNames(t require.TestingT, dec deployment.Decision, target deployment.Target, s *v1alpha1.MachineSet) {
	for _, v := range target.Victims {
		m := decided.After(v.Machine, dec.Actions)
		require.True(t, slices.Contains(members.Victims(s), m.Name) || members.NamedByAutoscaler(s, m), "%s is not named: %s", m.Name, target)
	}
}

func TestDecide_AnyObservation_KeepsTheLaws(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(2000) {
		c := chance{rand.New(rand.NewPCG(seed, 5))}
		in, p := c.observation(), c.policy()
		dec := checkPlan(seeded{t, seed}, in, p)
		objects := len(decided.Writes[*corev1.Node](dec.Actions)) + len(decided.Writes[*v1alpha1.Machine](dec.Actions))
		for _, kind := range kindsOf(dec) {
			kinds[kind]++
		}
		require.True(t, p.Burst <= 0 || objects <= p.Burst, "seed %d: %s", seed, dec)
	}
	for _, kind := range []string{"update machinedeployment", "update node", "update machine", "create machineset", "update machineset", "delete machineset"} {
		require.Positive(t, kinds[kind], "no seed has: %s", kind)
	}
}

// TestDecide_AnyRecordedTime_NextCheckIsLater has a clock that differs from those that recorded the
// times of an observation.
func TestDecide_AnyRecordedTime_NextCheckIsLater(t *testing.T) {
	for seed := range uint64(500) {
		c := chance{rand.New(rand.NewPCG(seed, 41))}
		in, p := c.observation(), c.policy()
		for _, ahead := range []time.Duration{-24 * time.Hour, -30 * time.Minute, -3 * time.Second, 3 * time.Second, 30 * time.Minute, 173 * 365 * 24 * time.Hour} {
			clock := rollNow.Add(ahead)
			d := deployment.Decide(in, p, clock)
			require.True(t, d.NextCheck.After(clock) || d.NextCheck.IsZero() && len(d.Actions) == 0, "seed %d at %s: %s", seed, clock, d)
		}
	}
}

// seeded tells the seed with a failure.
type seeded struct {
	*testing.T
	seed uint64
}

func (s seeded) Errorf(format string, args ...any) {
	s.T.Helper()
	s.T.Errorf("seed %d: "+format, append([]any{s.seed}, args...)...)
}

func FuzzPlan(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, int32(3), "25%", uint8(seed))
	}
	f.Add(uint64(1), int32(math.MaxInt32), "2147483647%", uint8(255))
	f.Fuzz(func(t *testing.T, seed uint64, replicas int32, bound string, flags uint8) {
		c := chance{rand.New(rand.NewPCG(seed, uint64(flags)))}
		in := c.observation()
		if d := in.Deployment; d != nil && flags&1 != 0 {
			d.Spec.Replicas = replicas
			if d.Spec.Strategy.RollingUpdate != nil {
				d.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromString(bound))
			}
		}
		for _, s := range in.Sets {
			if s != nil && flags&2 != 0 {
				s.Annotations = map[string]string{"machinist.dev/delete-first": bound, v1alpha1.MaxReplicasAnnotation: bound}
			}
		}
		checkPlan(t, in, c.policy())
	})
}

// large is a deployment in the middle of a rollout, with as many sets that share so many
// machines. Of each old set a tenth is not healthy.
func large(d *v1alpha1.MachineDeployment, sets int) deployment.Observation {
	d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "2"}
	in := deployment.Observation{Deployment: d, Complete: true, Proven: true, Nodes: map[string]*corev1.Node{}}
	for i := range sets {
		each := d.Spec.Replicas / int32(sets)
		s := rollSet(d, fmt.Sprint("c", i+1), each, each, each-each/10)
		s.CreationTimestamp = metav1.NewTime(rollNow.Add(time.Duration(i) * time.Minute))
		in.Sets = append(in.Sets, s)
		for j := range each {
			phase := v1alpha1.MachineRunning
			if j%10 == 0 && sets > 1 {
				phase = v1alpha1.MachineUnknown
			}
			m := rollMachine(s, fmt.Sprintf("%s-%05d", s.Name, (j*7919)%each), phase)
			node := nodeOf(m)
			node.Labels[candKey] = "true"
			in.Machines, in.Nodes[node.Name] = append(in.Machines, m), node
		}
	}
	return in
}

// BenchmarkPlan measures a pass that finds nothing to do, which is the common one.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int32{500, 5_000, 50_000} {
		held := deployment.Policy{HoldAutoscaler: true}
		for name, c := range map[string]struct {
			in     deployment.Observation
			policy deployment.Policy
		}{
			"rolling":  {large(rolling(n, n/10, n/20), 10), rollPolicy},
			"at rest":  {large(rolling(n/10, n/10, n/20), 1), rollPolicy},
			"in place": {large(rollDeployment(n, kindInPlace, intstr.FromInt32(0), intstr.FromString("10%")), 2), rollPolicy},
			"marks":    {large(rolling(n, n/10, n/20), 2), held},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					deployment.Decide(c.in, c.policy, rollNow)
				}
			})
		}
	}
}

// TestDecide_CostOfAPass_IsLinearInMachines asserts that the machines of all sets are sorted out
// once, however many sets there are.
func TestDecide_CostOfAPass_IsLinearInMachines(t *testing.T) {
	allocations := func(machines int32, sets int) float64 {
		in := large(rolling(machines, 1, 0), sets)
		return testing.AllocsPerRun(3, func() { deployment.Decide(in, deployment.Policy{}, rollNow) })
	}
	few, many := allocations(100, 10), allocations(1000, 10)
	require.Less(t, many, 2*few+1000)
	require.Less(t, allocations(1000, 100), 8*many, "ten times as many sets, and the same machines")
}
