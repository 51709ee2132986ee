// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// slowLister lists the VMs of the class "other" slower than those of other classes.
type slowLister struct {
	driver.Driver
	by time.Duration
}

func (d slowLister) ListMachines(ctx context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	if r.MachineClass.Name == "other" {
		time.Sleep(d.by)
	}
	return d.Driver.ListMachines(ctx, r)
}

// otherClass creates a second class.
func (r *harness) otherClass(labels map[string]string) {
	r.t.Helper()
	api := r.machines.MachineV1alpha1().MachineClasses(namespace)
	class := get(r.t, api.Get, "class")
	class.ObjectMeta = metav1.ObjectMeta{Name: "other", Labels: labels}
	create(r.t, api.Create, class)
}

// strayNotes counts the decisions about orphans that report the Node "left".
func (r *harness) strayNotes() *atomic.Int64 {
	var n atomic.Int64
	r.observe = func(note controllers.Note) {
		if note.Kind == "orphan" && strings.Contains(note.Text, "node/left: NodeWithoutVM") {
			n.Add(1)
		}
	}
	return &n
}

// stray creates a Node without machine and VM.
func (r *harness) stray(name string, labels map[string]string) {
	r.t.Helper()
	require.NoError(r.t, r.target.Add(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.NodeSpec{ProviderID: "simulated:///default/" + name + "/1"},
	}))
}

// TestOrphans_OneClassListsLater_NodeIsReportedInEachRound has two classes whose listings end at
// different times, or begin at different times.
func TestOrphans_OneClassListsLater_NodeIsReportedInEachRound(t *testing.T) {
	for name, tc := range map[string]struct{ slower, later time.Duration }{
		"together": {}, "3 seconds slower": {slower: 3 * time.Second}, "created later": {later: 20 * time.Second}, "slower than a round may wait": {slower: 70 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				r.tick = 10 * time.Second
				r.orphans = safety.Policy{Grace: 2 * time.Minute, Period: 2 * time.Minute, MaxDeletions: 5, MaxPercent: 20}
				r.driver = slowLister{r.cloud, tc.slower}
				reported := r.strayNotes()
				lists := r.requests("list", "machines", every)
				r.create("m")
				if tc.later == 0 {
					r.otherClass(nil)
				}
				r.start()
				time.Sleep(tc.later)
				if tc.later > 0 {
					r.otherClass(nil)
				}
				r.eventually("running", func() bool { return r.phase("m") == v1alpha1.MachineRunning })
				r.stray("left", nil)
				time.Sleep(10 * time.Minute)
				before, listed := reported.Load(), lists.Load()
				time.Sleep(2 * time.Hour)
				t.Logf("%d reports and %d lists of all machines in 2 hours", reported.Load()-before, lists.Load()-listed)
				rounds := int64(2*time.Hour/(2*time.Minute+tc.slower) - 4)
				require.GreaterOrEqual(t, reported.Load()-before, rounds)
				if tc.slower < time.Minute {
					require.LessOrEqual(t, lists.Load()-listed, int32(61), "one list of all machines in each round")
				}
			})
		})
	}
}

// TestOrphans_Shard_ReportsTheNodesItCanKnow has a manager of one of two shards.
func TestOrphans_Shard_ReportsTheNodesItCanKnow(t *testing.T) {
	for label, want := range map[string]bool{"": true, "blue": true, "green": false} {
		t.Run("label "+label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := orphanHarness(t)
				r.shard = "blue"
				reported := r.strayNotes()
				r.create("m")
				r.otherClass(map[string]string{v1alpha1.ShardLabelKey: "green"})
				blue := fmt.Sprintf(`{"metadata":{"labels":{%q:"blue"}}}`, v1alpha1.ShardLabelKey)
				merge(t, r.machines.MachineV1alpha1().MachineClasses(namespace).Patch, "class", blue)
				r.patch("m", blue)
				r.start()
				r.eventually("running", func() bool { return r.phase("m") == v1alpha1.MachineRunning })
				labels := map[string]string{}
				if label != "" {
					labels[v1alpha1.ShardLabelKey] = label
				}
				r.stray("left", labels)
				time.Sleep(10 * time.Minute)
				require.Equal(t, want, reported.Load() > 5, reported.Load())
				require.Equal(t, want, reported.Load() > 0)
			})
		})
	}
}

// TestOrphans_MoreUnownedVMs_NewEvent adds VMs without a machine to a class that is held.
func TestOrphans_MoreUnownedVMs_NewEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = 10 * time.Second
		recorder := r.record()
		r.orphans = safety.Policy{Grace: time.Minute, Period: 10 * time.Minute, MaxDeletions: 5, MaxPercent: 20}
		r.start()
		r.running("m")
		lose := func(from, to int) {
			for i := from; i < to; i++ {
				r.cloud.AddVM(drivertest.VM{Namespace: namespace, Machine: fmt.Sprint("lost-", i), Class: "class"})
			}
		}
		lose(0, 3)
		time.Sleep(time.Hour)
		held := eventsOf(recorder, "OrphansHeld")
		require.Len(t, held, 1)
		require.Contains(t, held[0], "3 of 4 VMs have no machine")
		lose(3, 16)
		time.Sleep(time.Hour)
		held = eventsOf(recorder, "OrphansHeld")
		require.Len(t, held, 1, "one Event for the growth")
		require.Contains(t, held[0], "16 of 17 VMs have no machine")
	})
}
