// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestMachineSet_CreateResponseUncertain_NoSurplusMachine answers a creation with 503 and
// Retry-After, or AlreadyExists, although it was carried out. client-go repeats such a POST.
func TestMachineSet_CreateResponseUncertain_NoSurplusMachine(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "machines"}
	for name, answer := range map[string]error{
		"unavailable":    apierrors.NewServiceUnavailable("503"),
		"already exists": apierrors.NewAlreadyExists(resource, "m"),
		"quota":          apierrors.NewForbidden(resource, "m", fmt.Errorf("exceeded quota")),
		"throttled":      apierrors.NewTooManyRequests("later", 1),
	} {
		for _, happened := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, carried out %t", name, happened), func(t *testing.T) {
				t.Parallel()
				set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s", UID: "uid-s", Finalizers: []string{v1alpha1.MCMFinalizerName}}}
				set.Spec = v1alpha1.MachineSetSpec{Replicas: 3, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}}
				set.Spec.Template = v1alpha1.MachineTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "w"}}, Spec: machineSpec()}
				client, answered := fake.NewSimpleClientset(set), false
				client.PrependReactor("create", "machines", func(a clienttesting.Action) (bool, runtime.Object, error) {
					if answered {
						return false, nil, nil
					}
					answered = true
					if happened {
						m := a.(clienttesting.CreateAction).GetObject().(*v1alpha1.Machine) //nolint:forcetypeassert // the action is a creation
						require.NoError(t, client.Tracker().Add(m))
					}
					return true, nil, answer
				})
				cfg := &Config{SetClient: client, Clock: clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0)), Random: rand.Float64}
				r := &machineSetReconciler{
					cfg: cfg, loop: &loop{kind: "machineset", cfg: cfg},
					written:    newWritten[*v1alpha1.MachineSet](func(types.UID) bool { return true }),
					machinesOf: func(string) []*v1alpha1.Machine { return nil }, // a cache that shows nothing yet
					set:        func(string, string) (*v1alpha1.MachineSet, error) { return set, nil },
					machine: func(_, name string) (*v1alpha1.Machine, error) {
						return nil, apierrors.NewNotFound(resource, name)
					},
				}
				for range 5 {
					_, _ = r.pass(t.Context(), cache.NewObjectName(ns, "s"))
				}
				list, err := client.MachineV1alpha1().Machines(ns).List(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				require.Len(t, list.Items, 3)
				require.Len(t, r.memory.get(set.UID).expected.Creates(), 3)
			})
		}
	}
}

// TestLoop_NextCheckInThePast_WaitsBeforeTheNextPass checks that a next check in the past does not
// start a pass at once.
func TestLoop_NextCheckInThePast_WaitsBeforeTheNextPass(t *testing.T) {
	t.Parallel()
	require.Equal(t, overdue, pause(0))
	require.Equal(t, overdue, pause(-time.Hour))
	require.Equal(t, time.Millisecond, pause(time.Millisecond))
}
