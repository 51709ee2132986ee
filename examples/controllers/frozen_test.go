// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestFrozen_Deployment_CreatesNothingUntilItIsRepaired adds machines to the set of a deployment as
// a user, while no machine can be deleted. All controllers run.
func TestFrozen_Deployment_CreatesNothingUntilItIsRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		r.start()
		r.create("alone")
		ctx := t.Context()
		r.deploy(ctx, 2)
		frozen := func() bool { return r.deployment().Labels[v1alpha1.FreezeLabelKey] == "True" }
		r.eventually("complete", r.complete)
		time.Sleep(20 * time.Second) // in the time of the bubble, like all sleeps here

		r.control.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "delete", Resource: "machines"})
		r.addByHand(3)
		r.eventually("frozen", frozen)
		r.patchDeployment(`{"spec":{"template":{"metadata":{"annotations":{"generation":"two"}}}}}`)
		before := r.count()
		time.Sleep(90 * time.Second)
		require.Equal(t, before, r.count(), "sets and machines while it is frozen")
		require.True(t, frozen())

		r.control.ClearFaults()
		// A deletion that failed is repeated within a minute, and the sets are judged within the next.
		require.Eventually(t, func() bool { return !frozen() }, 3*time.Minute, 100*time.Millisecond, "unfrozen")
		r.eventually("rolled", r.complete)
		require.NotEqual(t, before, r.count())
	})
}

// addByHand adds machines to the only set as a user.
func (r *harness) addByHand(n int) {
	r.t.Helper()
	sets := list(r.t, r.machines.MachineV1alpha1().MachineSets(namespace).List, metav1.ListOptions{})
	require.Len(r.t, sets.Items, 1)
	set := &sets.Items[0]
	for i := range n {
		create(r.t, r.machines.MachineV1alpha1().Machines(namespace).Create, &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("byhand-", i), Labels: set.Spec.Template.Labels, CreationTimestamp: metav1.Now(),
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.SchemeGroupVersion.WithKind("MachineSet"))},
			},
			Spec: ofClass("class"),
		})
	}
}

// count returns the names of all sets and machines.
func (r *harness) count() string {
	sets := list(r.t, r.machines.MachineV1alpha1().MachineSets(namespace).List, metav1.ListOptions{})
	machines := list(r.t, r.machines.MachineV1alpha1().Machines(namespace).List, metav1.ListOptions{})
	var names []string
	for _, s := range sets.Items {
		names = append(names, s.Name)
	}
	for _, m := range machines.Items {
		names = append(names, m.Name)
	}
	return strings.Join(names, " ")
}
