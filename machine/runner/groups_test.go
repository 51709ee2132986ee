// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// countingReader counts the machines that are read to find siblings.
type countingReader struct {
	machinist.Reader
	read int
}

func (r *countingReader) List(ctx context.Context, o machinist.Object, index, key string) ([]machinist.Object, error) {
	found, err := r.Reader.List(ctx, o, index, key)
	if _, ok := o.(*v1alpha1.Machine); ok && (index == runners.ByController || index == runners.ByGroup) {
		r.read += len(found)
	}
	return found, err
}

// newFactories returns factories whose caches are filled by the tests.
func newFactories() Factories {
	_, clients := machinetest.New(draintest.Options{})
	return Factories{Machines: externalversions.NewSharedInformerFactory(clients, 0), Control: informers.NewSharedInformerFactory(fake.NewClientset(), 0)}
}

// TestGroups_ManyMachines_SiblingsAreReadOnlyBeforeAFailure counts the siblings that passes over
// 300 machines read. The machines belong to 10 deployments whose templates have no labels.
func TestGroups_ManyMachines_SiblingsAreReadOnlyBeforeAFailure(t *testing.T) {
	t.Parallel()
	const sets, each = 10, 30
	f := newFactories()
	reader, err := NewInformers(f)
	require.NoError(t, err)
	counting := &countingReader{Reader: reader}

	owned := func(name, kind, owner string) metav1.ObjectMeta {
		refs := []metav1.OwnerReference{{Kind: kind, Name: owner, UID: types.UID(owner), Controller: ptr.To(true)}}
		return metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name), OwnerReferences: refs}
	}
	api := f.Machines.Machine().V1alpha1()
	var machines []*v1alpha1.Machine
	for s := range sets {
		set := &v1alpha1.MachineSet{ObjectMeta: owned(fmt.Sprint("s-", s), "MachineDeployment", fmt.Sprint("d-", s))}
		require.NoError(t, api.MachineSets().Informer().GetIndexer().Add(set))
		for i := range each {
			m := &v1alpha1.Machine{ObjectMeta: owned(fmt.Sprintf("m-%d-%d", s, i), "MachineSet", set.Name)}
			require.NoError(t, api.Machines().Informer().GetIndexer().Add(m))
			machines = append(machines, m)
		}
	}
	pass := func(phase v1alpha1.MachinePhase) int {
		counting.read = 0
		for _, m := range machines {
			m = m.DeepCopy()
			m.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: phase, LastUpdateTime: metav1.NewTime(time.Unix(0, 0))}
			p := pass{Executor: &Executor{Reader: counting}}
			p.observe(t.Context(), m)
			if p.in.Siblings.Complete {
				require.Len(t, p.in.Siblings.Machines, each)
			}
		}
		return counting.read
	}
	for _, phase := range []v1alpha1.MachinePhase{"", v1alpha1.MachinePending, v1alpha1.MachineRunning, v1alpha1.MachineFailed, v1alpha1.MachineTerminating} {
		require.Zero(t, pass(phase), phase)
	}
	require.Equal(t, sets*each*each, pass(v1alpha1.MachineUnknown), "siblings of its own group only")
}

func TestAffected_ReplacementPermitted_WakesTheMachinesThatWait(t *testing.T) {
	f := newFactories()
	reader, err := NewInformers(f)
	require.NoError(t, err)
	for name, phase := range map[string]v1alpha1.MachinePhase{"runs": v1alpha1.MachineRunning, "waits": v1alpha1.MachineUnknown} {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}}
		m.Status.CurrentStatus.Phase = phase
		require.NoError(t, f.Machines.Machine().V1alpha1().Machines().Informer().GetIndexer().Add(m))
	}
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d"}}
	permitted := d.DeepCopy()
	permitted.Annotations = map[string]string{v1alpha1.ReplaceUntilAnnotation: "2026-03-01T12:00:00Z"}
	require.Equal(t, map[types.NamespacedName]time.Duration{{Namespace: "n", Name: "waits"}: 0}, Affected(t.Context(), reader, d, permitted))
	require.Empty(t, Affected(t.Context(), reader, permitted, permitted))
	require.Empty(t, Affected(t.Context(), reader, permitted, d))
	require.Empty(t, Affected(t.Context(), reader, (*v1alpha1.MachineSet)(nil), (*v1alpha1.MachineSet)(nil)))
}
