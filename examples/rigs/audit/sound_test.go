// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/rigs/audit"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// lawfulRun is a random run of controllers that keep all bounds.
type lawfulRun struct {
	*recording

	random  *rand.Rand
	seconds float64
	d       *v1alpha1.MachineDeployment
	all     []*v1alpha1.Machine
	vms     map[string]bool
	full    bool // the deployment was complete with these replicas
}

func newSaint(seed uint64) *lawfulRun {
	s := &lawfulRun{recording: newRecording(), random: rand.New(rand.NewPCG(seed, 1)), vms: map[string]bool{}, d: deploymentOf(2, 1)}
	s.full = true
	s.d.Status = v1alpha1.MachineDeploymentStatus{}
	for range 3 {
		s.make()
	}
	for range 250 {
		s.seconds += s.random.Float64() * 0.8
		s.step()
	}
	return s
}

func (s *lawfulRun) replace(m *v1alpha1.Machine, change func(*v1alpha1.Machine)) {
	next := m.DeepCopy()
	change(next)
	s.all[slices.Index(s.all, m)] = next
	s.write(s.seconds, next)
}

func (s *lawfulRun) counts() (alive, available int) {
	for _, m := range s.all {
		if m.DeletionTimestamp == nil {
			alive++
			if m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning {
				available++
			}
		}
	}
	return alive, available
}

func (s *lawfulRun) make() {
	m := running(fmt.Sprintf("m%d", len(s.log.Changes)), unguarded, pending)
	s.all = append(s.all, m)
	s.write(s.seconds, m)
}

// step makes one allowed change.
func (s *lawfulRun) step() {
	alive, available := s.counts()
	m := running("none", deleting)
	if len(s.all) > 0 {
		m = s.all[s.random.IntN(len(s.all))]
	}
	guarded, doomed, up := len(m.Finalizers) > 0, m.DeletionTimestamp != nil, m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning
	switch s.random.IntN(12) {
	case 0, 1:
		if alive <= int(s.d.Spec.Replicas) {
			s.make()
		}
	case 2, 3:
		if !guarded && !doomed {
			s.replace(m, func(m *v1alpha1.Machine) { m.Finalizers = []string{v1alpha1.MCMFinalizerName} })
		}
	case 4, 5:
		if guarded && !doomed && !s.vms[m.Name] {
			s.vms[m.Name] = true
			s.begins(s.seconds, m.Name)
		}
	case 6, 7:
		if s.vms[m.Name] && !doomed {
			s.replace(m, func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning })
		}
	case 8:
		if !doomed && (!up || available > int(s.d.Spec.Replicas)) {
			s.replace(m, deleting)
		}
	case 9, 10:
		s.end(m, doomed)
	case 11:
		s.other(m, alive, available)
	}
}

// end continues a deletion.
func (s *lawfulRun) end(m *v1alpha1.Machine, doomed bool) {
	switch i := slices.Index(s.all, m); {
	case !doomed || i < 0:
	case s.vms[m.Name]:
		delete(s.vms, m.Name)
		s.ends(s.seconds, m.Name)
	default:
		s.all = slices.Delete(s.all, i, i+1)
		s.gone(s.seconds, m)
	}
}

// other scales, completes the deployment, or makes a machine fail.
func (s *lawfulRun) other(m *v1alpha1.Machine, alive, available int) {
	d := s.d.DeepCopy()
	switch s.random.IntN(3) {
	case 0:
		d.Spec.Replicas = int32(1 + s.random.IntN(4))
		d.Generation++
		s.d, s.full = d, false
		s.write(s.seconds, d)
		set := setOf(d.Spec.Replicas + 1)
		set.Generation = d.Generation
		s.write(s.seconds, set)
	case 1:
		if n := int(d.Spec.Replicas); alive == n && available == n {
			d.Status = v1alpha1.MachineDeploymentStatus{
				ObservedGeneration: d.Generation, Replicas: d.Spec.Replicas, UpdatedReplicas: d.Spec.Replicas, AvailableReplicas: d.Spec.Replicas,
			}
			s.d, s.full = d, true
			s.write(s.seconds, d)
		}
	case 2:
		if slices.Contains(s.all, m) && m.DeletionTimestamp == nil {
			s.replace(m, pending)
		}
	}
}

