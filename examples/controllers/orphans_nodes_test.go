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
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
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
	class, err := api.Get(r.t.Context(), "class", metav1.GetOptions{})
	require.NoError(r.t, err)
	class.ObjectMeta = metav1.ObjectMeta{Name: "other", Labels: labels}
	_, err = api.Create(r.t.Context(), class, metav1.CreateOptions{})
	require.NoError(r.t, err)
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
				var lists atomic.Int64
				clients, ok := r.machines.(*fake.Clientset)
				require.True(t, ok)
				clients.PrependReactor("list", "machines", func(clienttesting.Action) (bool, apiruntime.Object, error) {
					lists.Add(1)
					return false, nil, nil
				})
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
					require.LessOrEqual(t, lists.Load()-listed, int64(61), "one list of all machines in each round")
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
				r := newHarness(t)
				r.tick, r.shard = time.Second, "blue"
				r.orphans = safety.Policy{Grace: time.Minute, Period: time.Minute, MaxDeletions: 5, MaxPercent: 20}
				reported := r.strayNotes()
				r.create("m")
				r.otherClass(map[string]string{v1alpha1.ShardLabelKey: "green"})
				for kind, patch := range map[string]func(data []byte) error{
					"class": func(data []byte) error {
						_, err := r.machines.MachineV1alpha1().MachineClasses(namespace).Patch(t.Context(), "class", types.MergePatchType, data, metav1.PatchOptions{})
						return err
					},
					"machine": func(data []byte) error {
						_, err := r.machines.MachineV1alpha1().Machines(namespace).Patch(t.Context(), "m", types.MergePatchType, data, metav1.PatchOptions{})
						return err
					},
				} {
					require.NoError(t, patch(fmt.Appendf(nil, `{"metadata":{"labels":{%q:"blue"}}}`, v1alpha1.ShardLabelKey)), kind)
				}
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
		recorder := record.NewFakeRecorder(1000)
		r.events = recorder
		r.orphans = safety.Policy{Grace: time.Minute, Period: 10 * time.Minute, MaxDeletions: 5, MaxPercent: 20}
		r.start()
		r.create("m")
		r.eventually("running", func() bool { return r.phase("m") == v1alpha1.MachineRunning })
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
