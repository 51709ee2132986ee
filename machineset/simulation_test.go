// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// sim is an API server, a cache which lags behind it, a set controller without
// a rule of its own, a machine controller, an autoscaler, a deployment, a user, and
// another client that removes labels.
type sim struct {
	t        *testing.T
	r        *rand.Rand
	now      time.Time
	chaos    bool
	set      *v1alpha1.MachineSet
	api      map[string]*v1alpha1.Machine
	cache    map[string]*v1alpha1.Machine
	events   map[string][]*v1alpha1.Machine // not delivered yet; nil is a removal
	late     []lateCreate
	expected machine.Expectations
	unjoined machineset.NeverJoined
	proven   bool
	lists    int
	serial   int
	version  int
	creates  int
	releases int
	gone     bool
}

// lateCreate is a creation whose answer was lost and which happens later.
type lateCreate struct {
	at      time.Time
	machine *v1alpha1.Machine
}

func newSim(t *testing.T, seed uint64) *sim {
	set := newSet(3)
	set.Finalizers = nil
	return &sim{
		t: t, r: rand.New(rand.NewPCG(seed, 4)), now: now, chaos: true, set: set,
		api: map[string]*v1alpha1.Machine{}, cache: map[string]*v1alpha1.Machine{}, events: map[string][]*v1alpha1.Machine{},
	}
}

// write stores a machine and queues the event for the cache; nil removes it.
func (s *sim) write(name string, m *v1alpha1.Machine) {
	if m == nil {
		delete(s.api, name)
		s.events[name] = append(s.events[name], nil)
		return
	}
	s.version++
	m.ResourceVersion = fmt.Sprint(s.version)
	s.api[name] = m
	s.events[name] = append(s.events[name], m.DeepCopy())
}

// deliver shows the cache one event of a machine, the oldest.
func (s *sim) deliver(name string) {
	queue := s.events[name]
	if len(queue) == 0 {
		return
	}
	if queue[0] == nil {
		delete(s.cache, name)
	} else {
		s.cache[name] = queue[0]
	}
	if s.events[name] = queue[1:]; len(queue) == 1 {
		delete(s.events, name)
	}
}

// count counts machines of the API server that are not leaving.
func (s *sim) count(of func(m *v1alpha1.Machine) bool) (n int) {
	for _, m := range s.api {
		if !members.Leaving(m) && of(m) {
			n++
		}
	}
	return n
}

func (s *sim) live() int { return s.count(func(*v1alpha1.Machine) bool { return true }) }

// owned counts the machines of the set, labelled or not.
func (s *sim) owned() int { return s.count(s.owns) }

func (s *sim) owns(m *v1alpha1.Machine) bool { return metav1.IsControlledBy(m, s.set) }

func (s *sim) anyName(names []string) string {
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return names[s.r.IntN(len(names))]
}

// reconcile is the loop of the package comment.
func (s *sim) reconcile() machineset.Decision {
	cached := slices.SortedFunc(maps.Values(s.cache), members.CompareNames)
	complete := !s.chaos || s.r.IntN(10) > 0
	if !complete && len(cached) > 0 {
		cached = cached[:s.r.IntN(len(cached))]
	}
	s.r.Shuffle(len(cached), func(i, j int) { cached[i], cached[j] = cached[j], cached[i] })
	claims := machineset.Claim(s.set, cached)
	s.expected = s.expected.Observe(named(cached), complete)
	in := machineset.Observation{
		Set: s.set.DeepCopy(), Machines: claims.Owned, Released: claims.Released, Complete: complete && claims.Settled(), Proven: s.proven, Expectations: s.expected,
		NeverJoined: s.unjoined,
	}
	s.claim(claims)
	d := machineset.Decide(in, machineset.Policy{Burst: 4}, s.now)
	require.Equal(s.t, d, machineset.Decide(in, machineset.Policy{Burst: 4}, s.now)) // I-19
	if len(d.Actions) == 0 && len(d.Holds) == 0 {                                    // I-12
		require.Equal(s.t, machineset.ReasonSettled, d.Reason)
	}
	for _, a := range d.Actions {
		if s.chaos && s.r.IntN(20) == 0 {
			break // the rest is lost
		}
		s.act(a)
	}
	require.True(s.t, d.NextCheck.IsZero() || d.NextCheck.After(s.now))
	return d
}

