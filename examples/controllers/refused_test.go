// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clienttesting "k8s.io/client-go/testing"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestRefused_InvalidSetAndDeployment_ConditionGenerationAndOneEvent stores objects without a
// class, corrects them, and counts Events and writes.
func TestRefused_InvalidSetAndDeployment_ConditionGenerationAndOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		events := r.record()
		r.create("alone") // this also creates the class
		r.deploy(t.Context(), 1)
		sets := r.machines.MachineV1alpha1().MachineSets(namespace)
		create(t, sets.Create, setOfOne(map[string]string{"name": "s"}))
		edit := func(class string) {
			patch := `{"spec":{"template":{"spec":{"class":{"name":"` + class + `"}}}}}`
			merge(t, sets.Patch, "s", patch)
			r.patchDeployment(patch)
		}
		edit("")
		writes := r.requests("update", "*", func(a clienttesting.Action) bool {
			resource := a.GetResource().Resource
			return resource == "machinesets" || resource == "machinedeployments"
		})
		r.start()
		time.Sleep(30 * time.Minute)
		require.Equal(t, int32(2), writes.Load(), "one status for each")
		told := eventsOf(events, "InvalidSpec")
		require.Len(t, told, 2)
		for _, e := range told {
			require.Contains(t, e, "Warning InvalidSpec ")
			require.Contains(t, e, "spec.template.spec.class.name: Required value")
		}
		set := get(t, sets.Get, "s")
		require.Equal(t, set.Generation, set.Status.ObservedGeneration)
		require.Equal(t, "False InvalidSpec", progressOf(set))
		d := r.deployment()
		require.Equal(t, d.Generation, d.Status.ObservedGeneration)

		edit("class")
		time.Sleep(time.Minute)
		set = get(t, sets.Get, "s")
		require.Equal(t, set.Generation, set.Status.ObservedGeneration)
		require.Equal(t, "True Complete", progressOf(set))
		require.Empty(t, eventsOf(events, "InvalidSpec"))
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
		sets := r.machines.MachineV1alpha1().MachineSets(namespace)
		create(t, sets.Create, setOfOne(map[string]string{"name": "s"}))
		var refuse atomic.Bool
		for _, resource := range []string{"machines", "machinesets"} {
			r.answer("update", resource, func(a clienttesting.Action) error {
				if refuse.Load() && a.GetSubresource() == "" {
					return errors.New("a webhook says no")
				}
				return nil
			})
		}
		r.start()
		time.Sleep(time.Minute)
		refuse.Store(true)
		merge(t, sets.Patch, "s", `{"spec":{"template":{"spec":{"maxEvictRetries":7}}}}`)
		r.patchDeployment(`{"spec":{"replicas":2}}`)
		behind := func() (set, deployment bool) {
			s := get(t, sets.Get, "s")
			d := r.deployment()
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
		create(t, sets.Create, setOfOne(map[string]string{"name": "s"}))
		var refuse atomic.Bool
		for _, verb := range []string{"create", "delete"} {
			r.answer(verb, "machines", func(clienttesting.Action) error {
				if refuse.Load() {
					return apierrors.NewForbidden(v1alpha1.Resource("machines"), "", errors.New("a webhook says no"))
				}
				return nil
			})
		}
		r.start()
		time.Sleep(time.Minute)
		refuse.Store(true)
		for _, c := range []struct{ replicas, reason string }{{"3", v1alpha1.FailedCreate}, {"0", v1alpha1.FailedDelete}} {
			merge(t, sets.Patch, "s", `{"spec":{"replicas":`+c.replicas+`}}`)
			time.Sleep(10 * time.Minute)
			s := get(t, sets.Get, "s")
			require.Equal(t, s.Generation, s.Status.ObservedGeneration)
			require.EqualValues(t, 1, s.Status.Replicas)
			require.Len(t, s.Status.Conditions, 1)
			require.Equal(t, c.reason, s.Status.Conditions[0].Reason)
		}
	})
}
