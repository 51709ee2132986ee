// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func unseenObjects() (*v1alpha1.MachineSet, *v1alpha1.Machine, *corev1.Node) {
	meta := metav1.ObjectMeta{Name: "x", UID: "x-uid", ResourceVersion: "10"}
	return &v1alpha1.MachineSet{ObjectMeta: meta}, &v1alpha1.Machine{ObjectMeta: meta}, &corev1.Node{ObjectMeta: meta}
}

func TestUnseenWritesStayUntilTheViewShowsThem(t *testing.T) {
	set, m, node := unseenObjects()
	var u deployment.Unseen
	u = u.Wrote(set, marksNow).Wrote(m, marksNow).Wrote(node, marksNow)
	require.Len(t, u, 3, "objects of different kinds may share a name")

	at := func(version string) deployment.Observation {
		s, m, n := unseenObjects()
		s.ResourceVersion, m.ResourceVersion, n.ResourceVersion = version, version, version
		return deployment.Observation{
			Sets: []*v1alpha1.MachineSet{nil, s}, Machines: []*v1alpha1.Machine{nil, m}, Nodes: map[string]*corev1.Node{"x": n, "y": nil},
		}
	}
	require.Len(t, u.Observe(at("9")), 3, "an earlier one does not show it")
	require.Empty(t, u.Observe(at("10")))
	require.Empty(t, u.Observe(at("11")), "a later one does")
	require.Empty(t, u.Observe(at("abc")), "what cannot be compared cannot be waited for")
	require.Len(t, u.Observe(deployment.Observation{}), 3, "what is not there shows nothing")
	require.Empty(t, deployment.Unseen(nil).Observe(at("9")))
	require.Len(t, u, 3, "the receiver is not modified")
}

func TestUnseenKeepsTheLastWriteOfAnObject(t *testing.T) {
	set, _, _ := unseenObjects()
	var u deployment.Unseen
	u = u.Wrote(set, marksNow)
	set.ResourceVersion = "12"
	u = u.Wrote(set, marksNow.Add(time.Minute))
	require.Len(t, u, 1)
	require.Equal(t, "12", u[0].ResourceVersion)
}

func TestUnseenRecordsNothingElse(t *testing.T) {
	var u deployment.Unseen
	for _, o := range []metav1.Object{nil, (*v1alpha1.MachineSet)(nil), (*v1alpha1.Machine)(nil), (*corev1.Node)(nil), &corev1.Pod{}, (*corev1.Pod)(nil)} {
		require.Empty(t, u.Wrote(o, marksNow))
	}
}

func TestUnseenEndsByALiveRead(t *testing.T) {
	set, m, _ := unseenObjects()
	u := deployment.Unseen{}.Wrote(set, marksNow)
	other := set.DeepCopy()
	other.UID = "another"
	later := marksNow.Add(time.Minute)
	for name, c := range map[string]struct {
		live metav1.Object
		kept bool
	}{
		"it is there":                  {set, true},
		"it is gone":                   {nil, false},
		"it is gone, said with a type": {(*v1alpha1.MachineSet)(nil), false},
		"another one has its name":     {other, false},
		"something else was looked at": {m, true},
		"something unknown was read":   {&corev1.Pod{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.kept, len(u.Looked(deployment.KindSet, "x", c.live, later)) == 1)
			require.Len(t, u.Looked(deployment.KindSet, "y", c.live, later), 1, "of another name")
		})
	}
	require.Equal(t, later, u.Looked(deployment.KindSet, "x", set, later)[0].At)
	require.Equal(t, marksNow, u[0].At)
}