// claim writes adoptions and releases of objects that no other client has written since.
func (s *sim) claim(claims machineset.Claims[*v1alpha1.Machine]) {
	for i, u := range append(claims.Release, claims.Adopt...) {
		before, next := u.Before.(*v1alpha1.Machine), machineOf(u)
		m, found := s.api[before.Name]
		lost := s.chaos && s.r.IntN(6) == 0
		if !found || lost || m.UID != before.UID || m.ResourceVersion != before.ResourceVersion {
			continue
		}
		s.write(m.Name, next)
		if i < len(claims.Release) {
			s.releases++
		}
	}
}

func (s *sim) act(a machinist.Action) {
	switch a := a.(type) {
	case machinist.Update:
		next, ok := a.Object.(*v1alpha1.MachineSet)
		if !ok {
			if m, found := s.api[a.Object.GetName()]; found && m.ResourceVersion == a.Before.(*v1alpha1.Machine).ResourceVersion {
				s.write(m.Name, machineOf(a))
			}
			return
		}
		s.set.Finalizers, s.proven = next.Finalizers, true
		if s.gone = next.DeletionTimestamp != nil; s.gone {
			for _, m := range s.api {
				require.False(s.t, s.owns(m), "the set was let go before its machines were gone")
			}
		}
	case machinist.Refresh:
		if a.Name != "" {
			s.expected = s.expected.Looked(v1alpha1.MachineKind, a.Name, s.api[a.Name], s.now)
			return
		}
		owned := func(all map[string]*v1alpha1.Machine) []*v1alpha1.Machine {
			return slices.DeleteFunc(slices.SortedFunc(maps.Values(all), members.CompareNames), func(m *v1alpha1.Machine) bool { return !s.owns(m) })
		}
		s.expected, s.proven = machine.Listed(s.expected, owned(s.api), owned(s.cache), s.now), true
		s.lists++
	case machinist.Delete:
		s.delete(a)
	case machinist.Create:
		for _, batch := range members.Batches(a.Count) {
			failed := false
			for range batch {
				failed = s.create(a) != nil || failed
			}
			if failed {
				return
			}
		}
	default:
		s.t.Fatalf("unknown action %T", a)
	}
}

func (s *sim) create(a machinist.Create) error {
	s.serial++
	m, err := machineset.NewMachine(a, fmt.Sprintf("%05d", s.serial))
	require.NoError(s.t, err)
	name := m.Name
	m.UID = types.UID(fmt.Sprintf("uid-%d", s.serial))
	m.CreationTimestamp = metav1.NewTime(s.now)
	s.expected = s.expected.Creating(v1alpha1.MachineKind, name, s.now)

	// I-4, against the truth, not against the cache.
	require.Less(s.t, s.owned()+len(s.late), int(s.set.Spec.Replicas), "created too many")
	require.Less(s.t, s.live()+len(s.late), int(s.set.Spec.Replicas)+3, "created too many beside those released")
	s.creates++
	switch outcome := s.r.IntN(12); {
	case !s.chaos || outcome < 6:
		s.write(name, m)
		return nil
	case outcome < 7:
		s.answered(name, apierrors.NewForbidden(schema.GroupResource{}, name, errAPI))
	case outcome < 8: // the client repeats a request that was carried out
		s.write(name, m)
		s.answered(name, pick[error](s.r, apierrors.NewAlreadyExists(schema.GroupResource{}, name), apierrors.NewServiceUnavailable("503")))
	case outcome < 10:
		s.write(name, m)
	case outcome < 11:
		s.late = append(s.late, lateCreate{s.now.Add(time.Duration(1+s.r.IntN(60)) * time.Second), m})
	}
	return errAPI
}

// answered has a creation or a deletion answered with an error.
func (s *sim) answered(name string, err error) {
	var look bool
	if s.expected, look = s.expected.Failed(v1alpha1.MachineKind, name, err); look {
		s.expected = s.expected.Looked(v1alpha1.MachineKind, name, s.api[name], s.now)
	}
}

