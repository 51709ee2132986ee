// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	api "github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// readyAgain is when the Node of a Failed machine became Ready again, and when the set first read
// that. After an outage, these times may be far apart.
type readyAgain struct{ since, read time.Time }

// firstRead returns when the set first read that the Node of a Failed machine is Ready again. Zero
// means that the Node is not.
func (r *machineSetReconciler) firstRead(m *api.Machine, view machine.NodeView, now time.Time) time.Time {
	since := machine.ReadyAgain(m, view, now)
	if since.IsZero() {
		return time.Time{}
	}
	return r.readyAgain.change(m.UID, func(first readyAgain) readyAgain {
		if first.since.Equal(since) {
			return first
		}
		return readyAgain{since, now}
	}).read
}

// staysUntil returns until when a Failed machine stays, because its Node may make it Running again. It
// reads the Node from the API server. Zero means that the machine is to be deleted.
func (r *machineSetReconciler) staysUntil(ctx context.Context, set *api.MachineSet, m *api.Machine) time.Time {
	name := m.Labels[api.NodeLabelKey]
	if r.node == nil || name == "" {
		return time.Time{}
	}
	view, err := r.outage.node(ctx, r.cfg, m.Spec.ProviderID, name)
	now := r.cfg.Clock.Now()
	replace, reason := machineset.ReplaceFailed(m, view, r.firstRead(m, view, now), now)
	if replace {
		return time.Time{}
	}
	h := machinist.Hold{Subject: "machine/" + m.Name, Reason: reason}
	r.cfg.note(Note{Kind: r.kind, Key: set.Namespace + "/" + set.Name, Text: h.String(), Reason: reason, Holds: []machinist.Hold{h}, Waits: true, Err: err})
	return now.Add(targetRetry)
}
