// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clienttesting "k8s.io/client-go/testing"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestEvents_WriteAnsweredNotFound_NoEvent answers NotFound to the creations and updates of sets for a
// deployment, and to the creation and deletion of machines for a set.
func TestEvents_WriteAnsweredNotFound_NoEvent(t *testing.T) {
	for name, tc := range map[string]struct {
		verb, resource string
		edit           string // of the deployment
	}{
		"a set is created":     {"create", "machinesets", `{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`},
		"a set is scaled":      {"update", "machinesets", `{"spec":{"replicas":2}}`},
		"a machine is created": {"create", "machines", `{"spec":{"replicas":2}}`},
		"a machine is deleted": {"delete", "machines", `{"spec":{"replicas":0}}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				r.tick = 10 * time.Second
				recorder := r.record()
				var refuse atomic.Bool
				var answered atomic.Int64
				r.answer(tc.verb, tc.resource, func(a clienttesting.Action) error {
					if a.GetSubresource() != "" || !refuse.Load() {
						return nil
					}
					answered.Add(1)
					return apierrors.NewNotFound(v1alpha1.Resource(tc.resource), "x")
				})
				r.create("alone")
				r.deploy(t.Context(), 1)
				r.start()
				time.Sleep(time.Minute)
				require.Contains(t, strings.Join(eventsOf(recorder), "\n"), "Scaled up machine set")
				refuse.Store(true)
				r.patchDeployment(tc.edit)
				time.Sleep(10 * time.Minute)
				require.Positive(t, answered.Load())
				for _, e := range eventsOf(recorder) {
					if tc.resource == "machinesets" {
						require.NotContains(t, e, "Scaled ", e)
					}
					require.NotContains(t, e, "Create", e)
					require.NotContains(t, e, "Delete", e)
				}
			})
		})
	}
}

// TestOrphans_DriverAnswersNotFound_NoEvent deletes an orphan VM that the provider lists but no longer
// has.
func TestOrphans_DriverAnswersNotFound_NoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := orphanHarness(t)
		recorder := r.record()
		var mu sync.Mutex
		var collected []error
		r.collected = func(_ string, err error) {
			mu.Lock()
			defer mu.Unlock()
			collected = append(collected, err)
		}
		r.start()
		r.running("m")
		r.cloud.Inject(drivertest.Fault{Operation: driver.OpDeleteMachine, Machine: "lost", Code: codes.NotFound})
		r.cloud.AddVM(drivertest.VM{Namespace: namespace, Machine: "lost", Class: "class"})
		time.Sleep(10 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		require.Positive(t, r.cloud.Calls(driver.OpDeleteMachine, codes.NotFound))
		require.Empty(t, collected)
		require.Empty(t, eventsOf(recorder, "OrphanDeleted"))
	})
}
