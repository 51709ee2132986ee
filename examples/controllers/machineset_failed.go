// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// preconditions returns the preconditions for the deletion of a machine. The deletion of a Failed
// machine requires the same resource version, because the machine may recover. It also reads the
// Node from the API server first. Nil means that the machine stays until the returned time.
func (r *machineSetReconciler) preconditions(ctx context.Context, in machineset.Observation, a machineset.Delete) (*metav1.Preconditions, time.Time) {
	same := metav1.NewUIDPreconditions(string(a.UID))
	at := slices.IndexFunc(in.Machines, func(m *api.Machine) bool { return m.UID == a.UID })
	if a.Reason != machineset.ReasonFailed || at < 0 {
		return same, time.Time{}
	}
	m := in.Machines[at]
	same.ResourceVersion = &m.ResourceVersion
	name := m.Labels[api.NodeLabelKey]
	if r.node == nil || name == "" {
		return same, time.Time{}
	}
	view, err := r.outage.node(ctx, r.cfg, m.Spec.ProviderID, name)
	now := r.cfg.Clock.Now()
	goes, reason := machineset.ReplaceFailed(m, view, r.firstRead(m, view, now), now)
	if goes {
		return same, time.Time{}
	}
	h := machinist.Hold{Subject: "machine/" + m.Name, Reason: reason}
	r.cfg.note(Note{Kind: r.kind, Key: in.Set.Namespace + "/" + in.Set.Name, Text: h.String(), Reason: reason, Holds: []machinist.Hold{h}, Waits: true, Err: err})
	return nil, now.Add(targetRetry)
}
