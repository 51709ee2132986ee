// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/record"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// waitEvents are the Events that say for what a machine waits.
func waitEvents(events *record.FakeRecorder) (found []string) {
	for len(events.Events) > 0 {
		if e := <-events.Events; strings.Contains(e, "has waited for ") {
			found = append(found, e)
		}
	}
	return found
}

// TestStuck_NodeDoesNotJoin_OneEventAfterFiveMinutes lets a VM boot for a quarter of an hour.
func TestStuck_NodeDoesNotJoin_OneEventAfterFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.tick = time.Second
		r.cloud = drivertest.NewCloud(drivertest.CloudOptions{BootTime: 15 * time.Minute})
		events := record.NewFakeRecorder(1000)
		r.events = events
		r.create("m")
		r.start()
		time.Sleep(5*time.Minute - 10*time.Second)
		require.Empty(t, waitEvents(events))
		time.Sleep(5 * time.Minute)
		told := waitEvents(events)
		require.Len(t, told, 1)
		require.Contains(t, told[0], "Normal WaitingForNode has waited for node/")
		time.Sleep(10 * time.Minute)
		require.Empty(t, waitEvents(events))
		require.Equal(t, v1alpha1.MachineRunning, r.phase("m"))
	})
}

// TestStuck_NormalLife_NoEvent lets machines join, live and go.
func TestStuck_NormalLife_NoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.tick = time.Second
		events := record.NewFakeRecorder(1000)
		r.events = events
		r.create("m")
		r.start()
		time.Sleep(time.Hour)
		require.Equal(t, v1alpha1.MachineRunning, r.phase("m"))
		r.remove("m")
		time.Sleep(time.Hour)
		require.True(t, r.gone(t.Context(), "m"))
		require.Empty(t, waitEvents(events))
	})
}
