// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine"
)

// A cache that lags behind decides nothing twice (DS-2, MS-2): whatever was
// written is waited for, and looked after when it takes long.
func TestDS02DS41AStaleViewDecidesNothingTwice(t *testing.T) {
	w := newMarksWorld(3)
	w.d.Spec.Template.Spec.Class.Name = "b"
	stale := w.in()
	dec := w.run(t, deployment.Policy{})
	require.IsType(t, deployment.CreateSet{}, dec.Actions[len(dec.Actions)-1])
	stale.Deployment = w.d
	stale.Expectations = stale.Expectations.Created(w.sets[1], marksNow)

	again := deployment.Decide(stale, deployment.Policy{}, marksNow.Add(29*time.Second))
	require.Empty(t, again.Actions)
	require.Equal(t, deployment.ReasonWriteNotSeen, again.Reason)
	require.Equal(t, marksNow.Add(30*time.Second), again.NextCheck)

	again = deployment.Decide(stale, deployment.Policy{}, marksNow.Add(30*time.Second))
	require.Equal(t, []deployment.Action{deployment.Look{Kind: machine.KindSet, Name: w.sets[1].Name}}, again.Actions)

	fresh := w.in()
	fresh.Expectations = stale.Expectations
	require.NotEqual(t, deployment.ReasonWriteNotSeen, deployment.Decide(fresh, deployment.Policy{}, marksNow).Reason)
}

func TestUnseenLooksAtNoMoreThanABurst(t *testing.T) {
	w := newMarksWorld(9)
	in := w.in()
	for _, m := range w.machines {
		m = m.DeepCopy()
		m.ResourceVersion = "99"
		in.Expectations = in.Expectations.Updated(m, marksNow.Add(-time.Hour))
	}
	require.Len(t, deployment.Decide(in, deployment.Policy{Burst: 4}, marksNow).Actions, 4)
}

// A set that its deployment created, and that was released before the cache showed it
// (labels taken away, or the deployment deleted with --cascade=orphan), is never among
// its sets.
func TestPlan_CreatedSetWasReleased_LiveReadEndsTheWait(t *testing.T) {
	d := rolling(3, 1, 0)
	d.UID = "d"
	in := rollSee(d, rollSet(d, "c1", 3, 3, 3))
	lost := rollSet(d, "c0", 2, 2, 2)
	lost.ResourceVersion = "10"
	in.Expectations = in.Expectations.Created(lost, rollNow)
	live := lost.DeepCopy()
	live.ResourceVersion, live.OwnerReferences, live.Labels = "12", nil, nil
	now := rollNow.Add(time.Hour)
	require.Equal(t, deployment.ReasonWriteNotSeen, deployment.Decide(in, rollPolicy, now).Reason)
	in.Expectations = in.Expectations.Looked(machine.KindSet, lost.Name, live, now)
	require.NotEqual(t, deployment.ReasonWriteNotSeen, deployment.Decide(in, rollPolicy, now).Reason)
}
