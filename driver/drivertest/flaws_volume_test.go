// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"slices"

	"github.com/machinist-dev/machinist/driver"
)

// volumeFlaws are the flaws of one operation.
var volumeFlaws = map[string]flaw{
	"chokes on volumes of others": {
		breakIt: func(b *broken) {
			b.volumes = func(_ context.Context, r *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
				resp := &driver.GetVolumeIDsResponse{}
				for _, s := range r.PVSpecs {
					resp.VolumeIDs = append(resp.VolumeIDs, s.CSI.VolumeHandle)
				}
				return resp, nil
			}
		},
		caught: []string{"VolumesOfOtherSystems", "InvalidRequest"},
	},
	"sorts the volumes": {
		breakIt: func(b *broken) {
			b.volumes = answering(b.Cloud.GetVolumeIDs, func(resp *driver.GetVolumeIDsResponse) { slices.Sort(resp.VolumeIDs); slices.Reverse(resp.VolumeIDs) })
		},
		caught: []string{"VolumesInOrder"},
	},
	"finds no volume": {
		breakIt: func(b *broken) {
			b.volumes = func(context.Context, *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
				return &driver.GetVolumeIDsResponse{}, nil
			}
		},
		caught: []string{"VolumesInOrder"},
	},
}