func (s *sim) delete(a machinist.Delete) {
	seen := a.Object.(*v1alpha1.Machine)
	s.expected, s.unjoined = s.expected.Deleting(v1alpha1.MachineKind, seen.Name, seen.UID, s.now), s.unjoined.Deleting(a, s.now)
	m, found := s.api[seen.Name]
	if !found || m.UID != seen.UID || members.Leaving(m) {
		return
	}
	if a.Unchanged && m.ResourceVersion != seen.ResourceVersion {
		s.answered(m.Name, apierrors.NewConflict(schema.GroupResource{}, m.Name, errAPI))
		return
	}
	if a.Reason == machineset.ReasonTooMany { // I-5
		require.Greater(s.t, s.owned(), int(s.set.Spec.Replicas), "deleted one too many")
	}
	if s.chaos && s.r.IntN(6) == 0 {
		if s.r.IntN(2) == 0 {
			s.answered(m.Name, apierrors.NewForbidden(schema.GroupResource{}, m.Name, errAPI))
		}
		return // the call, or the process that made it, got lost
	}
	s.remove(m)
}

func (s *sim) remove(m *v1alpha1.Machine) {
	m = m.DeepCopy()
	m.DeletionTimestamp = &metav1.Time{Time: s.now}
	s.write(m.Name, m)
}

// machineController moves one machine on.
func (s *sim) machineController(name string) {
	m, found := s.api[name]
	if !found {
		return
	}
	m = m.DeepCopy()
	phase := &m.Status.CurrentStatus.Phase
	switch {
	case members.Leaving(m) && (!s.chaos || *phase == v1alpha1.MachineTerminating):
		s.write(name, nil)
		return
	case members.Leaving(m):
		*phase = v1alpha1.MachineTerminating
	case *phase == "":
		*phase = v1alpha1.MachinePending
	case *phase == v1alpha1.MachinePending:
		*phase = v1alpha1.MachineRunning
	case s.chaos && s.r.IntN(4) == 0:
		*phase = v1alpha1.MachineUnknown
	case s.chaos && *phase == v1alpha1.MachineUnknown:
		*phase = pick(s.r, v1alpha1.MachineFailed, v1alpha1.MachineRunning)
	}
	s.write(name, m)
}

// scaleDownByName is an autoscaler that names one machine, then takes one off.
func (s *sim) scaleDownByName(name string) {
	m, found := s.api[name]
	if !found || s.set.Spec.Replicas == 0 || members.Leaving(m) {
		return
	}
	m = m.DeepCopy()
	m.Annotations[v1alpha1.MachinePriority] = "1"
	m.Annotations[v1alpha1.MarkedForDeletionTime] = s.now.Format(time.RFC3339)
	s.write(name, m)
	metav1.SetMetaDataAnnotation(&s.set.ObjectMeta, v1alpha1.LastDeploymentReplicaChangeByScalerTime, s.now.Format(time.RFC3339))
	s.set.Spec.Replicas--
}

// cut is a deployment that takes off some machines and names them, or as many as
// it cares to.
func (s *sim) cut(names []string) {
	slices.Sort(names)
	s.r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	k := s.r.IntN(min(len(names), int(s.set.Spec.Replicas)) + 1)
	s.set.Spec.Replicas -= int32(k) //nolint:gosec // small
	members.NameVictims(s.set, names[:s.r.IntN(k+1)])
}

// relabel takes away the labels of a machine, or gives them back.
func (s *sim) relabel(name string) {
	m, found := s.api[name]
	if !found || s.set.DeletionTimestamp != nil {
		return
	}
	m = m.DeepCopy()
	m.Labels = pick(s.r, nil, nil, map[string]string{"app": "other"}, map[string]string{"app": "w"})
	s.write(name, m)
}

func (s *sim) crash() {
	for _, l := range s.late { // what was under way arrives before a new process has listed
		s.write(l.machine.Name, l.machine)
	}
	s.late, s.expected, s.unjoined, s.proven = nil, nil, nil, false
	if s.r.IntN(2) == 0 {
		return // its first list is as old as the cache
	}
	for name := range maps.Clone(s.events) {
		for range s.events[name] {
			s.deliver(name)
		}
	}
}

func (s *sim) arrive() {
	s.late = slices.DeleteFunc(s.late, func(l lateCreate) bool {
		if l.at.After(s.now) {
			return false
		}
		s.write(l.machine.Name, l.machine)
		return true
	})
}

