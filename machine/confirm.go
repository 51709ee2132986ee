// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"time"

	"github.com/machinist-dev/machinist"
)

// targetRetry is the wait after the API server of the Nodes did not answer.
const targetRetry = 10 * time.Second

// confirmNode reads the Node from the API server before a machine fails because of a timeout that
// ended at end. A cache may be older without a sign of it. It returns false if the view of the Node
// is not older than end. While the API server does not answer, the machine does not fail.
func (l *logic) confirmNode(end time.Time) (Decision, bool) {
	switch view := l.in.Node; {
	case view.NoTarget, view.Looked && !view.AsOf.IsZero() && !view.AsOf.Before(end):
		return Decision{}, false
	case view.Unanswered:
		return hold(machinist.Hold{
			Subject: "target-cluster", Reason: reasonTargetUnreachable, Until: l.now.Add(targetRetry),
			Message: fmt.Sprintf("the API server does not answer, so the state of %s is not known: the machine does not fail", l.nodeSubject()),
		}), true
	default:
		return l.do(machinist.Refresh{Kind: "Node", Name: l.nodeName()}, reasonLookFirst, "before the machine fails"), true
	}
}
