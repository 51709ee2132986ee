// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// invalidEvents returns the Events about an invalid spec.
func invalidEvents(events *record.FakeRecorder) (found []string) {
	for len(events.Events) > 0 {
		if e := <-events.Events; strings.Contains(e, "InvalidSpec") {
			found = append(found, e)
		}
	}
	return found
}

// TestRefused_InvalidSetAndDeployment_ConditionGenerationAndOneEvent stores objects without a
// class, corrects them, and counts Events and writes.
func TestRefused_InvalidSetAndDeployment_ConditionGenerationAndOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		events := record.NewFakeRecorder(1000)
		r.events = events
		r.create("alone") // this also creates the class
		r.deploy(t.Context(), 1)
		sets, deployments := r.machines.MachineV1alpha1().MachineSets(namespace), r.machines.MachineV1alpha1().MachineDeployments(namespace)
		_, err := sets.Create(t.Context(), setOfOne(map[string]string{"name": "s"}), metav1.CreateOptions{})
		require.NoError(t, err)
		edit := func(class string) {
			patch := []byte(`{"spec":{"template":{"spec":{"class":{"name":"` + class + `"}}}}}`)
			_, err := sets.Patch(t.Context(), "s", types.MergePatchType, patch, metav1.PatchOptions{})
			require.NoError(t, err)
			_, err = deployments.Patch(t.Context(), "d", types.MergePatchType, patch, metav1.PatchOptions{})
			require.NoError(t, err)
		}
		edit("")
		var writes atomic.Int32
		clients, ok := r.machines.(*fake.Clientset)
		require.True(t, ok)
		for _, resource := range []string{"machinesets", "machinedeployments"} {
			clients.PrependReactor("update", resource, func(clienttesting.Action) (bool, apiruntime.Object, error) {
				writes.Add(1)
				return false, nil, nil
			})
		}
		r.start()
		time.Sleep(30 * time.Minute)
		require.Equal(t, int32(2), writes.Load(), "one status for each")
		told := invalidEvents(events)
		require.Len(t, told, 2)
		for _, e := range told {
			require.Contains(t, e, "Warning InvalidSpec ")
			require.Contains(t, e, "spec.template.spec.class.name: Required value")
		}
		set, err := sets.Get(t.Context(), "s", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, set.Generation, set.Status.ObservedGeneration)
		require.Equal(t, "False InvalidSpec", progressOf(set))
		d, err := deployments.Get(t.Context(), "d", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, d.Generation, d.Status.ObservedGeneration)

		edit("class")
		time.Sleep(time.Minute)
		set, err = sets.Get(t.Context(), "s", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, set.Generation, set.Status.ObservedGeneration)
		require.Equal(t, "True Complete", progressOf(set))
		require.Empty(t, invalidEvents(events))
	})
}

// progressOf returns status and reason of the condition Progressing of a set.
func progressOf(s *v1alpha1.MachineSet) string {
	for _, c := range s.Status.StandardConditions {
		if c.Type == v1alpha1.MachineSetProgressing {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

// TestObservedGeneration_WriteFails_StaysBehind fails the writes that a new generation needs: those
// of the set for a deployment, and those of a machine for a set.
func TestObservedGeneration_WriteFails_StaysBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		r.create("alone")
		r.deploy(t.Context(), 1)
		sets, deployments := r.machines.MachineV1alpha1().MachineSets(namespace), r.machines.MachineV1alpha1().MachineDeployments(namespace)
		_, err := sets.Create(t.Context(), setOfOne(map[string]string{"name": "s"}), metav1.CreateOptions{})
		require.NoError(t, err)
		var refuse atomic.Bool
		clients, ok := r.machines.(*fake.Clientset)
		require.True(t, ok)
		for _, resource := range []string{"machines", "machinesets"} {
			clients.PrependReactor("update", resource, func(a clienttesting.Action) (bool, apiruntime.Object, error) {
				return refuse.Load() && a.GetSubresource() == "", nil, errors.New("a webhook says no")
			})
		}
		r.start()
		time.Sleep(time.Minute)
		refuse.Store(true)
		_, err = sets.Patch(t.Context(), "s", types.MergePatchType, []byte(`{"spec":{"template":{"spec":{"maxEvictRetries":7}}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		_, err = deployments.Patch(t.Context(), "d", types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		behind := func() (set, deployment bool) {
			s, err := sets.Get(t.Context(), "s", metav1.GetOptions{})
			require.NoError(t, err)
			d, err := deployments.Get(t.Context(), "d", metav1.GetOptions{})
			require.NoError(t, err)
			return s.Status.ObservedGeneration < s.Generation, d.Status.ObservedGeneration < d.Generation
		}
		time.Sleep(10 * time.Minute)
		set, deployment := behind()
		require.True(t, set, "no machine of the set could be brought in line")
		require.True(t, deployment, "its set could not be scaled")
		refuse.Store(false)
		time.Sleep(10 * time.Minute)
		set, deployment = behind()
		require.False(t, set)
		require.False(t, deployment)
	})
}

// TestObservedGeneration_CreationsAndDeletionsFail_IsObserved refuses the machines of a set, and then
// their deletion. The status is that of the present spec, and a condition has the error.
func TestObservedGeneration_CreationsAndDeletionsFail_IsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		r.create("alone")
		sets := r.machines.MachineV1alpha1().MachineSets(namespace)
		_, err := sets.Create(t.Context(), setOfOne(map[string]string{"name": "s"}), metav1.CreateOptions{})
		require.NoError(t, err)
		var refuse atomic.Bool
		clients, ok := r.machines.(*fake.Clientset)
		require.True(t, ok)
		for _, verb := range []string{"create", "delete"} {
			clients.PrependReactor(verb, "machines", func(clienttesting.Action) (bool, apiruntime.Object, error) {
				return refuse.Load(), nil, apierrors.NewForbidden(v1alpha1.Resource("machines"), "", errors.New("a webhook says no"))
			})
		}
		r.start()
		time.Sleep(time.Minute)
		refuse.Store(true)
		for _, c := range []struct{ replicas, reason string }{{"3", v1alpha1.FailedCreate}, {"0", v1alpha1.FailedDelete}} {
			_, err = sets.Patch(t.Context(), "s", types.MergePatchType, []byte(`{"spec":{"replicas":`+c.replicas+`}}`), metav1.PatchOptions{})
			require.NoError(t, err)
			time.Sleep(10 * time.Minute)
			s, err := sets.Get(t.Context(), "s", metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, s.Generation, s.Status.ObservedGeneration)
			require.EqualValues(t, 1, s.Status.Replicas)
			require.Len(t, s.Status.Conditions, 1)
			require.Equal(t, c.reason, s.Status.Conditions[0].Reason)
		}
	})
}
