// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// hasEvent holds when an event about a deployment has a reason.
func hasEvent(s *env.Env, deployment, reason string) env.Condition {
	return func(ctx context.Context) (string, error) {
		reasons, err := told(ctx, s, "MachineDeployment", deployment)
		if err != nil || !slices.Contains(reasons, reason) {
			return fmt.Sprintf("%s is not among %v", reason, reasons), err
		}
		return "", nil
	}
}

// rolledBack holds when the request for a roll-back is gone, and was seen to be.
func rolledBack(s *env.Env, name string) env.Condition {
	return deploymentIs(s, name, func(d *v1alpha1.MachineDeployment) bool { return d.Spec.RollbackTo == nil && observed(d) })
}

func TestRollback_DuringAndAfterARoll_Succeeds(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "back", fastOptions())
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 5, 1, 1))
	first := machines(t, s)
	roll(t, s, "workers", "large")
	s.Wait(t, patience, "half-way", deploymentIs(s, "workers", halfway))

	change(t, s, "workers", `{"spec":{"rollbackTo":{"revision":0}}}`)
	s.Wait(t, patience, "it is done with", rolledBack(s, "workers"))
	s.Wait(t, patience, "rolled back", s.Complete("workers"))
	s.Wait(t, patience, "it is told", hasEvent(s, "workers", "DeploymentRollback"))
	small := setOf(t, s, "small")
	allOf(t, s, small, 5)
	kept := 0
	for _, m := range machines(t, s) {
		if slices.ContainsFunc(first, func(o v1alpha1.Machine) bool { return o.UID == m.UID }) {
			kept++
		}
	}
	require.NotZero(t, kept, "those that had not gone stay")
	require.Equal(t, "3", small.Annotations[v1alpha1.RevisionAnnotation])
	require.NotContains(t, small.Annotations, v1alpha1.PreferNoScheduleKey)
	s.Wait(t, patience, "the nodes are as others", unmarked(s))

	change(t, s, "workers", `{"spec":{"rollbackTo":{"revision":77}}}`)
	s.Wait(t, patience, "it is told", hasEvent(s, "workers", "DeploymentRollbackRevisionNotFound"))
	s.Wait(t, patience, "it is done with", rolledBack(s, "workers"))
	require.Equal(t, "small", deploymentNamed(t, s, "workers").Spec.Template.Spec.Class.Name)

	change(t, s, "workers", `{"spec":{"rollbackTo":{"revision":2}}}`)
	s.Wait(t, patience, "it is done with", rolledBack(s, "workers"))
	s.Wait(t, patience, "rolled to what it was rolled back from", s.Complete("workers"))
	allOf(t, s, setOf(t, s, "large"), 5)
	require.Equal(t, "4", setOf(t, s, "large").Annotations[v1alpha1.RevisionAnnotation])
	removeAll(t, s)
}

func TestRoll_BrokenClass_StopsAndIsRolledBack(t *testing.T) {
	t.Parallel()
	const wrong = "there is no such image"
	s := cluster.Set(t, "badclass", fastOptions())
	manager := s.StartManager(t, "manager")
	d := s.Deployment("workers", "small", 4, 1, 1)
	d.Spec.ProgressDeadlineSeconds = new(int32(5))
	deploy(t, s, d)
	remove := s.Cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Code: codes.InvalidArgument, Message: wrong})
	roll(t, s, "workers", "large")
	s.Wait(t, patience, "it has taken too long", deploymentIs(s, "workers", progressIs(v1alpha1.ConditionFalse, v1alpha1.ProgressDeadlineExceeded)))
	s.Wait(t, patience, "it is logged why", func(context.Context) (string, error) {
		for line := range strings.SplitSeq(manager.Log(), "\n") {
			if strings.Contains(line, string(deployment.ReasonNewUnavailable)) && strings.Contains(line, wrong) {
				return "", nil
			}
		}
		return "no line tells of it", nil
	})
	s.Wait(t, patience, "a while has passed", passed(lookedAt))
	old := slices.DeleteFunc(machines(t, s), func(m v1alpha1.Machine) bool { return m.Spec.Class.Name != "small" || m.DeletionTimestamp != nil })
	require.GreaterOrEqual(t, len(old), 3, "no more than may be unavailable were given up")

	change(t, s, "workers", `{"spec":{"rollbackTo":{}}}`)
	s.Wait(t, patience, "it is done with", rolledBack(s, "workers"))
	remove() // one of the old class may have gone
	s.Wait(t, patience, "rolled back", s.Complete("workers"))
	allOf(t, s, setOf(t, s, "small"), 4)
	for _, m := range old {
		require.Nil(t, machine(t, s, m.Name).DeletionTimestamp, "who was there stays")
	}
	s.Wait(t, patience, "it says so", deploymentIs(s, "workers", progressIs(v1alpha1.ConditionTrue, v1alpha1.NewMachineSetAvailable)))
	removeAll(t, s)
}
