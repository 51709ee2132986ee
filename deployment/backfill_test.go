// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const hashKey = v1alpha1.DefaultMachineDeploymentUniqueLabelKey

// unhash makes a set, and its machines, look as if they were adopted.
func (w *marksWorld) unhash(s *v1alpha1.MachineSet) {
	for _, m := range w.of(s) {
		delete(m.Labels, hashKey)
	}
	delete(s.Labels, hashKey)
	delete(s.Spec.Template.Labels, hashKey)
	delete(s.Spec.Selector.MatchLabels, hashKey)
	w.report(s)
}

func TestDS17AnAdoptedSetGetsItsHashWithoutWaiting(t *testing.T) {
	w := newMarksWorld(3)
	w.unhash(w.sets[0])
	w.machines[0].Status.CurrentStatus.Phase = v1alpha1.MachineFailed
	w.machines[1].DeletionTimestamp = new(metav1.NewTime(marksNow))
	w.report(w.sets[0])
	policy := deployment.Policy{Burst: 2}
	for range 12 {
		w.run(t, policy)
		w.report(w.sets[0])
		selector, err := metav1.LabelSelectorAsSelector(w.sets[0].Spec.Selector)
		require.NoError(t, err)
		require.True(t, selector.Matches(labels.Set(w.sets[0].Spec.Template.Labels)))
		for _, m := range w.machines {
			require.True(t, selector.Matches(labels.Set(m.Labels)), "%s drops out", m.Name)
		}
	}
	hash := w.sets[0].Spec.Selector.MatchLabels[hashKey]
	require.NotEmpty(t, hash)
	require.Equal(t, hash, w.sets[0].Labels[hashKey])
	require.Equal(t, hash, w.sets[0].Spec.Template.Labels[hashKey])
	for _, m := range w.machines {
		require.Equal(t, hash, m.Labels[hashKey])
	}
}

func TestBackfillTakesOneStepAtATime(t *testing.T) {
	w := newMarksWorld(2)
	w.unhash(w.sets[0])
	w.run(t, deployment.Policy{})
	require.NotEmpty(t, w.sets[0].Spec.Template.Labels[hashKey])

	dec := w.run(t, deployment.Policy{})
	require.Contains(t, dec.String(), "has not seen the hash in its template yet")
	require.Empty(t, w.machines[0].Labels[hashKey], "a new machine might still be made without it")

	w.report(w.sets[0])
	dec = w.run(t, deployment.Policy{})
	require.Contains(t, dec.String(), "2 of 2 machines do not carry the hash yet")
	require.NotEmpty(t, w.machines[0].Labels[hashKey])

	dec = w.run(t, deployment.Policy{})
	require.Contains(t, dec.String(), "0 machines carry the hash, 2 exist, 2 are wanted", "the set has to see them")
	require.Empty(t, w.sets[0].Spec.Selector.MatchLabels[hashKey])

	w.report(w.sets[0])
	w.run(t, deployment.Policy{})
	require.NotEmpty(t, w.sets[0].Spec.Selector.MatchLabels[hashKey])

	w.report(w.sets[0])
	dec = w.rest(t, deployment.Policy{})
	require.Equal(t, deployment.ReasonComplete, dec.Reason)
	require.Empty(t, dec.Holds)
}

func TestBackfillDoesNotHoldUpARollOut(t *testing.T) {
	w := newMarksWorld(3)
	w.unhash(w.sets[0])
	w.d.Spec.Template.Spec.Class.Name = "b"
	w.rest(t, deployment.Policy{})
	require.Len(t, w.machines, 3)
	for _, m := range w.machines {
		require.Equal(t, "b", m.Spec.Class.Name)
	}
}

