// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// csiDriver is the CSI driver of all volumes.
	csiDriver = "csi.example.com"
	// detachTime is how long its attacher takes to detach a volume.
	detachTime = 3 * time.Second
	// attacherFinalizer is on attachments whose volume may be attached.
	attacherFinalizer = "external-attacher/csi-example-com"
)

// attachVolumes plays the external attacher of the driver for the Nodes of a namespace until the test
// ends.
func attachVolumes(t *testing.T, client kubernetes.Interface, namespace string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			list, err := client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
			for i := 0; err == nil && i < len(list.Items); i++ {
				if a := &list.Items[i]; a.Spec.Attacher == csiDriver && strings.HasPrefix(a.Spec.NodeName, namespace+"-") {
					attachVolume(ctx, client, a)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// attachVolume does the next step for an attachment. What fails is repeated.
func attachVolume(ctx context.Context, client kubernetes.Interface, a *storagev1.VolumeAttachment) {
	api := client.StorageV1().VolumeAttachments()
	switch guarded := slices.Contains(a.Finalizers, attacherFinalizer); {
	case a.DeletionTimestamp != nil && guarded && time.Since(a.DeletionTimestamp.Time) > detachTime:
		_, _ = api.Patch(ctx, a.Name, mergePatch, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	case a.DeletionTimestamp == nil && !guarded:
		_, _ = api.Patch(ctx, a.Name, mergePatch, []byte(`{"metadata":{"finalizers":["`+attacherFinalizer+`"]}}`), metav1.PatchOptions{})
	case a.DeletionTimestamp == nil && !a.Status.Attached:
		_, _ = api.Patch(ctx, a.Name, mergePatch, []byte(`{"status":{"attached":true}}`), metav1.PatchOptions{}, "status")
	}
}
