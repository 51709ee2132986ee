// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// machine returns a machine.
func (r *harness) machine(name string) *v1alpha1.Machine {
	r.t.Helper()
	m := get(r.t, r.machines.MachineV1alpha1().Machines(namespace).Get, name)
	return m
}

// waiting returns the message of the condition Waiting of a machine, or "".
func (r *harness) waiting(name string) string {
	r.t.Helper()
	for _, c := range r.machine(name).Status.Conditions {
		if c.Type == v1alpha1.MachineWaiting {
			return c.Message
		}
	}
	return ""
}

// TestWaiting_BlockedDrain_IsInTheStatusWithinFourSeconds has a drain that a PodDisruptionBudget blocks for
// an hour. The status says it once, with one Event, and the change of the budget ends it at once.
func TestWaiting_BlockedDrain_IsInTheStatusWithinFourSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		events := r.record()
		r.create("m")
		r.start()
		time.Sleep(time.Minute)
		node := r.machine("m").Labels[v1alpha1.NodeLabelKey]
		r.blocked(node)
		r.remove("m")
		time.Sleep(4 * time.Second)
		require.Equal(t, "BudgetNeverAllows pod/default/db-"+node, r.waiting("m"))
		text := r.machine("m").Status.LastOperation.Description
		require.Contains(t, text, v1alpha1.InitiateDrain+"; waits for pod/default/db-"+node+": BudgetNeverAllows: ")
		require.Contains(t, text, "change the PodDisruptionBudget")
		version := r.machine("m").ResourceVersion
		time.Sleep(time.Hour)
		require.Equal(t, version, r.machine("m").ResourceVersion, "it is written once")
		require.Len(t, eventsOf(events, "BudgetNeverAllows"), 1)
		r.free(node)
		time.Sleep(2 * time.Second) // a step of the pods is one second
		require.False(t, r.podThere(node), "the change of the budget wakes the machine")
		time.Sleep(time.Minute)
		require.True(t, r.gone(t.Context(), "m"))
	})
}

// TestWaiting_Correction_IsTriedWithinASecond has a provider whose failures end with a change that the
// machine has to notice: of a Secret, or the annotation by which a user asks for the next attempt.
func TestWaiting_Correction_IsTriedWithinASecond(t *testing.T) {
	for name, correct := range map[string]func(r *harness){
		"Secret": func(r *harness) {
			secrets := r.secrets.CoreV1().Secrets(namespace)
			secret := get(r.t, secrets.Get, "class")
			secret.Data["token"] = []byte(time.Now().String())
			_, err := secrets.Update(r.t.Context(), secret, metav1.UpdateOptions{})
			require.NoError(r.t, err)
		},
		"retry-now": func(r *harness) {
			r.patch("m", `{"metadata":{"annotations":{"`+v1alpha1.RetryNowAnnotation+`":""}}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				r.tick = time.Second
				heal := r.cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Code: codes.ResourceExhausted})
				r.create("m")
				r.start()
				time.Sleep(time.Minute)
				require.Equal(t, "ProviderFailed ResourceExhausted", r.waiting("m"))
				require.Contains(t, r.machine("m").Status.LastOperation.Description, "next attempt at ")

				calls := r.cloud.Calls(driver.OpCreateMachine, codes.ResourceExhausted)
				correct(r)
				time.Sleep(time.Second)
				require.Equal(t, calls+1, r.cloud.Calls(driver.OpCreateMachine, codes.ResourceExhausted), "it is tried once")
				time.Sleep(time.Minute)
				require.Equal(t, calls+1, r.cloud.Calls(driver.OpCreateMachine, codes.ResourceExhausted), "and not again")
				require.NotContains(t, r.machine("m").Annotations, v1alpha1.RetryNowAnnotation)

				heal()
				correct(r)
				time.Sleep(3 * time.Second)
				require.Equal(t, v1alpha1.MachineRunning, r.phase("m"))
				require.Empty(t, r.waiting("m"))
			})
		})
	}
}
