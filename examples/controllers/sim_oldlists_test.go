// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// successorWithOldLists creates and deletes a machine, and then begins a process whose lists end
// just before a call of the first process. It returns the number of tokens and VMs created after
// the deletion.
func successorWithOldLists(t *testing.T, before func(simCall) bool) (tokens, vms int) {
	t.Helper()
	var gone, begun bool
	seen := map[*site]map[string]int{} // entries of the logs before that call
	var w *world
	s := scenario{name: "successor with old lists", machines: 1, joins: true, oldLists: true, deleteRunning: time.Second}
	w = newWorld(s, nil, func(a simCall) (none fault) {
		if len(seen) == 0 && before(a) {
			for _, s := range []*site{w.control, w.target} {
				seen[s] = map[string]int{}
				for resource, log := range s.log {
					seen[s][resource] = len(log)
				}
			}
		}
		if gone && a.operation == driver.OpCreateMachine {
			vms++
		}
		return none
	}, false)
	w.onWrite = func(write draintest.Write) {
		if _, token := write.After.(*corev1.Secret); token && write.Before == nil && gone {
			tokens++
		}
		if _, machine := write.Before.(*v1alpha1.Machine); !machine || write.After != nil || gone {
			return
		}
		gone = true
		w.later(0, func() {
			w.end()
			for s, held := range seen {
				for resource := range s.log {
					s.held[resource] = held[resource]
				}
				s.heldUntil = w.clock.Now().Add(10 * time.Minute)
			}
			w.beginAt, begun = w.clock.Now(), true
		})
	}
	w.run()
	require.Len(t, seen, 2)
	require.True(t, begun, "the first process has released the machine")
	return tokens, vms
}

// TestMachine_DeletedBeforeASuccessorWithOldLists_NoTokenAndNoVM has first lists that are older
// than the last writes of the previous process. The controllers read the machine from the API
// server before they create a token or a VM.
func TestMachine_DeletedBeforeASuccessorWithOldLists_NoTokenAndNoVM(t *testing.T) {
	t.Parallel()
	for name, until := range map[string]func(simCall) bool{
		"just before its token was made": func(a simCall) bool { return a.verb == "create" && a.resource == "secrets" },
		"just before its VM was made":    func(a simCall) bool { return a.operation == driver.OpCreateMachine },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tokens, vms := successorWithOldLists(t, until)
			require.Zero(t, tokens)
			require.Zero(t, vms)
		})
	}
}
