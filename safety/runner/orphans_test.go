// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// twoClasses is a Reader of two classes, each with a Secret of its name.
type twoClasses struct {
	missing string // the Secret that does not exist
}

func (r *twoClasses) Get(_ context.Context, o machinist.Object) (machinist.Object, error) {
	if o.GetName() == r.missing {
		return nil, nil
	}
	return &corev1.Secret{}, nil
}

func (*twoClasses) List(_ context.Context, o machinist.Object, _, _ string) (all []machinist.Object, _ error) {
	if _, node := o.(*corev1.Node); node {
		return nil, machine.ErrNoTarget
	}
	for _, name := range []string{"a", "b"} {
		class := &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		class.SecretRef = &corev1.SecretReference{Namespace: "n", Name: name}
		all = append(all, class)
	}
	return all, nil
}

// countedLists is a driver without VMs that counts the listings of each class.
type countedLists struct {
	driver.Driver
	mu sync.Mutex
	of map[string]int
}

func (d *countedLists) ListMachines(_ context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of[r.MachineClass.Name]++
	return &driver.ListMachinesResponse{}, nil
}

// TestOrphans_SecretMissingInARound_ClassIsListedOnceItExists loses the Secret of one class when a round begins.
func TestOrphans_SecretMissingInARound_ClassIsListedOnceItExists(t *testing.T) {
	t.Parallel()
	reader, lists, clock := &twoClasses{}, &countedLists{of: map[string]int{}}, clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	e := &Executor{Reader: reader, Requests: client.New(fake.NewClientset(), nil), Driver: lists, Clock: clock, Policy: safety.Policy{Period: time.Hour}}
	next, err := e.Reconcile(t.Context(), Orphans)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"a": 1, "b": 1}, lists.of)

	clock.SetTime(next)
	reader.missing = "a"
	_, err = e.Reconcile(t.Context(), Orphans)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.Equal(t, map[string]int{"a": 1, "b": 2}, lists.of, "the other class does not wait for it")
	reader.missing = ""
	_, err = e.Reconcile(t.Context(), Orphans)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, lists.of, "it does not wait for the next round")
}
