// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestDeleteTakesTheSetsFirstAndThenTheFinalizer(t *testing.T) {
	w, _, _ := midRoll(t)
	w.d.DeletionTimestamp = new(metav1.NewTime(marksNow))
	w.d.Finalizers = append(w.d.Finalizers, "foreign")
	w.sets[0].DeletionTimestamp = new(metav1.NewTime(marksNow))
	dec := w.plan(deployment.Policy{})
	require.Equal(t, deployment.ReasonDeleting, dec.Reason)
	require.Equal(t, []deployment.Action{deployment.DeleteSet{Name: "w-b", UID: "w-b-uid", Message: "its deployment is being deleted"}}, dec.Actions)
	require.Contains(t, dec.String(), "w-a: SetDeleting: 3 machines are left")

	w.sets = nil
	w.run(t, deployment.Policy{})
	require.Equal(t, []string{"foreign"}, w.d.Finalizers)

	dec = w.plan(deployment.Policy{})
	require.Equal(t, machinist.Reason("Deleted"), dec.Reason)
	require.Empty(t, dec.Actions)
}

// Whatever is wrong with the API server, a pass makes each write once, and the
// next pass decides when.
func TestDS31AWriteThatFailsIsNotRepeatedWithinThePass(t *testing.T) {
	w := newMarksWorld(0)
	w.d.Finalizers = nil
	for range 5 {
		dec := w.plan(deployment.Policy{}) // it never succeeds
		require.Len(t, dec.Actions, 1)
		require.IsType(t, deployment.WriteDeployment{}, dec.Actions[0])
		require.Equal(t, marksNow.Add(30*time.Second), dec.NextCheck)
	}
	w.d.DeletionTimestamp, w.d.Finalizers, w.sets = new(metav1.NewTime(marksNow)), []string{v1alpha1.MCMFinalizerName}, nil
	for range 5 {
		require.Len(t, w.plan(deployment.Policy{}).Actions, 1)
	}
}

func TestDeleteWithOrphansLeavesTheSetsToTheGarbageCollector(t *testing.T) {
	w, _, _ := midRoll(t)
	w.d.DeletionTimestamp = new(metav1.NewTime(marksNow))
	w.d.Finalizers = append(w.d.Finalizers, metav1.FinalizerOrphanDependents)
	dec := w.plan(deployment.Policy{})
	require.Empty(t, dec.Actions)
	require.Contains(t, dec.String(), "2 sets are to outlive the deployment")
}
