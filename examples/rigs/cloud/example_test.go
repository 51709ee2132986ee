// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/rigs/cloud"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A cloud in one process, and a driver for it in another.
func Example() {
	simulated := drivertest.NewCloud(drivertest.CloudOptions{Quota: 1})
	server := httptest.NewServer(cloud.Handler(simulated))
	defer server.Close()

	d, err := cloud.Dial(server.URL)
	if err != nil {
		panic(err)
	}
	defer d.Close()
	class, secret := simulated.MachineClass("shoot", "small"), simulated.Secret("shoot", "small")
	for _, name := range []string{"machine-a", "machine-b"} {
		response, err := d.CreateMachine(context.Background(), &driver.CreateMachineRequest{
			Machine: &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name}}, MachineClass: class, Secret: secret,
		})
		if err != nil {
			fmt.Println(name, codes.Of(err))
			continue
		}
		fmt.Println(name, response.ProviderID)
	}
	fmt.Println("VMs:", len(simulated.Snapshot().VMs))
	// Output:
	// machine-a simulated:///shoot/machine-a/1
	// machine-b ResourceExhausted
	// VMs: 1
}
