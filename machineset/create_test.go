// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// TestDecide_ShortLivedMachines_BoundedCreations asserts that a set of ten machines has at most
// twenty, including those that failed early.
func TestDecide_ShortLivedMachines_BoundedCreations(t *testing.T) {
	checkScenes(t, "testdata/scenes/short-lived.txt")
}

// failingSet plays a set of eight whose machines all fail before they join, and are gone
// the moment they are deleted. The API server's clock is ahead of the set's.
func failingSet(t *testing.T, ahead, lasts time.Duration) (created, passes int) {
	t.Helper()
	var expected machine.Expectations
	var unjoined machineset.NeverJoined
	machines, end, at := map[string]*v1alpha1.Machine{}, now.Add(lasts), now
	for at.Before(end) {
		in := machineset.Observation{Set: newSet(8), Complete: true, Proven: true}
		for _, m := range machines {
			in.Machines = append(in.Machines, m)
		}
		expected = expected.Observe(named(in.Machines), true)
		in.Expectations, in.NeverJoined = expected, unjoined
		d := machineset.Decide(in, machineset.Policy{}, at)
		require.True(t, d.NextCheck.After(at), d.String())
		passes++
		for _, a := range d.Actions {
			switch a := a.(type) {
			case machinist.Create:
				for range a.Count {
					created++
					m := newMachine(fmt.Sprintf("m%04d", created), v1alpha1.MachineFailed)
					m.UID, m.CreationTimestamp = types.UID(m.Name), metav1.NewTime(at.Add(ahead))
					m.Status.LastOperation = v1alpha1.LastOperation{Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed}
					expected = expected.Creating(v1alpha1.MachineKind, m.Name, at)
					machines[m.Name] = m
				}
			case machinist.Delete:
				m := a.Object.(*v1alpha1.Machine)
				expected, unjoined = expected.Deleting(v1alpha1.MachineKind, m.Name, m.UID, at), unjoined.Deleting(a, at)
				delete(machines, m.Name)
			}
		}
		if len(d.Actions) > 0 {
			at = at.Add(100 * time.Millisecond) // its own writes wake it
		} else {
			at = d.NextCheck
		}
	}
	return created, passes
}

func TestDecide_MachinesNeverJoin_BoundedCreations(t *testing.T) {
	for _, ahead := range []time.Duration{0, 3 * time.Second, 30 * time.Minute, -3 * time.Second, -30 * time.Minute} {
		t.Run(fmt.Sprintf("API server %s ahead", ahead), func(t *testing.T) {
			created, passes := failingSet(t, ahead, time.Minute)
			require.Equal(t, 16, created, "as many as are wanted, and as many again")
			require.Less(t, passes, 20)
			created, passes = failingSet(t, ahead, time.Hour+time.Minute)
			require.LessOrEqual(t, created, 16*7)
			require.Greater(t, created, 16*5, "but it goes on")
			require.Less(t, passes, 200)
		})
	}
}

func TestNeverJoined_Deleting_CopyWithoutOldEntries(t *testing.T) {
	n := machineset.NeverJoined(nil).Deleting(unjoinedDeletion("a"), now)
	require.Equal(t, machineset.NeverJoined{"uid-a": now}, n)
	expired, surplus, joined := unjoinedDeletion("b"), unjoinedDeletion("b"), unjoinedDeletion("b")
	expired.Reason = machineset.ReasonPreservationOver
	require.Len(t, n.Deleting(expired, now), 2)
	surplus.Reason = machineset.ReasonTooMany
	require.Equal(t, n, n.Deleting(surplus, now), "no machine replaces it")
	joined.Object.(*v1alpha1.Machine).Status.LastOperation.Type = v1alpha1.MachineOperationHealthCheck
	require.Equal(t, n, n.Deleting(joined, now))
	require.Equal(t, n, n.Deleting(machinist.Delete{}, now))
	require.Empty(t, n.Deleting(joined, now.Add(shortLife)))
	require.Len(t, n, 1, "the receiver is a value")
}

func TestDecide_NeverJoinedStillPresent_CountsOnce(t *testing.T) {
	in := machineset.Observation{Set: newSet(2), Machines: []*v1alpha1.Machine{newMachine("a", v1alpha1.MachineRunning)}, Complete: true, Proven: true}
	in.NeverJoined = machineset.NeverJoined{"uid-a": now, "uid-b": now, "uid-c": now, "uid-d": now}
	require.Equal(t, 1, created(machineset.Decide(in, machineset.Policy{}, now)))
}

