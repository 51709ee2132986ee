// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
)

// spendBudgets lets as many pods of each budget be asked to go as the budget allows, in
// the order of [RequestOrder], and holds the requests that the API server would refuse.
// A pod that has been asked, and whose budget has not changed since, has been paid for
// out of what is seen to be allowed.
func (r *round) spendBudgets(rows []Row) {
	if len(r.budgets.all) == 0 {
		return
	}
	for i := range rows {
		r.countAccepted(&rows[i], r.lookup.pods[i])
	}
	for _, i := range requests(rows) {
		r.spend(&rows[i], r.lookup.pods[i])
	}
}

// requests returns the indices of the rows with requests or refusals, in the order of
// [RequestOrder].
func requests(rows []Row) []int {
	order := make([]int, 0, len(rows))
	for i := range rows {
		if rows[i].Verdict == Evict || rows[i].Verdict == Wait {
			order = append(order, i)
		}
	}
	inOrder := func(a, b int) int { return RequestOrder(rows[a], rows[b]) }
	if !slices.IsSortedFunc(order, inOrder) {
		slices.SortStableFunc(order, inOrder)
	}
	return order
}

// countAccepted takes from a budget what a pod has cost it that is on its way out, if the
// budget has not been seen to change since: a pod may be seen earlier than its budget.
func (r *round) countAccepted(row *Row, pod *corev1.Pod) {
	if row.Verdict != Wait || row.Reason != ReasonTerminating || pod.Status.Phase == corev1.PodPending {
		return
	}
	answer := r.s.Answers[row.UID]
	if answer.Asked != Evict || answer.Budgets == "" {
		return
	}
	for _, b := range r.budgets.of(pod).budgets {
		if b.version == answer.Budgets && b.charges(pod) {
			b.left = max(0, b.left-1)
		}
	}
}

// spend takes the eviction of a pod from its budget, or holds it.
func (r *round) spend(row *Row, pod *corev1.Pod) {
	if withoutBudget(pod) {
		return
	}
	covering := r.budgets.of(pod)
	switch {
	case row.Verdict == Wait:
		r.explainRefusal(row, covering)
	case len(covering.budgets) > 1:
		row.Versions = covering.versions()
		r.hold(row, ReasonBudgets, covering.overlapping(), covering.shown())
	case len(covering.budgets) == 1:
		b := covering.budgets[0]
		row.Versions = b.version
		switch {
		case !b.charges(pod):
		case b.left > 0:
			b.left--
		default:
			reason, message := b.refusal(pod)
			r.hold(row, reason, message, covering.shown())
		}
	}
}

// explainRefusal adds to what the API server answered which budgets are behind it.
func (r *round) explainRefusal(row *Row, covering *coverage) {
	switch {
	case row.Reason == ReasonRefused && len(covering.budgets) > 1:
		// the API server says so in words alone
		row.Reason, row.Message, row.Budgets = ReasonBudgets, covering.overlapping(), covering.shown()
	case row.Reason == ReasonBudget:
		row.Budgets = covering.shown()
	}
}

// hold makes a request wait until a budget changes.
func (r *round) hold(row *Row, reason machinist.Reason, message string, budgets []Budget) {
	row.Verdict, row.Reason, row.Budgets = Wait, reason, budgets
	row.Message = joinMessages(message, row.Message)
	row.Grace, row.Until = nil, r.now.Add(lookAgain)
}

// forgetRefusals lets the requests be repeated at once that budgets refused which have
// changed since.
func (r *round) forgetRefusals() {
	if !r.in.Budgets.Complete {
		return
	}
	for _, pod := range r.in.Pods.Items {
		if pod == nil {
			continue
		}
		answer := r.s.Answers[pod.UID]
		if answer.Reason != ReasonBudget || answer.Until.IsZero() {
			continue
		}
		if r.budgets.of(pod).versions() != answer.Budgets {
			answer.Until = time.Time{}
			r.s.Answers[pod.UID] = answer
		}
	}
}