// watched returns the log of a recorder: each kind is late by up to the tolerance, and sometimes
// has gaps.
func (s *lawfulRun) watched(tolerance time.Duration) audit.Log {
	truth := s.log.Changes
	last := truth[len(truth)-1].Time
	var log audit.Log
	for _, resource := range []string{"machines", "machinesets", "machinedeployments"} {
		w := &lateRecorder{resource: resource, log: &log, random: s.random, tolerance: tolerance, known: map[types.UID]audit.Change{}}
		w.list(truth, start.Add(time.Duration(s.random.Int64N(int64(3*time.Second))))) // the first list
		for w.n < len(truth) && truth[w.n].Time.Before(last.Add(-time.Second)) {
			switch {
			case s.random.IntN(40) == 0:
				w.miss(truth, truth[w.n].Time.Add(time.Duration(s.random.Int64N(int64(10*time.Second)))))
			default:
				w.see(truth[w.n])
				w.n++
			}
		}
		log.Gaps = append(log.Gaps, audit.Gap{Resource: resource, After: truth[w.n-1].Version, From: later(w.heard, last.Add(-time.Second))})
	}
	return log
}

func later(t, u time.Time) time.Time {
	if t.After(u) {
		return t
	}
	return u
}

// lateRecorder records one kind.
type lateRecorder struct {
	resource  string
	log       *audit.Log
	random    *rand.Rand
	tolerance time.Duration
	n         int // the index in the real history
	known     map[types.UID]audit.Change
	version   uint64
	heard     time.Time
}

func (w *lateRecorder) delay() time.Duration {
	return time.Duration(w.random.Int64N(int64(w.tolerance)))
}

func (w *lateRecorder) concerns(c audit.Change) bool {
	switch c.Object.(type) {
	case *v1alpha1.Machine:
		return w.resource == "machines"
	case *v1alpha1.MachineSet:
		return w.resource == "machinesets"
	default:
		return w.resource == "machinedeployments"
	}
}

func (w *lateRecorder) see(c audit.Change) {
	if !w.concerns(c) {
		return
	}
	w.heard = later(w.heard, c.Time.Add(w.delay()))
	c.Time = w.heard
	w.version, w.known[uidOf(c.Object)] = c.Version, c
	w.log.Changes = append(w.log.Changes, c)
}

// miss misses the changes until a time, and then lists.
func (w *lateRecorder) miss(truth []audit.Change, until time.Time) {
	w.heard = later(w.heard, truth[w.n].Time.Add(w.delay()))
	w.list(truth, until)
}

func (w *lateRecorder) list(truth []audit.Change, when time.Time) {
	found, version := map[types.UID]audit.Change{}, w.version
	for w.n = 0; w.n < len(truth) && !truth[w.n].Time.After(when); w.n++ {
		c := truth[w.n]
		version = c.Version
		if w.concerns(c) {
			found[uidOf(c.Object)] = c
		}
		if c.Gone {
			delete(found, uidOf(c.Object))
		}
	}
	now := later(w.heard, when.Add(w.delay()))
	gap := audit.Gap{Resource: w.resource, From: w.heard, To: now, After: w.version, Until: version}
	for uid, c := range w.known {
		if _, there := found[uid]; !there && !c.Gone {
			c.Gone, c.Listed, c.Since, c.Time, c.Version = true, true, w.heard, now, version
			w.log.Changes = append(w.log.Changes, c)
		}
	}
	for uid, c := range found {
		if w.known[uid].Object != c.Object {
			c.Listed, c.Since, c.Time, c.Version = true, w.heard, now, version
			w.log.Changes = append(w.log.Changes, c)
		}
	}
	w.log.Gaps = append(w.log.Gaps, gap)
	w.known, w.version, w.heard = found, version, now
}

func uidOf(o runtime.Object) types.UID {
	m, _ := o.(metav1.Object)
	return m.GetUID()
}

func TestCheck_CorrectHistories_NoFalsePositive(t *testing.T) {
	const tolerance = time.Second
	violated, missed, unproven := 0, 0, 0
	for seed := range uint64(300) {
		s := newSaint(seed)
		_, err := s.check(audit.Options{})
		require.NoError(t, err, "seed %d, exact", seed)
		log := s.watched(tolerance)
		f, err := audit.Check(log, s.history, drivertest.Snapshot{}, audit.Options{Tolerance: tolerance})
		require.NoError(t, err, "seed %d, watched", seed)
		missed, unproven = missed+f.Gaps, unproven+len(f.Unproven)
		if _, err = audit.Check(log, s.history, drivertest.Snapshot{}, audit.Options{Tolerance: time.Millisecond}); err != nil {
			violated++
		}
	}
	require.NotZero(t, missed)
	require.NotZero(t, unproven)
	require.NotZero(t, violated, "a watch that is later than the tolerance reports false positives, so the tolerance is needed")
}
