// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"regexp"
	"slices"
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"
)

// notInFinalizers are the characters of driver names that finalizers cannot contain.
var notInFinalizers = regexp.MustCompile(`[^a-zA-Z0-9-]`)

// finalizerOf returns the finalizer of an attacher, by the naming of external CSI attachers.
func finalizerOf(driver string) string {
	name := notInFinalizers.ReplaceAllString(driver, "-")
	if strings.HasSuffix(name, "-") {
		name += "X"
	}
	return "external-attacher/" + name
}

// attach returns what an attacher does with an attachment of its driver. It adds a finalizer before
// it attaches, attaches only to a VM that is up, and removes the finalizer after it has detached.
// The attacher does not depend on the kubelet, so that a silent Node does not stop it.
func attach(a *storagev1.VolumeAttachment, up bool, p pace, now time.Time) plan {
	var out plan
	finalizer := finalizerOf(a.Spec.Attacher)
	guarded := slices.Contains(a.Finalizers, finalizer)
	switch {
	case a.DeletionTimestamp != nil && guarded:
		if at := a.DeletionTimestamp.Add(p.detach); at.After(now) {
			out.until(at)
			return out
		}
		detached := a
		if a.Status.Attached {
			detached = a.DeepCopy()
			detached.Status.Attached = false
			out.do(reportAttachment{a, detached})
		}
		released := detached.DeepCopy()
		released.Finalizers = slices.DeleteFunc(released.Finalizers, func(f string) bool { return f == finalizer })
		out.do(guardAttachment{detached, released})
	case a.DeletionTimestamp != nil || a.Status.Attached || !up:
	default:
		held := a
		if !guarded {
			held = a.DeepCopy()
			held.Finalizers = append(held.Finalizers, finalizer)
			out.do(guardAttachment{a, held})
		}
		if at := a.CreationTimestamp.Add(p.attach); at.After(now) {
			out.until(at)
			return out
		}
		attached := held.DeepCopy()
		attached.Status.Attached = true
		out.do(reportAttachment{held, attached})
	}
	return out
}
