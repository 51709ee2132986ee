// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// dayOnly creates no VMs at night. It embeds a driver and replaces one method.
type dayOnly struct {
	driver.Driver
	night bool
}

// Unwrap returns the embedded driver, so that driver.As finds its optional interfaces.
func (d dayOnly) Unwrap() driver.Driver { return d.Driver }

func (d dayOnly) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	if d.night {
		return nil, status.Error(codes.Unavailable, "no VMs are created at night")
	}
	return d.Driver.CreateMachine(ctx, req)
}

// A wrapper embeds a driver and replaces some of its methods.
func Example_wrapper() {
	cloud := drivertest.NewCloud(drivertest.CloudOptions{})
	req := &driver.CreateMachineRequest{
		Machine:      &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}},
		MachineClass: cloud.MachineClass("shop", "small"),
		Secret:       cloud.Secret("shop", "small"),
	}
	_, err := dayOnly{Driver: cloud, night: true}.CreateMachine(context.Background(), req)
	fmt.Println(codes.Of(err))
	resp, err := dayOnly{Driver: cloud}.CreateMachine(context.Background(), req)
	fmt.Println(resp.ProviderID, err)
	_, ok := driver.As[driver.SideResourceLister](dayOnly{Driver: cloud})
	fmt.Println("lists side resources:", ok)
	fmt.Println(req)
	// Output:
	// Unavailable
	// simulated:///shop/web-1/1 <nil>
	// lists side resources: true
	// CreateMachine(machine "shop/web-1", class "shop/small", secret "shop/small" with 2 keys)
}
