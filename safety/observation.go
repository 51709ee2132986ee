// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// AllNamespaces as [Observation.Namespace] says that the machines of every
// namespace were read. It is no valid name, so that the empty one can mean that
// nothing is proven.
const AllNamespaces = "*"

// Observation is what was seen. The zero Observation is a world that nobody has
// looked at; on it nothing is done.
type Observation struct {
	// Listings of VMs, at most one for each class, in any order. Classes without
	// one are not touched, nor is what is remembered of them.
	Listings []Listing
	// Machines that exist, those being deleted among them. They must have been
	// read after the VMs of every listing that is to be acted on. A nil machine
	// makes the view incomplete.
	Machines View[*v1alpha1.Machine]
	// Nodes of the cluster that the machines join. Those without a machine and without a
	// VM are reported: give them only together with the listings of all classes. The zero
	// View reports none.
	Nodes View[*corev1.Node]
	// Namespace whose machines were read, or [AllNamespaces]. Listings of classes
	// in another namespace are held; empty holds all. If classes of several
	// namespaces share their VMs, only AllNamespaces sees all owners.
	Namespace string
}

// Listing is what the driver said of the VMs in the scope of one class.
type Listing struct {
	// Class that was asked for.
	Class types.NamespacedName
	// VMs in its scope, those of other classes of the same scope among them. Two
	// classes may list the same VM.
	VMs View[VM]
	// SideResources in its scope. The zero View means that the driver lists none.
	SideResources View[driver.SideResource]
	// DeletesSideResources says that the driver can delete them. Otherwise they are only
	// reported.
	DeletesSideResources bool
	// Problem says for people why the view is not complete. It decides nothing.
	Problem string
	// Unsupported says that this driver cannot list: there is nothing to do, and
	// no reason to ask again.
	Unsupported bool
}

// VM is one entry of a listing.
type VM struct {
	// ProviderID is the identity of the VM. Empty identifies none, and is held.
	ProviderID string
	// MachineName is the mark that the VM carries. A VM without one is held.
	MachineName string
}

// List turns an answer of the driver's ListMachines into a [Listing]: vms maps
// provider IDs to names of machines, nil means none, and err is the error of the
// call. asOf is when the answer had come. An error makes the listing incomplete,
// whatever came along with it; its code alone is told on. Unimplemented means
// that the driver cannot list.
func NewListing(class types.NamespacedName, vms map[string]string, err error, asOf time.Time) Listing {
	l := Listing{Class: class, VMs: View[VM]{AsOf: asOf, Complete: err == nil}}
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
