// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
)

func volumeCases() []promise {
	return []promise{
		{"VolumesOfOtherSystems", "GetVolumeIDs skips a volume of another storage system without an error.", volumesOfOtherSystems, nil},
		{"VolumesInOrder", "GetVolumeIDs returns the IDs of the volumes at the cloud, in the order of the request.", volumesInOrder, nil},
	}
}

// foreign returns a volume that no cloud attaches to a VM.
func foreign() *corev1.PersistentVolumeSpec {
	return &corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"},
	}}
}

// volumes checks that GetVolumeIDs returns want for specs.
func volumes(ctx context.Context, e *env, specs []*corev1.PersistentVolumeSpec, want []string) error {
	resp, err := ask(ctx, e.Driver.GetVolumeIDs, &driver.GetVolumeIDsRequest{PVSpecs: specs})
	switch {
	case codes.Of(err) == codes.Unimplemented:
		return fmt.Errorf("%w: GetVolumeIDs is Unimplemented", errNotChecked)
	case err != nil:
		return fmt.Errorf("GetVolumeIDs: %w", err)
	case !slices.Equal(resp.VolumeIDs, want):
		return fmt.Errorf("GetVolumeIDs returned %q, want %q", resp.VolumeIDs, want)
	}
	return nil
}

func volumesOfOtherSystems(ctx context.Context, e *env) error {
	if err := volumes(ctx, e, nil, nil); err != nil {
		return err
	}
	return volumes(ctx, e, []*corev1.PersistentVolumeSpec{foreign(), {}}, nil)
}

func volumesInOrder(ctx context.Context, e *env) error {
	if len(e.Harness.Volumes) == 0 {
		return fmt.Errorf("%w: the harness has no Volumes", errNotChecked)
	}
	var specs []*corev1.PersistentVolumeSpec
	var want []string
	for _, v := range e.Harness.Volumes {
		specs = append(specs, v.Spec.DeepCopy(), foreign())
		want = append(want, v.ID)
	}
	if err := volumes(ctx, e, specs, want); err != nil {
		return err
	}
	slices.Reverse(specs)
	slices.Reverse(want)
	return volumes(ctx, e, specs, want)
}