func (s *sim) step() {
	names := slices.Collect(maps.Keys(s.api))
	switch s.r.IntN(16) {
	case 0, 1, 2, 3:
		s.reconcile()
	case 4, 5, 6:
		s.deliver(s.anyName(slices.Collect(maps.Keys(s.events))))
	case 7, 8:
		s.machineController(s.anyName(names))
	case 9:
		s.now = s.now.Add(time.Duration(s.r.IntN(100)) * time.Second)
		s.arrive()
	case 10:
		s.scaleDownByName(s.anyName(names))
	case 11:
		s.set.Spec.Replicas = int32(s.r.IntN(9)) //nolint:gosec // small
	case 12:
		if s.r.IntN(4) == 0 {
			s.crash()
		}
	case 13:
		s.cut(names)
	case 14:
		if s.r.IntN(2) == 0 {
			s.relabel(s.anyName(names))
		}
	case 15:
		switch s.r.IntN(4) {
		case 0:
			s.set.Labels = map[string]string{v1alpha1.FreezeLabelKey: "True"}
		case 1:
			s.set.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"zone": pick(s.r, "1", "2")}
		default:
			s.set.Labels = nil
		}
	}
}

// tidy gives back lost labels, or takes machines away that were released.
func (s *sim) tidy() {
	for _, name := range slices.Sorted(maps.Keys(s.api)) {
		m := s.api[name].DeepCopy()
		if m.Labels["app"] == "w" {
			continue
		}
		if !s.owns(m) && s.r.IntN(2) == 0 {
			s.remove(m)
			continue
		}
		m.Labels = map[string]string{"app": "w"}
		s.write(name, m)
	}
}

// settle lets the world come to rest: nothing fails any more, and time moves
// only to the next thing that was asked for.
func (s *sim) settle() {
	s.chaos, s.set.Labels = false, nil
	s.tidy()
	for range 2000 {
		d := s.reconcile()
		pending := slices.Collect(maps.Keys(s.events))
		var moving []string
		for name, m := range s.api {
			phase := m.Status.CurrentStatus.Phase
			if members.Leaving(m) || phase == "" || phase == v1alpha1.MachinePending {
				moving = append(moving, name)
			}
		}
		switch {
		case s.gone:
			return
		case len(pending) > 0 && s.r.IntN(4) > 0:
			s.deliver(s.anyName(pending))
		case len(moving) > 0:
			s.machineController(s.anyName(moving))
		case len(pending) > 0:
			s.deliver(s.anyName(pending))
		case !d.NextCheck.IsZero():
			s.now = d.NextCheck
			s.arrive()
		case len(s.late) > 0:
			s.now = s.late[0].at
			s.arrive()
		default:
			return
		}
	}
	s.t.Fatal("the world does not come to rest")
}

func TestSimulation_StaleCachesAndLostCalls_KeepBounds(t *testing.T) {
	seeds := uint64(600)
	if testing.Short() {
		seeds = 50
	}
	creates, releases, lists := 0, 0, 0
	for seed := range seeds {
		s := newSim(t, seed)
		for range 150 {
			s.step()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		s.settle()
		require.Equal(t, int(s.set.Spec.Replicas), s.live(), "seed %d", seed)
		require.Len(t, s.api, s.live(), "seed %d", seed)
		require.Empty(t, s.expected, "seed %d", seed)
		require.Contains(t, s.set.Finalizers, v1alpha1.MCMFinalizerName, "seed %d", seed)
		for _, m := range s.api {
			require.False(t, members.Failed(m), "seed %d", seed)
			require.Equal(t, s.set.Spec.Template.Spec.NodeTemplateSpec.Labels, m.Spec.NodeTemplateSpec.Labels, "seed %d", seed)
		}
		require.Equal(t, s.live(), s.owned(), "seed %d", seed)
		creates, releases, lists = creates+s.creates, releases+s.releases, lists+s.lists

		s.set.DeletionTimestamp = &metav1.Time{Time: s.now}
		s.chaos = true
		for range 30 {
			s.step()
		}
		s.settle()
		require.True(t, s.gone, "seed %d", seed)
	}
	require.Positive(t, releases)
	require.Positive(t, lists)
	t.Logf("%d seeds, %d creations, %d releases, %d live lists", seeds, creates, releases, lists)
}
