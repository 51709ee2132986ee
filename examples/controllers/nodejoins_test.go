// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestMachine_NodeMissingInCache_IsReadBeforeTheDeletion asserts that a deletion finds a Node which
// joined just before it.
func TestMachine_NodeMissingInCache_IsReadBeforeTheDeletion(t *testing.T) {
	control, machines := machinetest.New(draintest.Options{})
	target := draintest.New(draintest.Options{})
	require.NoError(t, target.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
	cfg := &Config{Machines: machines, Control: control.Client(), Target: target.Client(), Driver: drivertest.NewCloud(drivertest.CloudOptions{})}
	require.NoError(t, cfg.complete())
	r := newMachines(cfg, newCaches(cfg))
	r.node = func(name string) (*corev1.Node, error) {
		return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
	}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u", Labels: map[string]string{v1alpha1.NodeLabelKey: "n"}}}
	require.Nil(t, r.observeNode(t.Context(), m, machine.VMView{}).Node, "the cache is enough for a machine that stays")
	m.DeletionTimestamp = &metav1.Time{Time: cfg.Clock.Now()}
	view := r.observeNode(t.Context(), m, machine.VMView{})
	require.NotNil(t, view.Node)
	require.True(t, view.Looked)
}
