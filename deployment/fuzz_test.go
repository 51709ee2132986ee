// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// A chance makes a view of anything that may be seen, and of much that may not.
type chance struct{ *rand.Rand }

func chosen[T any](c chance, list ...T) T { return list[c.IntN(len(list))] }

func (c chance) number() int32 {
	return chosen(c, int32(c.IntN(6)), int32(c.IntN(6)), int32(c.IntN(6)), int32(c.IntN(6)), -1, math.MaxInt32, math.MinInt32)
}

func (c chance) bound() *intstr.IntOrString {
	return chosen(c, nil, new(intstr.FromInt32(c.number())), new(intstr.FromInt32(1)), new(intstr.FromInt32(0)),
		new(intstr.FromString("25%")), new(intstr.FromString("-400%")), new(intstr.FromString("x")), &intstr.IntOrString{Type: 7})
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
		d.Spec.RevisionHistoryLimit, d.Spec.ProgressDeadlineSeconds = new(c.number()), new(c.number())
	}
	if c.IntN(9) == 0 {
		d.DeletionTimestamp = new(c.time())
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
		s.DeletionTimestamp = new(c.time())
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
		m.DeletionTimestamp = new(c.time())
	}
	if c.IntN(6) == 0 {
		m.Status.CurrentStatus.PreserveExpiryTime = new(c.time())
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
		p.Gates = []deployment.Gate{nil, denies("m-1", "m-4")}
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
		require.Empty(t, writes[*v1alpha1.MachineSet](dec))
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
		will += int64(max(seen, grown(after(s, dec.Actions), target.To), s.Status.Replicas))
		for _, v := range target.Victims {
			require.True(t, metav1.IsControlledBy(v.Machine, s))
			require.False(t, members.Leaving(v.Machine))
		}
	}
	for _, s := range creates(dec) {
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
	for _, u := range actions[machinist.Update](dec) {
		checkUpdate(t, u)
	}
	for _, s := range writes[*v1alpha1.MachineSet](dec) {
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
		m := after(v.Machine, dec.Actions)
		require.True(t, slices.Contains(members.Victims(s), m.Name) || members.NamedByAutoscaler(s, m), "%s is not named: %s", m.Name, target)
	}
}

func TestDecide_AnyObservation_KeepsTheLaws(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(2000) {
		c := chance{rand.New(rand.NewPCG(seed, 5))}
		in, p := c.observation(), c.policy()
		dec := checkPlan(seeded{t, seed}, in, p)
		objects := len(writes[*corev1.Node](dec)) + len(writes[*v1alpha1.Machine](dec))
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
				d.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromString(bound))
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
