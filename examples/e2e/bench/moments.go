// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/rigs/audit"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// moments are the times of the steps of a machine. Zero means that a step was not observed.
type moments struct {
	made, vm, node, running     time.Time
	deleted, vmDeleted, removed time.Time
}

// momentsOf returns the moments of all machines, from the journal, the history of the
// cloud and the requests.
func momentsOf(log audit.Log, history drivertest.History, requests []controlplane.Request, nodeName func(string) string) []moments {
	all, order := map[types.UID]*moments{}, []types.UID{}
	nodes := map[string]types.UID{}
	for _, c := range log.Changes {
		m, ok := c.Object.(*v1alpha1.Machine)
		if !ok {
			continue
		}
		l := all[m.UID]
		if l == nil {
			l = &moments{made: c.Time}
			all[m.UID], order = l, append(order, m.UID)
			nodes[nodeName(m.Name)] = m.UID
		}
		l.see(c, m)
	}
	for _, e := range history {
		l := all[types.UID(e.VM.UID)]
		switch {
		case l == nil:
		case e.Kind == drivertest.VMCreated:
			first(&l.vm, e.Time)
		case e.Kind == drivertest.VMDeletionBegan:
			first(&l.vmDeleted, e.Time)
		}
	}
	for _, q := range requests {
		if l := all[nodes[q.Name]]; l != nil && q.Verb == "create" && q.Resource == "nodes" && q.Code < 300 {
			first(&l.node, q.Time.Add(q.Latency))
		}
	}
	machines := make([]moments, 0, len(order))
	for _, uid := range order {
		machines = append(machines, *all[uid])
	}
	return machines
}

// namesOf returns the names of all machines.
func namesOf(log audit.Log) map[string]bool {
	names := map[string]bool{}
	for _, c := range log.Changes {
		if m, ok := c.Object.(*v1alpha1.Machine); ok {
			names[m.Name] = true
		}
	}
	return names
}

func (l *moments) see(c audit.Change, m *v1alpha1.Machine) {
	if m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning {
		first(&l.running, c.Time)
	}
	if m.DeletionTimestamp != nil {
		first(&l.deleted, c.Time)
	}
	if c.Gone {
		first(&l.removed, c.Time)
	}
}

// first keeps the first time.
func first(t *time.Time, now time.Time) {
	if t.IsZero() {
		*t = now
	}
}

// wall returns the time from each request to the last step of a machine before the next request, or
// before the end. A step is that a machine runs or is gone. Zero means that no step follows a
// request.
func wall(asked []time.Time, ended time.Time, machines []moments) time.Duration {
	var sum time.Duration
	for i, begin := range asked {
		end, latest := ended, time.Time{}
		if i+1 < len(asked) {
			end = asked[i+1]
		}
		for _, l := range machines {
			for _, step := range []time.Time{l.running, l.removed} {
				if step.After(begin) && step.Before(end) && step.After(latest) {
					latest = step
				}
			}
		}
		if latest.IsZero() {
			return 0
		}
		sum += latest.Sub(begin)
	}
	return sum
}

// series is how long something took each time.
type series []time.Duration

// add adds a time, unless one of the ends is not known.
func (s *series) add(from, to time.Time) {
	if !from.IsZero() && !to.IsZero() {
		*s = append(*s, to.Sub(from))
	}
}

// at returns the value below which a share of the others is; zero if there is none.
func (s series) at(share float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[int(share*float64(len(sorted)-1)+0.5)]
}

func (s series) median() time.Duration { return s.at(0.5) }
