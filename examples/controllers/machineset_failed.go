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

// recoverTime is how long a Failed machine stays after its set has first read that its Node
// is Ready again. After an outage the Node may be Ready for long, and the watch of the
// machine controller may begin later than that.
const recoverTime = time.Minute

// readyAgain is since when the Node of a Failed machine is Ready, and when its set first
// read that.
type readyAgain struct{ since, read time.Time }

// recovers reports whether a Failed machine stays because its Node is Ready again, and
// that was first read not long ago.
func (r *machineSets) recovers(m *api.Machine, view machine.NodeView, now time.Time) bool {
	since := machine.ReadyAgain(m, view, now)
	if since.IsZero() {
		return false
	}
	first := r.readyAgain.change(m.UID, func(first readyAgain) readyAgain {
		if first.since.Equal(since) {
			return first
		}
		return readyAgain{since, now}
	})
	return now.Before(first.read.Add(recoverTime))
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
	goes, reason := machineset.ReplaceFailed(m, view, now)
	if recovers := r.recovers(m, view, now); goes && recovers {
		goes, reason = false, machineset.ReasonNodeReadyAgain
	}
	if goes {
		return same, time.Time{}
	}
	r.cfg.note(Note{Kind: r.kind, Key: in.Set.Namespace + "/" + in.Set.Name, Text: machinist.Hold{Subject: m.Name, Reason: reason}.String(), Waits: true, Err: err})
	return nil, now.Add(heardEvery)
}
