// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestAMachineThatIsAboutToBePreservedIsNotTheFirstToGo(t *testing.T) {
	d := rolling(3, 1, 0)
	old, newSet := rollSet(d, "c0", 3, 3, 1), rollSet(d, "c1", 1, 1, 1)
	in := rollSee(d, old, newSet)
	in.Nodes = map[string]*corev1.Node{}
	for _, m := range in.Machines[1:3] {
		m.Status.CurrentStatus.Phase = v1alpha1.MachineFailed
		n := &corev1.Node{}
		n.Name = m.Labels[v1alpha1.NodeLabelKey]
		in.Nodes[n.Name] = n
	}
	victims := func() []string {
		target, err := deployment.Plan(in, rollPolicy, rollNow).Target(old.UID)
		require.NoError(t, err)
		return rollVictims(target)
	}
	require.Equal(t, []string{"md-c0-01"}, victims())
	in.Machines[1].Annotations = map[string]string{v1alpha1.PreserveMachineAnnotationKey: v1alpha1.PreserveMachineAnnotationValueWhenFailed}
	require.Equal(t, []string{"md-c0-02"}, victims())
}

func TestGatesAreAskedAboutTheRestOfAReplacementThatAChangeOfTheReplicasWouldEnd(t *testing.T) {
	d := rolling(3, 1, 0)
	old, newSet := rollSet(d, "c0", 1, 1, 1), rollSet(d, "c1", 3, 3, 3)
	old.Annotations[v1alpha1.DesiredReplicasAnnotation] = "2"
	dec := rollPlan(d, old, newSet)
	require.Equal(t, deployment.ReasonScaling, dec.Reason)
	require.Len(t, rollLines(dec), 1)

	policy := rollPolicy
	policy.Gates = []deployment.Gate{denies("md-c0-00")}
	dec = deployment.Plan(rollSee(d, old, newSet), policy, rollNow)
	require.Empty(t, rollLines(dec), "it is replaced, and not one of too many")
	require.Contains(t, rollReasons(dec), deployment.ReasonGate)
}

func TestWhenAGateIsAskedAgain(t *testing.T) {
	d := rolling(25, 1, 0)
	in := rollSee(d, rollSet(d, "c0", 25, 25, 25), rollSet(d, "c1", 1, 1, 1))
	counted := func(answer func(name string) deployment.Answer) machinist.Hold {
		policy := rollPolicy
		policy.Gates = []deployment.Gate{func(c deployment.Choice) deployment.Answer { return answer(c.Machine.Name) }}
		dec := deployment.Plan(in, policy, rollNow)
		i := slices.IndexFunc(dec.Holds, func(h machinist.Hold) bool { return h.Message == "gates keep 5 more machines" })
		require.GreaterOrEqual(t, i, 0, dec.String())
		return dec.Holds[i]
	}
	hold := counted(func(name string) deployment.Answer {
		switch name {
		case "md-c0-21":
			return deployment.Answer{Verdict: deployment.Wait, Until: rollNow.Add(time.Minute)}
		case "md-c0-22":
			return deployment.Answer{Verdict: deployment.Wait, Until: rollNow.Add(time.Hour)}
		default:
			return deployment.Answer{Verdict: deployment.Wait}
		}
	})
	require.Equal(t, rollNow.Add(time.Minute), hold.Until, "the earliest of those that are told in one")

	hold = counted(func(string) deployment.Answer {
		return deployment.Answer{Verdict: deployment.Deny, Until: rollNow.Add(time.Minute)}
	})
	require.Zero(t, hold.Until, "no is no")
}
