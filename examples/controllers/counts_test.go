// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// TestOrphans_ManyClasses_OneListOfTheMachines counts the live lists of machines in five passes
// over twenty classes.
func TestOrphans_ManyClasses_OneListOfTheMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const classes, period = 20, time.Minute
		r := newHarness(t)
		r.orphans = safety.Policy{Period: period}
		var lists atomic.Int32
		clients, ok := r.machines.(*fake.Clientset)
		require.True(t, ok)
		clients.PrependReactor("list", "machines", func(clienttesting.Action) (bool, apiruntime.Object, error) {
			lists.Add(1)
			return false, nil, nil
		})
		r.create("m")
		for i := range classes {
			class, err := r.machines.MachineV1alpha1().MachineClasses(namespace).Get(t.Context(), "class", metav1.GetOptions{})
			require.NoError(t, err)
			class.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprint("class-", i)}
			_, err = r.machines.MachineV1alpha1().MachineClasses(namespace).Create(t.Context(), class, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		r.start()
		time.Sleep(10 * time.Second)
		begin := lists.Load()
		require.Positive(t, begin)
		time.Sleep(5 * period)
		took := lists.Load() - begin
		t.Logf("%d lists of the machines in 5 collections of %d classes", took, classes+1)
		require.GreaterOrEqual(t, took, int32(4))
		require.LessOrEqual(t, took, int32(10))
	})
}

// TestMachine_Created_IsNotRead counts the reads of a machine from its creation to Running. The
// writes before the creation of the VM confirm its version.
func TestMachine_Created_IsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		var reads atomic.Int32
		clients, ok := r.machines.(*fake.Clientset)
		require.True(t, ok)
		clients.PrependReactor("get", "machines", func(a clienttesting.Action) (bool, apiruntime.Object, error) {
			if get, ok := a.(clienttesting.GetAction); ok && get.GetName() == "m" { // not the probe of the API server
				reads.Add(1)
			}
			return false, nil, nil
		})
		r.start()
		r.create("m")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, reads.Load())
		require.Equal(t, v1alpha1.MachineRunning, r.phase("m"))
	})
}
