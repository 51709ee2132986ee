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

// readyAgain is since when the Node of a Failed machine is Ready, and when its set first
// read that. After an outage the Node may be Ready for long, and the watch of the machine
// controller may begin later than that.
type readyAgain struct{ since, read time.Time }

// firstRead returns when the set first read that the Node of a Failed machine is Ready
// again, zero if it is not.
func (r *machineSets) firstRead(m *api.Machine, view machine.NodeView, now time.Time) time.Time {
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

// preconditions returns what must still be so when a machine is deleted. For a machine
// that is deleted because it is Failed, that is the whole object, as the machine may run
// again; and its Node is read from the API server first. Nil means that the machine stays.
// Then the set is looked at again when the Node says so.
func (r *machineSets) preconditions(ctx context.Context, in machineset.Observation, a machineset.Delete) (*metav1.Preconditions, time.Time) {
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
	view, err := r.silent.node(ctx, r.cfg, m.Spec.ProviderID, name)
	now := r.cfg.Clock.Now()
	goes, reason := machineset.ReplaceFailed(m, view, r.firstRead(m, view, now), now)
	if goes {
		return same, time.Time{}
	}
	h := machinist.Hold{Subject: m.Name, Reason: reason}
	r.cfg.note(Note{Kind: r.kind, Key: in.Set.Namespace + "/" + in.Set.Name, Text: h.String(), Reason: reason, Holds: []machinist.Hold{h}, Waits: true, Err: err})
	return nil, now.Add(askAgain)
}
