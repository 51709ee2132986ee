// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// AllNamespaces as [Observation.Namespace] means that the machines of every namespace were
// read.
const AllNamespaces = "*"

// Observation is the input of [Step]. With the zero value nothing is deleted.
type Observation struct {
	// Listings of VMs, at most one for each class, in any order. For a class without a
	// listing nothing changes.
	Listings []Listing
	// Machines are all machines, including those being deleted. Read them after the VMs of
	// every listing. AsOf is the time of the request: a cache that has synced once may be
	// older than that. A nil machine makes the list incomplete.
	Machines drain.List[*v1alpha1.Machine]
	// Nodes of the target cluster. A Node without a machine and without a VM is reported.
	// The zero list reports none.
	Nodes drain.List[*corev1.Node]
	// Classes are all classes that are listed, in this step or in others. A Node is reported
	// if the last listing of each lacks its VM, and is at most two [Policy.Period] old. Without
	// classes none is reported.
	Classes []types.NamespacedName
	// Namespace is the namespace whose machines were read, or [AllNamespaces]. Classes in
	// other namespaces are held, and empty holds all. AllNamespaces is required if classes
	// of several namespaces share their VMs.
	Namespace string
}

// Listing is the result of ListMachines and ListSideResources for one class.
type Listing struct {
	// Class that was listed.
	Class types.NamespacedName
	// VMs in the scope of the class, including VMs of other classes of that scope. Two
	// classes may list the same VM. AsOf is the time of the response. Complete means that all
	// regions were read.
	VMs drain.List[VM]
	// SideResources in the scope of the class. The zero list means that the driver lists none.
	SideResources drain.List[driver.SideResource]
	// DeletesSideResources reports that the driver can delete side resources. If false, they
	// are only reported.
	DeletesSideResources bool
	// Problem describes why the list is incomplete. It appears in messages only.
	Problem string
	// unsupported reports that the driver cannot list VMs.
	Unsupported bool
}

// VM is one entry of a listing.
type VM struct {
	// ProviderID identifies the VM. A VM without it is held.
	ProviderID string
	// MachineName is the name of its machine. A VM without it is held.
	MachineName string
}

// NewListing returns the [Listing] for a response of ListMachines. vms maps provider IDs to
// machine names, and nil means none. err is the error of the call. asOf is the time of the
// response. An error makes the listing incomplete; Problem has its code without its text.
// The code Unimplemented makes it unsupported.
func NewListing(class types.NamespacedName, vms map[string]string, err error, asOf time.Time) Listing {
	l := Listing{Class: class, VMs: drain.List[VM]{AsOf: asOf, Complete: err == nil}}
	switch code := codes.Of(err); code {
	case codes.OK:
	case codes.Unimplemented:
		l.Unsupported = true
		return l
	default:
		l.Problem = "the listing failed with " + code.String()
		return l
	}
	for id, name := range vms {
		l.VMs.Items = append(l.VMs.Items, VM{ProviderID: id, MachineName: name})
	}
	return l
}
