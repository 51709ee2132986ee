// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
)

// A driver call that failed because of the credentials is repeated soon after a user has corrected
// them, whatever its back-off.

// noteRefused records the last driver call of a machine, if the cloud has refused its credentials and no
// fault is the reason.
func (w *world) noteRefused(op driver.Operation, name string, err error, t fault) {
	if c := w.scenario.wrong; c != nil && c.what == wrongCredential && t.code == codes.OK && codes.Of(err) == codes.Unauthenticated {
		w.judge.refused[name] = op
	} else {
		delete(w.judge.refused, name)
	}
}

// checkCorrected checks that a refused call is repeated within a minute after the correction, if there
// was no other fault for some minutes.
func (w *world) checkCorrected() {
	if len(w.judge.refused) == 0 {
		return
	}
	due := later(w.began.Add(w.scenario.wrong.until()), w.calmFrom.Add(5*time.Minute)).Add(time.Minute)
	if !w.clock.Now().After(due) {
		return
	}
	for name, op := range w.judge.refused {
		if m := w.machine(name); m != nil {
			w.violate("%s of machine %s is not repeated by %s, and the credentials are right: %s", op, name, due, m.Status.LastOperation.Description)
		}
	}
}
