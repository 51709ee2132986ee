// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// statusWrites answers the status writes of a resource with an error, and records their times.
type statusWrites struct {
	mu    sync.Mutex
	err   error
	times []time.Time
	told  []string // the errors of passes
}

// answer answers the next writes with err. Nil means that they are carried out.
func (w *statusWrites) answer(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

func (w *statusWrites) seen() ([]time.Time, []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.times, w.told
}

// failStatus returns the status writes of a resource, all of which fail.
func failStatus(r *harness, resource string, err error) *statusWrites {
	w := &statusWrites{err: err}
	r.answer("update", resource, func(a clienttesting.Action) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if a.GetSubresource() != "status" {
			return nil
		}
		w.times = append(w.times, time.Now())
		return w.err
	})
	r.observe = func(n controllers.Note) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if n.Err != nil && n.Kind+"s" == resource {
			w.told = append(w.told, n.Err.Error())
		}
	}
	return w
}

// emptySetOrDeployment creates a set or deployment without replicas.
func emptySetOrDeployment(r *harness, resource string) {
	if resource == "machinedeployments" {
		r.deploy(r.t.Context(), 0)
		return
	}
	set := setOfOne(map[string]string{"name": "s"})
	set.Spec.Replicas = 0
	create(r.t, r.machines.MachineV1alpha1().MachineSets(namespace).Create, set)
}

// TestStatus_WritesFailForHours_OneInAPassWithGrowingPauses checks that a write that fails is repeated by the
// queue alone: once in a pass, after pauses that grow to a minute, and for as long as it fails.
func TestStatus_WritesFailForHours_OneInAPassWithGrowingPauses(t *testing.T) {
	for _, resource := range []string{"machinesets", "machinedeployments"} {
		t.Run(resource, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				r.tick = time.Second
				w := failStatus(r, resource, apierrors.NewInternalError(errors.New("disk full")))
				emptySetOrDeployment(r, resource)
				r.start()
				time.Sleep(3 * time.Hour)
				times, told := w.seen()
				require.Greater(t, len(times), 3*55, "MCM drops an object after 15 failures")
				require.Len(t, told, len(times), "each pass has one write")
				for i := 2; i < len(times); i++ {
					gap, before := times[i].Sub(times[i-1]), times[i-1].Sub(times[i-2])
					require.GreaterOrEqual(t, gap, min(before, time.Minute), "pause %d", i)
					require.LessOrEqual(t, gap, time.Minute, "pause %d", i)
				}
				w.answer(nil)
				time.Sleep(time.Minute)
				after, _ := w.seen()
				require.Greater(t, len(after), len(times))
				if resource == "machinesets" {
					set := get(t, r.machines.MachineV1alpha1().MachineSets(namespace).Get, "s")
					require.Equal(t, set.Generation, set.Status.ObservedGeneration)
				}
			})
		})
	}
}

// TestStatus_ObjectDeletedMeanwhile_PassEndsAndIsNotRepeated answers status writes with NotFound while the
// cache shows the object.
func TestStatus_ObjectDeletedMeanwhile_PassEndsAndIsNotRepeated(t *testing.T) {
	for _, resource := range []string{"machinesets", "machinedeployments"} {
		t.Run(resource, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				r.tick = time.Second
				w := failStatus(r, resource, apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupName, Resource: resource}, "deleted"))
				emptySetOrDeployment(r, resource)
				r.start()
				time.Sleep(10 * time.Minute)
				times, told := w.seen()
				require.Empty(t, told, "NotFound is no error of a pass")
				require.NotEmpty(t, times)
				require.Less(t, len(times), 10, "a pass that is repeated after a failure makes 20 writes")
			})
		})
	}
}
