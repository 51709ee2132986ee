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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
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
				recorder := record.NewFakeRecorder(1000)
				r.events = recorder
				var refuse atomic.Bool
				var answered atomic.Int64
				clients, ok := r.machines.(*fake.Clientset)
				require.True(t, ok)
				clients.PrependReactor(tc.verb, tc.resource, func(a clienttesting.Action) (bool, apiruntime.Object, error) {
					if a.GetSubresource() != "" || !refuse.Load() {
						return false, nil, nil
					}
					answered.Add(1)
					return true, nil, apierrors.NewNotFound(v1alpha1.Resource(tc.resource), "x")
				})
				r.create("alone")
				r.deploy(t.Context(), 1)
				r.start()
				time.Sleep(time.Minute)
				require.Contains(t, strings.Join(slicesOf(recorder), "\n"), "Scaled up machine set")
				refuse.Store(true)
				_, err := r.machines.MachineV1alpha1().MachineDeployments(namespace).Patch(t.Context(), "d", types.MergePatchType, []byte(tc.edit), metav1.PatchOptions{})
				require.NoError(t, err)
				time.Sleep(10 * time.Minute)
				require.Positive(t, answered.Load())
				for _, e := range slicesOf(recorder) {
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

// slicesOf returns the recorded events.
func slicesOf(recorder *record.FakeRecorder) (events []string) {
	for e := range recorded(recorder) {
		events = append(events, e)
	}
	return events
}

// TestOrphans_DriverAnswersNotFound_NoEvent deletes an orphan VM that the provider lists but no longer
// has.
func TestOrphans_DriverAnswersNotFound_NoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = 10 * time.Second
		recorder := record.NewFakeRecorder(1000)
		r.events = recorder
		var mu sync.Mutex
		var collected []error
		r.collected = func(_ string, err error) {
			mu.Lock()
			defer mu.Unlock()
			collected = append(collected, err)
		}
		r.orphans = safety.Policy{Grace: time.Minute, Period: time.Minute, MaxDeletions: 5, MaxPercent: 20}
		r.start()
		r.create("m")
		r.eventually("running", func() bool { return r.phase("m") == v1alpha1.MachineRunning })
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
