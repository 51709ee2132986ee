// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"time"

	"github.com/machinist-dev/machinist"
)

// targetAgain is when an API server that did not answer is asked again.
const targetRetry = 10 * time.Second

// confirmNode asks the API server for the Node before a machine is failed because a
// timeout has ended: what a cache shows may be older than that, also if nothing says
// so. It returns false if what is known of the Node is not older than end. An API
// server that does not answer is waited for: nothing is failed meanwhile.
func (l *logic) confirmNode(end time.Time) (Decision, bool) {
	switch view := l.in.Node; {
	case view.NoTarget, view.Looked && !view.AsOf.IsZero() && !view.AsOf.Before(end):
		return Decision{}, false
	case view.Unanswered:
		return hold(machinist.Hold{
			Subject: "target-cluster", Reason: ReasonTargetUnreachable, Until: l.now.Add(targetRetry),
			Message: fmt.Sprintf("its API server does not answer, so that %s proves nothing: the machine is not failed", l.nodeSubject()),
		}), true
	default:
		return l.do(LookForNode{NodeName: l.nodeName()}, ReasonLookFirst, "the machine is about to be failed"), true
	}
}
