// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestMachineDeployment_NewSetRelabeled_IsNotExpected relabels a set after its creation as another
// client. The set no longer belongs to the deployment, and the expectation is fulfilled once the
// cache shows it.
func TestMachineDeployment_NewSetRelabeled_IsNotExpected(t *testing.T) {
	t.Parallel()
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d", UID: "u"}}
	set := func(version string) *v1alpha1.MachineSet {
		return &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "s", ResourceVersion: version}}
	}
	_, machines := machinetest.New(draintest.Options{})
	for version, pending := range map[string]int{"6": 1, "7": 0, "8": 0} {
		r := &machineDeploymentReconciler{
			cfg:    &Config{SetClient: machines},
			setsOf: func(string) []*v1alpha1.MachineSet { return nil },
			set: func(namespace, name string) (*v1alpha1.MachineSet, error) {
				require.Equal(t, "n/s", namespace+"/"+name)
				return set(version), nil
			},
		}
		r.expect(d, func(e machine.Expectations) machine.Expectations { return e.Updated(set("7"), time.Unix(0, 0)) })
		in, _ := r.observe(d)
		require.Len(t, in.Expectations, pending, "the cache shows version %s", version)
	}
}

// TestMachineDeployment_SetReleased_IsInObservation checks that released sets are observed, because
// they limit how many sets the deployment creates while another client removes labels.
func TestMachineDeployment_SetReleased_IsInObservation(t *testing.T) {
	t.Parallel()
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d", UID: "u"}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}
	s := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "s", UID: "s", Annotations: map[string]string{"machinist.dev/released-by": "u"},
	}}
	_, machines := machinetest.New(draintest.Options{})
	r := &machineDeploymentReconciler{cfg: &Config{SetClient: machines}, setsOf: func(key string) []*v1alpha1.MachineSet {
		if key == "n" {
			return []*v1alpha1.MachineSet{s}
		}
		return nil
	}}
	in, _ := r.observe(d)
	require.Empty(t, in.Sets)
	require.Equal(t, []*v1alpha1.MachineSet{s}, in.Released)
}
