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

// liveAttachments returns the attachments of a Node without a deletion timestamp, by
// name. Nil attachments and those of other Nodes are left out.
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

// detach deletes what says that volumes are attached to a Node that was drained by
// force since then, and returns false when that is over: nobody is there to unmount
// them. That they are detached is not waited for.
func (l *logic) detach(node *corev1.Node, since time.Time) (Decision, bool) {
	if l.in.Attachments.Looked {
		return l.forceDetach(node)
	}
	end := since.Add(forcedDrain)
	if !l.now.Before(end) {
		return Decision{}, false
	}
	return hold(machinist.Hold{
		Subject: "node/" + node.Name, Reason: ReasonDetaching, Message: "nobody has looked for its volume attachments",
		Until: machinist.Earliest(l.now.Add(actAgain), end),
	}), true
}

// forceDetach deletes what says that volumes are attached. What could not be
// deleted for a minute is left.
func (l *logic) forceDetach(node *corev1.Node) (Decision, bool) {
	live, asked := liveAttachments(node.Name, l.in.Attachments.Attachments), l.in.Attachments.AskedAt
	if len(live) == 0 || !asked.IsZero() && !l.now.Before(asked.Add(forcedDrain)) {
		return Decision{}, false
	}
	return l.do(DeleteAttachments{Attachments: live}, ReasonDetaching, ""), true
}
