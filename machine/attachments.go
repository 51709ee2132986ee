// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/machinist-dev/machinist"
)

// liveAttachments returns the attachments of a Node without a deletion timestamp, sorted by name.
// Nil attachments are skipped.
func liveAttachments(node string, attachments []*storagev1.VolumeAttachment) []*storagev1.VolumeAttachment {
	var live []*storagev1.VolumeAttachment
	for _, va := range attachments {
		if va != nil && va.Spec.NodeName == node && va.DeletionTimestamp.IsZero() {
			live = append(live, va.DeepCopy())
		}
	}
	slices.SortStableFunc(live, func(a, b *storagev1.VolumeAttachment) int { return cmp.Compare(a.Name, b.Name) })
	return live
}

// detach deletes the VolumeAttachments of a Node after a forced drain, because no kubelet unmounts
// the volumes. It does not wait until they are detached. It returns false when no attachment is
// left, or after a minute.
func (l *logic) detach(node *corev1.Node, since time.Time) (Decision, bool) {
	view := l.in.Attachments
	if view.Looked {
		since = view.AskedAt
	}
	end, live := since.Add(forcedDrain), liveAttachments(node.Name, view.Attachments)
	switch {
	case (!view.Looked || !since.IsZero()) && !l.now.Before(end), view.Looked && len(live) == 0:
		return Decision{}, false
	case view.Looked:
		return l.do(DeleteAttachments{Attachments: live}, reasonDetaching, ""), true
	}
	return hold(machinist.Hold{
		Subject: "node/" + node.Name, Reason: reasonDetaching, Message: "its VolumeAttachments were not read",
		Until: machinist.Earliest(l.now.Add(recheckAfter), end),
	}), true
}
