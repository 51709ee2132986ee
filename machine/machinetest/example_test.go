// SPDX-License-Identifier: Apache-2.0

package machinetest_test

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// An update of an old version of an object is a conflict, as on an API server.
func ExampleNew() {
	ctx := context.Background()
	_, machines := machinetest.New(draintest.Options{})
	api := machines.MachineV1alpha1().Machines("default")

	m, err := api.Create(ctx, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m-1"}}, metav1.CreateOptions{})
	if err != nil {
		panic(err)
	}
	newer := m.DeepCopy()
	newer.Labels = map[string]string{v1alpha1.NodeLabelKey: "node-1"}
	if _, err = api.Update(ctx, newer, metav1.UpdateOptions{}); err != nil {
		panic(err)
	}
	_, err = api.Update(ctx, m, metav1.UpdateOptions{})
	fmt.Println(apierrors.IsConflict(err))
	// Output: true
}
