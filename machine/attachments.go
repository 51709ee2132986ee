// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// LiveAttachments returns the attachments of a Node that nobody deletes yet, by
// name. Nil attachments and those of other Nodes are left out.
func LiveAttachments(node string, attachments []*storagev1.VolumeAttachment) []Attachment {
	var live []Attachment
	for _, va := range ofNode(node, attachments) {
		if va.DeletionTimestamp.IsZero() {
			live = append(live, Attachment{Name: va.Name, UID: va.UID})
		}
	}
	return live
}

// ofNode returns the attachments of a Node, by name.
func ofNode(node string, attachments []*storagev1.VolumeAttachment) []*storagev1.VolumeAttachment {
	var own []*storagev1.VolumeAttachment
	for _, va := range attachments {
		if va != nil && va.Spec.NodeName == node {
			own = append(own, va)
		}
	}
	slices.SortStableFunc(own, func(a, b *storagev1.VolumeAttachment) int { return cmp.Compare(a.Name, b.Name) })
	return own
}

// detach has the volumes of a Node detached that has been drained since then, and
// returns false when that is over.
//
// After a drain that respected everything the attacher detaches the volumes of the
// pods that have gone, and is waited for until the detach timeout. Volumes of pods
// that stay, such as those of a DaemonSet, are attached until the VM is gone, so
// they cost the whole of that timeout. After a drain by force nobody is there to
// unmount: what says that volumes are attached is deleted, and that they are
// detached is not waited for.
func (l *life) detach(node *corev1.Node, mode DrainMode, force bool, since time.Time) (Decision, bool) {
	patience := l.p.DetachTimeout
	if force {
		patience = forcedDrain
	}
	var end time.Time
	if patience > 0 {
		end = since.Add(patience)
	}
	over := !end.IsZero() && !l.now.Before(end)
	switch {
	case over && !(force && l.in.Attachments.Looked):
		return Decision{}, false
	case !l.in.Attachments.Looked:
		return hold(Hold{
			Subject: "node/" + node.Name, Reason: ReasonDetaching, Message: "nobody has looked for its volume attachments",
			Until: earliest(l.now.Add(actAgain), end),
		}), true
	case force:
		return l.forceDetach(node)
	}
	attached := ofNode(node.Name, l.in.Attachments.Attachments)
	if len(attached) == 0 {
		return Decision{}, false
	}
	if !mode.ForceAt.IsZero() {
		end = earliest(end, mode.ForceAt)
	}
	return l.waitForDetach(attached, since, end), true
}

// forceDetach deletes what says that volumes are attached. What could not be
// deleted for a minute is left.
func (l *life) forceDetach(node *corev1.Node) (Decision, bool) {
	live, asked := LiveAttachments(node.Name, l.in.Attachments.Attachments), l.in.Attachments.AskedAt
	if len(live) == 0 || !asked.IsZero() && !l.now.Before(asked.Add(forcedDrain)) {
		return Decision{}, false
	}
	return l.do(DeleteAttachments{Attachments: live}, ReasonDetaching, ""), true
}

// waitForDetach waits for attachments to vanish, and tells if that takes long.
func (l *life) waitForDetach(attached []*storagev1.VolumeAttachment, since, end time.Time) Decision {
	d := Decision{Reason: ReasonDetaching, NextCheck: end}
	for _, va := range attached {
		h := Hold{Subject: "volumeattachment/" + va.Name, Reason: ReasonDetaching, Until: end}
		if pv := va.Spec.Source.PersistentVolumeName; pv != nil {
			h.Message = fmt.Sprintf("volume %s is attached", *pv)
		}
		d.Holds = append(d.Holds, h)
	}
	op := l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateProcessing, v1alpha1.InitiateDrain+"; "+waitsFor(d.Holds))
	last := l.m.Status.LastOperation
	if sameOperation(op, last) {
		return d
	}
	due := since
	if last.LastUpdateTime.After(due) {
		due = last.LastUpdateTime.Time
	}
	if due = due.Add(tellAgain); !l.now.Before(due) {
		return l.recordOperation(ReasonDetaching, op)
	}
	d.NextCheck = earliest(d.NextCheck, due)
	return d
}