// TestDecide_LabelsRemovedAgainAndAgain_BoundedCreations has a client that removes the labels of
// every new machine. There are never more machines than the replicas and three.
func TestDecide_LabelsRemovedAgainAndAgain_BoundedCreations(t *testing.T) {
	const most = 2 + 3
	set := newSet(2)
	var machines []*v1alpha1.Machine
	var last machineset.Decision
	for i := range 60 {
		claims := machineset.Claim(set, machines)
		in := machineset.Observation{Set: set, Machines: claims.Owned, Released: claims.Released, Complete: claims.Settled(), Proven: true}
		last = machineset.Decide(in, machineset.Policy{}, now)
		if !claims.Settled() {
			require.Zero(t, created(last), "nothing is created on a view with machines that are owned and not selected")
		}
		for j := range created(last) {
			m, err := madeFor(set, fmt.Sprintf("%d-%d", i, j))
			require.NoError(t, err)
			m.UID = types.UID("uid-" + m.Name)
			machines = append(machines, m)
		}
		for _, edit := range append(claims.Release, claims.Adopt...) {
			machines[slices.Index(machines, edit.Before.(*v1alpha1.Machine))] = machineOf(edit)
		}
		for _, m := range machines {
			m.Labels = map[string]string{"app": "hijacked"}
		}
		require.LessOrEqual(t, len(machines), most)
	}
	require.Len(t, machines, most)
	require.Equal(t, machineset.ReasonLimited, last.Reason)
	require.NotZero(t, last.NextCheck)
	require.Equal(t, "machine/"+machines[0].Name, last.Holds[0].Subject)

	// One that gets its labels back is taken back, and is no longer marked.
	machines[0].Labels = map[string]string{"app": "w"}
	claims := machineset.Claim(set, machines)
	require.Len(t, claims.Adopt, 1)
	machines[0] = machineOf(claims.Adopt[0])
	require.NotContains(t, machines[0].Annotations, releasedAnnotation)
	claims = machineset.Claim(set, machines)
	require.Len(t, claims.Owned, 1)
	require.Len(t, claims.Released, most-1)
}

func TestDecide_ReleasedMachines_CountWhileUnowned(t *testing.T) {
	released := func(name string) *v1alpha1.Machine {
		m := machineFrom(name + ".unowned")
		m.Labels, m.Annotations[releasedAnnotation] = nil, "uid-ms"
		return m
	}
	leaving, taken := released("leaving.leaving"), released("taken")
	elsewhere, others := released("elsewhere"), released("others")
	taken.OwnerReferences = machineFrom("m.foreign").OwnerReferences
	elsewhere.Namespace, others.Annotations[releasedAnnotation] = "elsewhere", "uid-another"
	set := newSet(1)
	all := []*v1alpha1.Machine{released("b"), leaving, taken, elsewhere, others, nil, released("a")}
	claims := machineset.Claim(set, all)
	require.Equal(t, []*v1alpha1.Machine{all[0], all[6]}, claims.Released)
	require.True(t, claims.Settled())

	in := machineset.Observation{Set: set, Complete: true, Proven: true, Released: append(all, released("c"), released("a"))} // one twice
	require.Equal(t, 1, created(machineset.Decide(in, machineset.Policy{}, now)), "3 released, and 1 is missing")
	in.Released = append(in.Released, released("d"))
	d := machineset.Decide(in, machineset.Policy{}, now)
	require.Zero(t, created(d))
	require.Equal(t, "machine/a", d.Holds[0].Subject)
	in.Set.Spec.Replicas = 4
	require.Equal(t, 3, created(machineset.Decide(in, machineset.Policy{}, now)), "4 released, 3 created: 4 and 3 in all")
	in.Released[len(in.Released)-1].Status.CurrentStatus.Phase = v1alpha1.MachineTerminating // its deletion does not show yet
	require.Equal(t, 4, created(machineset.Decide(in, machineset.Policy{}, now)))
}

