// SPDX-License-Identifier: Apache-2.0

package draining_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/draining"
)

func event(kind drain.ProgressType, name string, row drain.Row, err error) drain.Progress {
	e := drain.Progress{Type: kind, Time: noon, Node: "node-1", Subject: "pod/shop/" + name, Reason: row.Reason, Err: err}
	if name == "" {
		e.Subject = "node/node-1"
		return e
	}
	row.Namespace, row.Name = "shop", name
	e.Row = &row
	return e
}

func TestTerminal_Progress_InTheLastLine(t *testing.T) {
	evict := drain.Row{Action: drain.Evict, Reason: drain.ReasonEvict}
	budget := drain.Row{
		Action: drain.Wait, Reason: drain.ReasonBudget, Since: noon.Add(-time.Minute), Next: drain.IgnoreBudgets, NextAt: noon.Add(24 * time.Hour),
		Budgets: []drain.Budget{{Namespace: "shop", Name: "web", Healthy: 2, Desired: 2, Expected: 3}},
	}
	var out bytes.Buffer
	o := draining.NewTerminal(&out, 3, noon)
	for _, step := range []struct {
		event drain.Progress
		lines []string
		count string
	}{
		{event(drain.ProgressStarted, "", drain.Row{}, nil), []string{"12:00:00 draining node node-1 of 3 pods"}, "0 of 3 pods gone, 0 held, 3 in progress"},
		{event(drain.ProgressCordoned, "", drain.Row{}, nil), []string{"12:00:00 cordoned node node-1"}, "0 of 3 pods gone, 0 held, 3 in progress"},
		{event(drain.ProgressRequested, "web-1", evict, nil), []string{"12:00:00 evicting shop/web-1"}, "0 of 3 pods gone, 0 held, 3 in progress"},
		{event(drain.ProgressRequested, "web-2", evict, errors.New("no")), nil, "0 of 3 pods gone, 0 held, 3 in progress"},
		{event(drain.ProgressWaiting, "web-2", budget, nil), []string{
			"12:00:00 waiting for shop/web-2: DisruptionBudget: budget shop/web allows 0 disruptions: 2 of 3 healthy, 2 desired; since 11:59:00; " +
				"next: evicted as soon as the budget allows it, deleted at 2026-03-02 12:00:00",
		}, "0 of 3 pods gone, 1 held, 2 in progress"},
		{event(drain.ProgressWaiting, "web-1", drain.Row{Action: drain.Wait, Reason: drain.ReasonTerminating}, nil), nil, "0 of 3 pods gone, 1 held, 2 in progress"},
		{event(drain.ProgressGone, "web-1", drain.Row{}, nil), []string{"12:00:00 evicted shop/web-1"}, "1 of 3 pods gone, 1 held, 1 in progress"},
		{event(drain.ProgressRequested, "web-2", drain.Row{Action: drain.Delete, Reason: "IgnoreBudgets"}, nil), []string{"12:00:00 deleting shop/web-2 (IgnoreBudgets)"}, "1 of 3 pods gone, 0 held, 2 in progress"},
		{event(drain.ProgressGone, "web-2", drain.Row{}, nil), []string{"12:00:00 deleted shop/web-2"}, "2 of 3 pods gone, 0 held, 1 in progress"},
		{event(drain.ProgressGone, "web-3", drain.Row{}, nil), []string{"12:00:00 gone shop/web-3"}, "3 of 3 pods gone, 0 held, 0 in progress"},
		{event(drain.ProgressEnded, "", drain.Row{}, nil), nil, "3 of 3 pods gone, 0 held, 0 in progress"},
	} {
		out.Reset()
		o.Observe(step.event)
		got := out.String()
		lines := strings.Split(strings.TrimSuffix(strings.TrimPrefix(got, "\x1b[1A\x1b[J"), "\n"), "\n")
		require.Equal(t, append(step.lines, step.count), lines)
	}
}

func TestProgress_InvalidEvents_NoPanic(t *testing.T) {
	var out bytes.Buffer
	o := draining.NewTerminal(&out, 0, noon)
	for _, kind := range []drain.ProgressType{
		drain.ProgressStarted, drain.ProgressCordoned, drain.ProgressRequested, drain.ProgressWaiting, drain.ProgressGone, drain.ProgressGone,
		drain.ProgressEscalated, drain.ProgressEnded, "", "Nonsense",
	} {
		for _, e := range []drain.Progress{{Type: kind}, {Type: kind, Subject: "pod/"}, {Type: kind, Subject: "pod/a/b", Row: &drain.Row{}}, {Type: kind, Err: errors.New("x\ny")}} {
			o.Observe(e)
		}
	}
	require.NotContains(t, out.String(), "%!")
}
