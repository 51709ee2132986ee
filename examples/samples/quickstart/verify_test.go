// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/rigs/audit"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestVerify_BoundViolated_ReturnsError(t *testing.T) {
	w := newWorld(settings{speed: 1000}, never)
	_, err := w.verify()
	require.NoError(t, err)
	m, err := w.machines.MachineV1alpha1().Machines("default").Create(t.Context(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.cloud.AddVM(drivertest.VM{Namespace: m.Namespace, Machine: m.Name, UID: string(m.UID)})
	f, err := w.verify()
	var violation audit.Violation
	require.ErrorAs(t, err, &violation)
	require.Equal(t, audit.Guarded, violation.Bound)
	require.ErrorContains(t, err, "the cloud is not empty")
	require.Equal(t, 1, f.writes)
	require.Equal(t, 1, f.Machines)
}
