// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// guardHealthTimeout is longer than the time between the first and the last silent Node that the
// Node lifecycle controller finds.
const guardHealthTimeout = 20

// silenceMany makes a deployment and silences the Nodes of some of its machines, which it
// returns.
func silenceMany(t *testing.T, s *env.Env, replicas int32, silent int) (group map[types.UID]bool, silenced []string) {
	t.Helper()
	s.StartManager(t, "manager")
	d := s.Deployment("workers", "small", replicas, 1, 0)
	d.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineHealthTimeout: seconds(guardHealthTimeout)}
	deploy(t, s, d)
	group = map[types.UID]bool{}
	for i, m := range machines(t, s) {
		group[m.UID] = true
		if i < silent {
			silenced = append(silenced, m.Name)
			s.Nodes.Silence(s.NodeName(m.Name), true)
		}
	}
	return group, silenced
}

// toldDeployment holds when an event of a reason is told of the deployment.
func toldDeployment(s *env.Env, reason string) env.Condition {
	return func(ctx context.Context) (string, error) {
		have, err := told(ctx, s, "MachineDeployment", "workers")
		if err != nil || !slices.Contains(have, reason) {
			return fmt.Sprintf("told is %v, and not %s", have, reason), err
		}
		return "", nil
	}
}

// unknownFor holds when so many machines are Unknown, each for so long.
func unknownFor(s *env.Env, n int, long time.Duration) env.Condition {
	return func(ctx context.Context) (string, error) {
		list, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "nothing is known", err
		}
		unknown := 0
		for _, m := range list.Items {
			if c := m.Status.CurrentStatus; c.Phase == v1alpha1.MachineUnknown && time.Since(c.LastUpdateTime.Time) > long {
				unknown++
			}
		}
		if unknown != n {
			return fmt.Sprintf("%d machines are Unknown for %s, and not %d", unknown, long, n), nil
		}
		return "", nil
	}
}

func TestGuard_AllNodesSilentAndBack_NothingIsReplaced(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "guard-hold", fastOptions())
	group, silenced := silenceMany(t, s, 6, 6)
	s.Wait(t, nodeGrace+patience, "replacements are held", toldDeployment(s, "ReplacementsHeld"))
	s.Wait(t, patience, "all were to be replaced long ago", unknownFor(s, 6, (guardHealthTimeout+25)*time.Second))
	for _, name := range silenced {
		s.Nodes.Silence(s.NodeName(name), false)
	}
	s.Wait(t, patience, "all run again", s.Complete("workers"))
	s.Wait(t, patience, "it is told that it is over", toldDeployment(s, "ReplacementsResumed"))
	_, failed := replacing(s.AuditLog(), group)
	require.Zero(t, failed)
	require.Len(t, s.Cloud.Snapshot().VMs, 6)
	for _, m := range machines(t, s) {
		require.True(t, group[m.UID], "machine %s is new", m.Name)
	}
	removeAll(t, s)
}

func TestGuard_PartOfAPoolSilentForGood_ReplacedSlowly(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "guard-slow", fastOptions())
	group, silenced := silenceMany(t, s, 12, 5)
	s.Wait(t, nodeGrace+patience, "replacements are slowed", toldDeployment(s, "ReplacementsSlowed"))
	s.Wait(t, nodeGrace+patience, "one is replaced, and the others wait", unknownFor(s, 4, (guardHealthTimeout+30)*time.Second))
	_, failed := replacing(s.AuditLog(), group)
	require.Equal(t, 1, failed, "the second one has to wait for ten minutes")
	for _, name := range silenced {
		s.Nodes.Silence(s.NodeName(name), false)
	}
	s.Wait(t, patience, "all run", s.Complete("workers"))
	_, failed = replacing(s.AuditLog(), group)
	require.Equal(t, 1, failed)
	removeAll(t, s)
}
