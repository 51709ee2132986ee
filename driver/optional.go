// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A SideResourceLister is a [Driver] that lists the disks, network interfaces and other objects
// that it creates for VMs. The controller finds side resources without a machine with it. It
// deletes them if the driver is a [SideResourceDeleter], and otherwise reports them.
type SideResourceLister interface {
	// ListSideResources returns every side resource in the scope of a class, with and without
	// a VM. It returns all of them or an error.
	ListSideResources(ctx context.Context, req *ListSideResourcesRequest) (*ListSideResourcesResponse, error)
}

// ListSideResourcesRequest is the request for all side resources in the scope of a class.
type ListSideResourcesRequest struct {
	// MachineClass is the class whose scope is searched.
	MachineClass *v1alpha1.MachineClass
	// Secret holds the credentials.
	Secret *corev1.Secret
}

// String returns the names of class and Secret, without their content.
func (r ListSideResourcesRequest) String() string {
	return "ListSideResources(" + classAndSecret(r.MachineClass, r.Secret) + ")"
}

// Format prints [ListSideResourcesRequest.String] for every verb.
func (r ListSideResourcesRequest) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.String()) }

// LogValue returns [ListSideResourcesRequest.String] for slog.
func (r ListSideResourcesRequest) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalLog returns [ListSideResourcesRequest.String] for logr.
func (r ListSideResourcesRequest) MarshalLog() any { return r.String() }

// ListSideResourcesResponse has all side resources in the scope of a class.
type ListSideResourcesResponse struct {
	// Resources in any order.
	Resources []SideResource
}

// A SideResource is an object created for a machine in addition to its VM.
type SideResource struct {
	// Kind in the words of the cloud, such as "disk". Kind and ID are the key.
	Kind string `json:"kind"`
	// ID is unique within the kind.
	ID string `json:"id"`
	// MachineName is the name of its machine.
	MachineName string `json:"machineName"`
	// ProviderID of its VM. Empty means that it has no VM, or that the driver does not know.
	ProviderID string `json:"providerID,omitempty"`
}

// A SideResourceDeleter is a [Driver] that deletes single side resources. The controller calls
// it for side resources without a machine and without a VM.
type SideResourceDeleter interface {
	SideResourceLister
	// DeleteSideResource deletes the side resource with the kind and ID of the request, and
	// no VM. For a side resource of an existing VM it returns FailedPrecondition. NotFound
	// means that it does not exist, which is a success. It may be repeated.
	DeleteSideResource(ctx context.Context, req *DeleteSideResourceRequest) (*DeleteSideResourceResponse, error)
}

// DeleteSideResourceRequest is the request to delete a side resource.
type DeleteSideResourceRequest struct {
	// Resource to delete, as listed.
	Resource SideResource
	// MachineClass is the class for which the resource was listed.
	MachineClass *v1alpha1.MachineClass
	// Secret holds the credentials.
	Secret *corev1.Secret
}

// String returns the names of resource, class and Secret, without their content.
func (r DeleteSideResourceRequest) String() string {
	return fmt.Sprintf("DeleteSideResource(%s %q of machine %q, %s)", r.Resource.Kind, r.Resource.ID, r.Resource.MachineName, classAndSecret(r.MachineClass, r.Secret))
}

// Format prints [DeleteSideResourceRequest.String] for every verb.
func (r DeleteSideResourceRequest) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, r.String())
}

// LogValue returns [DeleteSideResourceRequest.String] for slog.
func (r DeleteSideResourceRequest) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalLog returns [DeleteSideResourceRequest.String] for logr.
func (r DeleteSideResourceRequest) MarshalLog() any { return r.String() }

// DeleteSideResourceResponse is empty.
type DeleteSideResourceResponse struct{}
