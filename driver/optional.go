// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// As finds an optional interface of a driver, such as [SideResourceLister],
// also through decorators: anything with a method Unwrap() Driver is looked
// behind. It returns the outermost match.
//
// Calls of what was found do not pass through the decorators in front of it:
// they have no deadline but that of their context, and are not observed.
// For a nil Driver, and if nothing matches, it returns false.
func As[T any](d Driver) (T, bool) {
	for !isNil(d) {
		if t, ok := d.(T); ok {
			return t, true
		}
		w, ok := d.(interface{ Unwrap() Driver })
		if !ok {
			break
		}
		d = w.Unwrap()
	}
	var none T
	return none, false
}

// isNil reports whether d is nil or holds a nil pointer.
func isNil(d Driver) bool {
	if d == nil {
		return true
	}
	v := reflect.ValueOf(d)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// A SideResourceLister is a [Driver] that can also say which disks, network
// interfaces and other things it made beside VMs, so that an audit finds those
// which nobody owns: without it a leftover of a failed create is invisible as
// soon as its Machine is gone. The controller calls it beside ListMachines, and deletes
// leftovers if the driver is a [SideResourceDeleter] as well; otherwise it reports them.
type SideResourceLister interface {
	// ListSideResources returns every side resource in the scope of a class,
	// whether it belongs to a VM or not. It returns all of them or an error,
	// never a part.
	ListSideResources(ctx context.Context, req *ListSideResourcesRequest) (*ListSideResourcesResponse, error)
}

// ListSideResourcesRequest asks for all side resources in the scope of a class.
type ListSideResourcesRequest struct {
	// MachineClass is the class whose scope is searched.
	MachineClass *v1alpha1.MachineClass
	// Secret holds the credentials.
	Secret *corev1.Secret
}

// String names class and Secret, and shows no content.
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

// A SideResource is something that was made for a machine beside its VM.
type SideResource struct {
	// Kind is the cloud's word for it, such as "disk". It is part of the key.
	Kind string
	// ID is unique among all of its kind.
	ID string
	// MachineName is the mark that it carries.
	MachineName string
	// ProviderID is that of the VM it belongs to. Empty means that there is none,
	// or that the driver cannot tell.
	ProviderID string
}

// A SideResourceDeleter is a [Driver] that can delete one side resource and nothing else.
// The controller calls it for leftovers: side resources whose machine and VM are gone.
type SideResourceDeleter interface {
	SideResourceLister
	// DeleteSideResource deletes the one side resource that the request names by kind and
	// ID. It never touches a VM. A side resource that belongs to an existing VM is not
	// deleted: the error is FailedPrecondition. NotFound means that there is no such side
	// resource, and is as good as OK. To repeat a call is harmless.
	DeleteSideResource(ctx context.Context, req *DeleteSideResourceRequest) (*DeleteSideResourceResponse, error)
}

// DeleteSideResourceRequest asks to delete a side resource.
type DeleteSideResourceRequest struct {
	// Resource to delete, as it was listed.
	Resource SideResource
	// MachineClass is the class whose scope the resource was listed in.
	MachineClass *v1alpha1.MachineClass
	// Secret holds the credentials.
	Secret *corev1.Secret
}

// String names resource, class and Secret, and shows no content.
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

// A MachineClassMigrator is a [Driver] that can turn a provider's own kind of
// class into a MachineClass. Only clusters that are older than MachineClass
// need it.
type MachineClassMigrator interface {
	// GenerateMachineClassForMigration fills req.MachineClass from
	// req.ProviderSpecificMachineClass. It is the one method that changes its
	// request.
	GenerateMachineClassForMigration(ctx context.Context, req *GenerateMachineClassForMigrationRequest) (*GenerateMachineClassForMigrationResponse, error)
}

// GenerateMachineClassForMigrationRequest asks to translate a class.
type GenerateMachineClassForMigrationRequest struct {
	// ProviderSpecificMachineClass is the class to translate.
	ProviderSpecificMachineClass any
	// MachineClass is filled by the driver.
	MachineClass *v1alpha1.MachineClass
	// ClassSpec says of which kind the class to translate is.
	ClassSpec *v1alpha1.ClassSpec
}

// GenerateMachineClassForMigrationResponse is empty: the result stands in the
// request.
type GenerateMachineClassForMigrationResponse struct{}
