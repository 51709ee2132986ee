// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"slices"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/machinist-dev/machinist"
)

// The names of the indexes of what a drain reads.
const (
	OnNode   = "drain.machinist.dev/node"
	OfVolume = "drain.machinist.dev/volume"
)

// Attachments reads the VolumeAttachments of a Node, and those of PersistentVolumes to other Nodes.
func Attachments(ctx context.Context, from machinist.Reader, node string, volumes ...string) ([]*storagev1.VolumeAttachment, error) {
	all, err := List[*storagev1.VolumeAttachment](ctx, from, OnNode, node)
	if err != nil {
		return nil, err
	}
	for _, volume := range volumes {
		of, err := List[*storagev1.VolumeAttachment](ctx, from, OfVolume, volume)
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(of, func(a *storagev1.VolumeAttachment) bool { return a.Spec.NodeName == node })...)
	}
	return all, nil
}