func TestNewMachine_Template_IsCopied(t *testing.T) {
	set := newSet(1)
	set.Spec.Template.Annotations = map[string]string{"a": "b"}
	set.Spec.Template.Finalizers = []string{"f"}
	set.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"n": "1"}
	before := set.DeepCopy()
	m, err := madeFor(set, "abcde")
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(&v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: "ms-abcde", Namespace: "ns", Labels: map[string]string{"app": "w"},
			Annotations: map[string]string{"a": "b", v1alpha1.MachinePriority: "3"}, OwnerReferences: controlledBy(set),
			Finalizers: []string{"f", v1alpha1.MCMFinalizerName},
		},
		Spec: set.Spec.Template.Spec,
	}, m))
	m.Labels["x"], m.Annotations["x"], m.Spec.NodeTemplateSpec.Labels["x"], m.Finalizers[0] = "y", "y", "y", "x"
	require.Empty(t, cmp.Diff(before, set), "the machine shares something with its set")

	set.Spec.Template.Annotations = map[string]string{v1alpha1.MachinePriority: "1"}
	set.Spec.Template.Finalizers = []string{v1alpha1.MCMFinalizerName}
	m, err = madeFor(set, "m")
	require.NoError(t, err)
	require.Equal(t, []string{v1alpha1.MCMFinalizerName}, m.Finalizers, "once is enough")
	require.Equal(t, set.Spec.Template.Annotations, m.Annotations)
	require.False(t, facts.JoinHeld(m))
}

func TestNewMachine_AnnotationsOfTheSet_AreKept(t *testing.T) {
	set := newSet(1)
	const timeoutKey = v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout
	set.Annotations = map[string]string{timeoutKey: "42m", facts.JoinHeldAnnotation: "true"}
	m, err := madeFor(set, "m")
	require.NoError(t, err)
	require.True(t, facts.JoinHeld(m), "a rollout holds its Node")
	require.Equal(t, "42m", m.Annotations[timeoutKey])
	require.Equal(t, 42*time.Minute, m.Spec.MachineCreationTimeout.Duration)
	require.Nil(t, set.Spec.Template.Spec.MachineConfiguration)
	_, changed := syncOf(set, m)
	require.False(t, changed)

	set.Annotations[timeoutKey] = "soon"
	m, err = madeFor(set, "m")
	require.NoError(t, err)
	require.Equal(t, "soon", m.Annotations[timeoutKey])
	require.Nil(t, m.Spec.MachineConfiguration)
}

func TestNewMachine_InvalidSet_Error(t *testing.T) {
	for name, bend := range map[string]func(*v1alpha1.MachineSet){
		"no name":                func(s *v1alpha1.MachineSet) { s.Name = "" },
		"no UID":                 func(s *v1alpha1.MachineSet) { s.UID = "" },
		"no labels":              func(s *v1alpha1.MachineSet) { s.Spec.Template.Labels = nil },
		"no selector":            func(s *v1alpha1.MachineSet) { s.Spec.Selector = nil },
		"selector does not fit":  func(s *v1alpha1.MachineSet) { s.Spec.Selector.MatchLabels["app"] = "other" },
		"name is no name at all": func(s *v1alpha1.MachineSet) { s.Name = "Not A Name" },
	} {
		set := newSet(1)
		bend(set)
		_, err := madeFor(set, "m")
		require.Error(t, err, name)
	}
	_, err := machineset.NewMachine(machinist.Create{}, "m")
	require.Error(t, err)
	for _, suffix := range []string{"", "A", "-a", "a.b", strings.Repeat("a", 40)} {
		_, err = madeFor(newSet(1), suffix)
		require.Error(t, err, suffix)
	}
}

func FuzzName(f *testing.F) {
	f.Add("ms", "abcde")
	f.Add(strings.Repeat("a.", 100), "1")
	f.Add("", "x")
	f.Fuzz(func(t *testing.T, name, suffix string) {
		set := newSet(1)
		set.Name = name
		m, err := madeFor(set, suffix)
		if err != nil {
			return
		}
		got := m.Name
		require.LessOrEqual(t, len(got), 63)
		require.True(t, strings.HasSuffix(got, suffix))
		require.Empty(t, validation.IsDNS1123Subdomain(got))
	})
}

func TestActions_Response_HasEvent(t *testing.T) {
	boom := errors.New("boom")
	require.Equal(t, "Normal SuccessfulCreate Created Machine: m", machineset.Event(nil, machinist.Create{}, "m", nil).String())
	require.Equal(t, "Warning FailedCreate Error creating: boom", machineset.Event(nil, machinist.Create{}, "m", boom).String())
	require.Equal(t, "Normal SuccessfulDelete Deleted machine: m", machineset.Event(nil, machinist.Delete{}, "m", nil).String())
	require.Equal(t, "Warning FailedDelete Error deleting: boom", machineset.Event(nil, machinist.Delete{}, "m", boom).String())
}
