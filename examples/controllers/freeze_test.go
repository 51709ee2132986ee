// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// probeFails makes only the probes of the target cluster fail, so that only the freeze stops the
// controllers.
func (r *harness) probeFails() {
	r.target.Inject(draintest.Fault{Kind: draintest.Unavailable, Verb: "get", Resource: "nodes", Name: "machinist-probe"})
}

// TestFreeze_ProbesFail_DeletesButCreatesNothing deletes a machine of a set and scales the set up
// while the probes fail.
func TestFreeze_ProbesFail_DeletesButCreatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		r.start()
		r.create("alone")
		ctx, api := t.Context(), r.machines.MachineV1alpha1()
		frozen := func() bool {
			return slices.ContainsFunc(r.deployment().Status.Conditions, func(c v1alpha1.MachineDeploymentCondition) bool {
				return c.Type == v1alpha1.MachineDeploymentControllerFrozen && c.Status == v1alpha1.ConditionTrue
			})
		}
		machines := func() []v1alpha1.Machine {
			return list(t, api.Machines(namespace).List, metav1.ListOptions{LabelSelector: "name=d"}).Items
		}
		r.deploy(ctx, 2)
		r.eventually("complete", r.complete)
		time.Sleep(5 * time.Minute)
		require.False(t, frozen())

		r.probeFails()
		time.Sleep(2 * time.Minute) // a period, the timeout, and the time in which objects are woken
		require.True(t, frozen(), "deployments are enqueued at the begin of a freeze")
		r.remove(machines()[0].Name)
		r.eventually("gone", func() bool { return len(machines()) == 1 })
		time.Sleep(5 * time.Minute)
		require.Len(t, machines(), 1, "a set replaces no machine that a user deleted")
		r.patchDeployment(`{"spec":{"replicas":4}}`)
		time.Sleep(5 * time.Minute)
		require.Len(t, machines(), 1)
		sets := list(t, api.MachineSets(namespace).List, metav1.ListOptions{})
		require.EqualValues(t, 2, sets.Items[0].Spec.Replicas, "a deployment grows no set")

		r.target.ClearFaults()
		r.eventually("complete", r.complete)
		require.Len(t, machines(), 4)
		require.False(t, frozen())
	})
}

// TestFreeze_ProbesFailAtStart_NoVMUntilTheySucceed starts while a server does not answer. There
// must be no decision before the first probe.
func TestFreeze_ProbesFailAtStart_NoVMUntilTheySucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		r.target = draintest.New(draintest.Options{Latency: func(c draintest.Call) time.Duration {
			if c.Name == "machinist-probe" {
				return time.Second // long enough for a loop that does not wait for it
			}
			return 0
		}})
		r.nodes = r.target.Client()
		r.probeFails()
		r.create("m")
		var first atomic.Pointer[string]
		r.observe = func(n controllers.Note) { first.CompareAndSwap(nil, &n.Kind) }
		r.start()
		time.Sleep(10 * time.Minute)
		require.Equal(t, "freeze", *first.Load())
		require.Empty(t, r.cloud.Snapshot().VMs)
		r.target.ClearFaults()
		r.eventually("running", func() bool { return r.phase("m") == v1alpha1.MachineRunning })
	})
}

// TestFreeze_ProbesFail_OrphansStay adds a VM without a machine during a freeze.
func TestFreeze_ProbesFail_OrphansStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		r.orphans = safety.Policy{Grace: time.Minute, Period: time.Minute, MaxDeletions: 5, MaxPercent: 60}
		r.start()
		r.running("m")
		r.probeFails()
		time.Sleep(2 * time.Minute)
		r.cloud.AddVM(drivertest.VM{Namespace: namespace, Machine: "lost", Class: "class"})
		time.Sleep(time.Hour)
		require.Len(t, r.cloud.Snapshot().VMs, 2, "nothing is collected during a freeze")
		r.target.ClearFaults()
		time.Sleep(15 * time.Minute)
		require.Len(t, r.cloud.Snapshot().VMs, 1)
	})
}

// slowCreations is a driver whose creations fail after 25 minutes.
type slowCreations struct{ driver.Driver }

func (slowCreations) CreateMachine(ctx context.Context, _ *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	select {
	case <-ctx.Done():
	case <-time.After(25 * time.Minute):
	}
	return nil, errors.New("no VM")
}

// TestFreeze_BeginsDuringCreation_MachineIsNotFailed begins a freeze during a call that ends after
// the creation timeout.
func TestFreeze_BeginsDuringCreation_MachineIsNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		r.driver = slowCreations{r.cloud}
		r.start()
		r.create("m")
		time.Sleep(time.Minute)
		r.probeFails()
		time.Sleep(time.Hour)
		require.NotEqual(t, v1alpha1.MachineFailed, r.phase("m"))
	})
}

// TestFreeze_DeletionByTheNode_MachineAndVMAreDeleted deletes a machine by its Node while the probes
// fail, in both ways. A freeze holds no deletion by a user.
func TestFreeze_DeletionByTheNode_MachineAndVMAreDeleted(t *testing.T) {
	for name, request := range map[string]func(ctx context.Context, r *harness) error{
		"kubectl delete node": func(ctx context.Context, r *harness) error {
			return r.nodes.CoreV1().Nodes().Delete(ctx, "m", metav1.DeleteOptions{})
		},
		"trigger-deletion-by-mcm": func(ctx context.Context, r *harness) error {
			patch := []byte(`{"metadata":{"annotations":{"` + v1alpha1.TriggerDeletionByMCM + `":"true"}}}`)
			_, err := r.nodes.CoreV1().Nodes().Patch(ctx, "m", types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				r.tick = time.Second
				var frozen atomic.Bool
				r.observe = func(n controllers.Note) {
					if n.Reason == machine.ReasonFrozen {
						frozen.Store(true)
					}
				}
				r.start()
				r.running("m")
				r.probeFails()
				time.Sleep(3 * time.Minute)
				require.NoError(t, request(t.Context(), r))
				r.eventually("gone", func() bool { return r.gone(t.Context(), "m") && r.cloud.Snapshot().Empty() })
				require.True(t, frozen.Load(), "there was no freeze")
			})
		})
	}
}