func TestBackfillGivesEverySetAHashOfItsOwn(t *testing.T) {
	w := newMarksWorld(1)
	w.addSet("a2", 1)
	w.sets[1].Spec.Template.Spec.Class.Name = "a" // a second set for the same template
	for _, s := range w.sets {
		w.unhash(s)
	}
	w.run(t, deployment.Policy{})
	first, second := w.sets[0].Spec.Template.Labels[hashKey], w.sets[1].Spec.Template.Labels[hashKey]
	require.NotEmpty(t, first)
	require.NotEmpty(t, second)
	require.NotEqual(t, first, second)

	w.d.Status.CollisionCount = new(int32(7)) // whatever happens in between
	w.run(t, deployment.Policy{})
	require.Equal(t, first, w.sets[0].Spec.Template.Labels[hashKey], "a hash stays")
	require.Equal(t, second, w.sets[1].Spec.Template.Labels[hashKey])
}

func TestBackfillAddsNothingToAnEmptySelector(t *testing.T) {
	for _, selector := range []*metav1.LabelSelector{nil, {}, {MatchLabels: map[string]string{}}} {
		w := newMarksWorld(1)
		w.sets[0].Spec.Selector = selector
		dec := w.run(t, deployment.Policy{})
		require.Contains(t, dec.String(), "its selector is empty")
		require.Equal(t, selector, w.sets[0].Spec.Selector)
	}
}

func TestBackfillWaitsUntilSetAndViewAgree(t *testing.T) {
	for name, change := range map[string]func(*marksWorld, *v1alpha1.MachineSet){
		"the set reports more machines":       func(_ *marksWorld, s *v1alpha1.MachineSet) { s.Status.Replicas++ },
		"the set reports fewer with the hash": func(_ *marksWorld, s *v1alpha1.MachineSet) { s.Status.FullyLabeledReplicas-- },
		"the view shows fewer machines":       func(w *marksWorld, _ *v1alpha1.MachineSet) { w.machines = w.machines[1:] },
		"the set has not seen its spec":       func(_ *marksWorld, s *v1alpha1.MachineSet) { s.Generation = 9 },
		"the set is being deleted": func(_ *marksWorld, s *v1alpha1.MachineSet) {
			s.DeletionTimestamp = new(metav1.NewTime(marksNow))
		},
		"nothing is in the way": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newMarksWorld(2)
			s := w.sets[0]
			delete(s.Spec.Selector.MatchLabels, hashKey)
			if change != nil {
				change(w, s)
			}
			w.run(t, deployment.Policy{})
			require.Equal(t, change == nil, w.sets[0].Spec.Selector.MatchLabels[hashKey] != "")
		})
	}
}

func TestBackfillGivesWayToWhatCannotWait(t *testing.T) {
	w := newMarksWorld(3)
	w.unhash(w.sets[0])
	w.run(t, deployment.Policy{})
	w.report(w.sets[0])
	named := w.machines[2].Name
	w.d.Annotations = map[string]string{v1alpha1.TriggerDeletionByMCM: named + "~2026-03-01T11:00:00Z"}
	dec := w.plan(deployment.Policy{Burst: 1})
	var written []string
	for _, a := range dec.Actions {
		if a, ok := a.(deployment.WriteMachine); ok {
			written = append(written, a.Machine.Name)
		}
	}
	require.Equal(t, []string{named}, written, "it gets its marks; hashes are for the next pass")
}

func TestBackfillTellsSetsApartWhoseTemplatesCarryTheSameHash(t *testing.T) {
	w := newMarksWorld(1)
	w.addSet("b", 1)
	for _, s := range w.sets {
		w.unhash(s)
		s.Spec.Template.Labels[hashKey] = "same"
	}
	for _, m := range w.machines {
		m.Labels[hashKey] = "same"
	}
	w.run(t, deployment.Policy{})
	require.Equal(t, "same", w.sets[0].Spec.Template.Labels[hashKey])
	require.NotEqual(t, "same", w.sets[1].Spec.Template.Labels[hashKey], "or each would select the machines of the other")
	require.NotEmpty(t, w.sets[1].Spec.Template.Labels[hashKey])
}
