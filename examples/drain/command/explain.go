// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
)

// explainPlan returns a block of lines for each gate, pod and volume.
func (w words) explainPlan(plan drain.Decision) []string {
	var blocks []string
	for _, g := range plan.Gates {
		blocks = append(blocks, w.explainHold(g))
	}
	for _, r := range plan.Rows {
		if r.Action == drain.Ignore {
			blocks = append(blocks, fmt.Sprintf("%s/%s\n  ignored: %s\n", r.Namespace, r.Name, reasonOf(r.Reason, r.Message)))
			continue
		}
		blocks = append(blocks, w.explainRow(r))
	}
	for _, v := range plan.Volumes {
		if v.Action == drain.Ignore {
			blocks = append(blocks, fmt.Sprintf("volume %s\n  ignored: %s\n", v.Volume, reasonOf(v.Reason, v.Message)))
			continue
		}
		blocks = append(blocks, w.explainHold(machinist.Hold{
			Subject: "volume " + v.Volume, Reason: v.Reason, Message: v.Message, Since: v.Since, Until: v.Until,
		}))
	}
	return blocks
}

// explainRow returns the block of a pod that is not ignored.
func (w words) explainRow(r drain.Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s\n  now:     %s, %s\n", r.Namespace, r.Name, r.Action, reasonOf(r.Reason, r.Message))
	if r.Grace != nil {
		fmt.Fprintf(&b, "  grace:   %d s\n", *r.Grace)
	}
	if r.Wave != 0 {
		fmt.Fprintf(&b, "  wave:    %d\n", r.Wave)
	}
	for _, budget := range r.Budgets {
		fmt.Fprintf(&b, "  budget:  %s\n", strings.TrimPrefix(budget.String(), "budget "))
	}
	if !r.Since.IsZero() {
		fmt.Fprintf(&b, "  since:   %s\n", w.clock(r.Since))
	}
	fmt.Fprintf(&b, "  next:    %s\n", w.next(r))
	return b.String()
}

func (w words) explainHold(h machinist.Hold) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  now:     wait, %s\n", h.Subject, reasonOf(h.Reason, h.Message))
	if !h.Since.IsZero() {
		fmt.Fprintf(&b, "  since:   %s\n", w.clock(h.Since))
	}
	fmt.Fprintf(&b, "  next:    %s\n", w.again(h.Until))
	return b.String()
}