// A cache that lags behind decides nothing twice (DS-2, MS-2): whatever was
// written is waited for, and looked after when it takes long.
func TestDS02DS41AStaleViewDecidesNothingTwice(t *testing.T) {
	w := newMarksWorld(3)
	w.d.Spec.Template.Spec.Class.Name = "b"
	stale := w.in()
	dec := w.run(t, deployment.Policy{})
	require.IsType(t, deployment.CreateSet{}, dec.Actions[len(dec.Actions)-1])
	stale.Deployment = w.d
	stale.Unseen = stale.Unseen.Wrote(w.sets[1], marksNow)

	again := deployment.Plan(stale, deployment.Policy{}, marksNow.Add(29*time.Second))
	require.Empty(t, again.Actions)
	require.Equal(t, deployment.ReasonWriteNotSeen, again.Reason)
	require.Equal(t, marksNow.Add(30*time.Second), again.NextCheck)

	again = deployment.Plan(stale, deployment.Policy{}, marksNow.Add(30*time.Second))
	require.Equal(t, []deployment.Action{deployment.Look{Kind: deployment.KindSet, Name: w.sets[1].Name}}, again.Actions)

	fresh := w.in()
	fresh.Unseen = stale.Unseen
	require.NotEqual(t, deployment.ReasonWriteNotSeen, deployment.Plan(fresh, deployment.Policy{}, marksNow).Reason)
}

func TestUnseenLooksAtNoMoreThanABurst(t *testing.T) {
	w := newMarksWorld(9)
	in := w.in()
	for _, m := range w.machines {
		m = m.DeepCopy()
		m.ResourceVersion = "99"
		in.Unseen = in.Unseen.Wrote(m, marksNow.Add(-time.Hour))
	}
	require.Len(t, deployment.Plan(in, deployment.Policy{Burst: 4}, marksNow).Actions, 4)
}

func FuzzUnseen(f *testing.F) {
	f.Add([]byte(`[{"kind":"Node","name":"x","uid":"u","resourceVersion":"7","at":"2026-03-01T12:00:00Z"}]`), "8", "x")
	f.Add([]byte(`[{"kind":"?","resourceVersion":"-"}]`), "", "")
	f.Fuzz(func(t *testing.T, text []byte, version, name string) {
		var u deployment.Unseen
		if json.Unmarshal(text, &u) != nil {
			return
		}
		back, err := json.Marshal(u)
		require.NoError(t, err)
		var again deployment.Unseen
		require.NoError(t, json.Unmarshal(back, &again))
		require.Empty(t, cmp.Diff(u, again))

		w := newMarksWorld(1)
		w.machines[0].Name, w.machines[0].ResourceVersion = name, version
		in := w.in()
		in.Unseen = u
		left := u.Observe(in)
		require.LessOrEqual(t, len(left), len(u))
		dec := deployment.Plan(in, deployment.Policy{}, marksNow)
		if len(left) > 0 {
			for _, a := range dec.Actions {
				require.IsType(t, deployment.Look{}, a)
			}
		}
		require.LessOrEqual(t, len(u.Looked(deployment.KindMachine, name, w.machines[0], marksNow)), len(u))
	})
}

// A set that is released by its deployment (labels taken away; or the deployment is
// deleted with --cascade=orphan) before the cache shows our last write of it exists,
// and is never among the sets again. Base: WriteNotSeen for ever, deletion included.
func TestAWriteOfASetThatWasReleasedIsNotWaitedForForEver(t *testing.T) {
	d := rolling(3, 1, 0)
	d.UID = "d"
	in := rollSee(d, rollSet(d, "c1", 3, 3, 3))
	lost := rollSet(d, "c0", 2, 2, 2)
	lost.ResourceVersion = "10"
	in.Unseen = in.Unseen.Wrote(lost, rollNow)
	live := lost.DeepCopy()
	live.ResourceVersion, live.OwnerReferences, live.Labels = "12", nil, nil
	now := rollNow.Add(time.Hour)
	require.Equal(t, deployment.ReasonWriteNotSeen, deployment.Plan(in, rollPolicy, now).Reason)
	in.Unseen = in.Unseen.Looked(deployment.KindSet, lost.Name, live, now)
	require.NotEqual(t, deployment.ReasonWriteNotSeen, deployment.Plan(in, rollPolicy, now).Reason)
}
