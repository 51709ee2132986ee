// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"regexp"
	"slices"
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"
)

// notInFinalizers is what of a driver's name cannot be in that of its finalizer.
var notInFinalizers = regexp.MustCompile(`[^a-zA-Z0-9-]`)

// finalizerOf returns the finalizer of an attacher, as the external attachers of
// CSI drivers name theirs.
func finalizerOf(driver string) string {
	name := notInFinalizers.ReplaceAllString(driver, "-")
	if strings.HasSuffix(name, "-") {
		name += "X"
	}
	return "external-attacher/" + name
}

// attach returns what an attacher does with an attachment of its driver now. It
// guards it with a finalizer before it attaches, attaches to a VM that is up, and
// lets it go when it has detached. It runs beside the API server: a Node that is
// silent is nothing to it.
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
