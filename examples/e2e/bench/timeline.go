// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/rigs/audit"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// line is one line of a timeline.
type line struct {
	at   time.Time
	text string
}

// timelineOf returns what happened to the first machine of a log: every change that was
// seen, and every request of the manager that names it or its Node.
func timelineOf(log audit.Log, requests []controlplane.Request, nodeName func(string) string) []string {
	var m *v1alpha1.Machine
	var lines []line
	for _, c := range log.Changes {
		o, ok := c.Object.(*v1alpha1.Machine)
		if !ok || m != nil && m.UID != o.UID {
			continue
		}
		m = o
		op := o.Status.LastOperation
		text := fmt.Sprintf("  is %q, %s %s: %s; provider ID %q, finalizers %v, deleted %t",
			o.Status.CurrentStatus.Phase, op.Type, op.State, op.Description, o.Spec.ProviderID, o.Finalizers, o.DeletionTimestamp != nil)
		if c.Gone {
			text = "  is gone"
		}
		lines = append(lines, line{c.Time, text})
	}
	if m == nil {
		return nil
	}
	for _, q := range requests {
		if q.Name == m.Name || q.Name == nodeName(m.Name) || q.Resource == "events" && strings.HasPrefix(q.Name, m.Name+".") {
			lines = append(lines, line{q.Time.Add(q.Latency), strings.TrimSuffix(fmt.Sprintf("%s %s/%s", q.Verb, q.Resource, q.Subresource), "/") + fmt.Sprintf(" %d", q.Code)})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	timeline := []string{"machine " + m.Name}
	for _, l := range lines {
		timeline = append(timeline, fmt.Sprintf("%8.1f ms %s", float64(l.at.Sub(lines[0].at))/float64(time.Millisecond), l.text))
	}
	return timeline
}
