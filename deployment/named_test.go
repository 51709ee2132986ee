// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	namesKey  = v1alpha1.TriggerDeletionByMCM
	scaledKey = v1alpha1.LastDeploymentReplicaChangeByScalerTime
	markKey   = v1alpha1.MarkedForDeletionTime
	prioKey   = v1alpha1.MachinePriority
)

func TestRemovalsAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		text, scaled string
		want         []string
		unreadable   []string
	}{
		"nothing":                       {},
		"a name and a time":             {text: "m~2026-02-01T00:00:00Z", want: []string{"m~2026-02-01T00:00:00Z"}},
		"a name alone, scaled before":   {text: "m", scaled: "2026-02-01T00:00:00Z", want: []string{"m~2026-02-01T00:00:00Z"}},
		"a name alone, never scaled":    {text: "m", want: []string{"m~" + marksNow.Format(time.RFC3339)}},
		"a name alone, scaled nonsense": {text: "m", scaled: "?", unreadable: []string{"m"}},
		"no name, two tildes, no time, nothing between commas": {
			text: "~2026-02-01T00:00:00Z,m~x~y,m~,,n~2026-02-01T00:00:00Z",
			want: []string{"n~2026-02-01T00:00:00Z"}, unreadable: []string{"~2026-02-01T00:00:00Z", "m~x~y", "m~", ""},
		},
		"a repetition stays one": {
			text: "m~2026-02-01T00:00:00Z,m~2026-02-01T00:00:00Z", want: []string{"m~2026-02-01T00:00:00Z", "m~2026-02-01T00:00:00Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &v1alpha1.MachineDeployment{}
			d.Annotations = map[string]string{namesKey: c.text}
			if c.scaled != "" {
				d.Annotations[scaledKey] = c.scaled
			}
			got, unreadable := deployment.RemovalsOf(d, marksNow)
			var texts []string
			for _, r := range got {
				texts = append(texts, r.String())
			}
			require.Equal(t, c.want, texts)
			require.Equal(t, c.unreadable, unreadable)
		})
	}
}

func TestScaleDownIsOneIntentOnOneObject(t *testing.T) {
	w := newMarksWorld(5)
	before := w.d.DeepCopy()
	next, err := deployment.ScaleDown(w.d, []string{"w-a-2", "w-a-4", "w-a-2"}, marksNow)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(before, w.d))
	require.Equal(t, int32(3), next.Spec.Replicas)
	require.Equal(t, "w-a-2~2026-03-01T12:00:00Z,w-a-4~2026-03-01T12:00:00Z", next.Annotations[namesKey])
	require.Equal(t, "2026-03-01T12:00:00Z", next.Annotations[scaledKey])
	require.Equal(t, "1", next.ResourceVersion, "the write fails if the deployment has changed")

	again, err := deployment.ScaleDown(next, []string{"w-a-4"}, marksNow.Add(time.Hour))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(next, again), "asking twice is asking once")

	more, err := deployment.ScaleDown(next, []string{"w-a-4", "w-a-5"}, marksNow.Add(-time.Hour))
	require.NoError(t, err)
	require.Equal(t, int32(2), more.Spec.Replicas)
	require.Equal(t, "2026-03-01T12:00:00Z", more.Annotations[scaledKey], "the time of the last change does not go back")
}

func TestScaleDownRefuses(t *testing.T) {
	w := newMarksWorld(1)
	for name, names := range map[string][]string{
		"an empty name":                {""},
		"a comma":                      {"a,b"},
		"a tilde":                      {"a~b"},
		"more machines than there are": {"a", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			next, err := deployment.ScaleDown(w.d, names, marksNow)
			require.ErrorIs(t, err, deployment.ErrScaleDown)
			require.Nil(t, next)
		})
	}
	_, err := deployment.ScaleDown(nil, nil, marksNow)
	require.ErrorIs(t, err, deployment.ErrScaleDown)
	next, err := deployment.ScaleDown(w.d, nil, marksNow)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(w.d, next))
}

func TestMS3NamesAreConsumedAndMarksArePut(t *testing.T) {
	w := newMarksWorld(4)
	failed, leaving := w.machines[1], w.machines[2]
	failed.Status.CurrentStatus.Phase = v1alpha1.MachineFailed
	leaving.DeletionTimestamp = new(metav1.NewTime(marksNow))
	w.machines[0].Annotations = map[string]string{prioKey: "7"}
	w.report(w.sets[0])
	w.d.Annotations = map[string]string{
		namesKey: strings.Join([]string{"w-a-1", failed.Name, leaving.Name, "nobody", "w-a-4~?"}, ","), scaledKey: "2026-02-01T00:00:00Z",
	}
	dec := w.run(t, deployment.Policy{})
	require.Equal(t, "w-a-1~2026-02-01T00:00:00Z", w.d.Annotations[namesKey])
	require.Equal(t, map[string]string{
		prioKey: "1", markKey: "2026-02-01T00:00:00Z", deployment.NamedAnnotation: "7",
	}, w.machines[0].Annotations)
	for _, m := range w.machines[1:] {
		require.Empty(t, m.Annotations)
	}
	require.Contains(t, dec.String(), "w-a-2: NotRemoved: it is to go and has failed by itself")
	require.Contains(t, dec.String(), `w: NotRemoved: "w-a-4~?" in`)
	require.NotContains(t, dec.String(), "nobody")
}

func TestMS3ANameThatIsWithdrawnLeavesNoMark(t *testing.T) {
	for _, before := range []string{"", "7"} {
		w := newMarksWorld(3)
		if before != "" {
			w.machines[0].Annotations = map[string]string{prioKey: before}
		}
		foreign := map[string]string{prioKey: "1", markKey: "2026-02-01T00:00:00Z"}
		w.machines[1].Annotations = foreign
		untouched := w.machines[0].DeepCopy()
		w.d.Annotations = map[string]string{namesKey: "w-a-1~2026-03-01T00:00:00Z", scaledKey: "2026-01-01T00:00:00Z"}
		w.run(t, deployment.Policy{})
		require.Equal(t, "1", w.machines[0].Annotations[prioKey])
		delete(w.d.Annotations, namesKey)
		w.run(t, deployment.Policy{})
		require.Len(t, w.machines[0].Annotations, len(untouched.Annotations))
		require.Equal(t, before, w.machines[0].Annotations[prioKey])
		require.Equal(t, foreign, w.machines[1].Annotations, "marks of others are theirs")
	}
}

func TestNamedMarksAreKeptInForce(t *testing.T) {
	w := newMarksWorld(2)
	w.machines[0].Annotations = map[string]string{prioKey: "9", markKey: "2026-01-05T00:00:00Z", deployment.NamedAnnotation: "7"}
	w.d.Annotations = map[string]string{namesKey: "w-a-1~2026-03-01T00:00:00Z", scaledKey: "2026-01-01T00:00:00Z"}
	w.run(t, deployment.Policy{})
	require.Equal(t, map[string]string{prioKey: "1", markKey: "2026-01-05T00:00:00Z", deployment.NamedAnnotation: "7"}, w.machines[0].Annotations,
		"the first mark stays, and so does what is known of the priority before")
}

func TestNamedMarksOfMachinesThatGoAreNotTakenBack(t *testing.T) {
	w := newMarksWorld(3)
	marked := map[string]string{prioKey: "1", markKey: "2026-03-05T00:00:00Z", deployment.NamedAnnotation: ""}
	w.machines[0].Status.CurrentStatus.Phase = v1alpha1.MachineFailed
	w.machines[1].DeletionTimestamp = new(metav1.NewTime(marksNow))
	w.machines[0].Annotations, w.machines[1].Annotations = marked, marked
	w.report(w.sets[0])
	for _, a := range w.plan(deployment.Policy{}).Actions {
		_, marks := a.(deployment.WriteMachine)
		require.False(t, marks, "%v", a)
	}
}

func TestNamedMachinesOfOthersAreLeftAlone(t *testing.T) {
	w := newMarksWorld(2)
	other, orphan := w.machines[0].DeepCopy(), w.machines[0].DeepCopy()
	other.Name, other.UID, other.OwnerReferences[0].UID = "other", "other-uid", "another set"
	orphan.Name, orphan.UID, orphan.OwnerReferences = "orphan", "orphan-uid", nil
	w.machines = append(w.machines, other, orphan, nil)
	w.d.Annotations = map[string]string{namesKey: "other,orphan", scaledKey: "2026-02-01T00:00:00Z"}
	dec := w.plan(deployment.Policy{})
	for _, a := range dec.Actions {
		_, marks := a.(deployment.WriteMachine)
		require.False(t, marks, "%v", a)
	}
	require.Contains(t, dec.String(), "other: NotRemoved: it is to go and does not belong to this deployment")
	require.Contains(t, dec.String(), "orphan: NotRemoved: it is to go and belongs to nobody yet")
	written := dec.Actions[0].(deployment.WriteDeployment).Deployment
	require.Equal(t, "orphan~2026-02-01T00:00:00Z", written.Annotations[namesKey], "it may still be adopted")
}

func TestNamedPassIsARestWhenNothingIsLeftToDo(t *testing.T) {
	w := newMarksWorld(2)
	w.d.Annotations = map[string]string{namesKey: "w-a-1~2026-03-01T00:00:00Z", scaledKey: "2026-01-01T00:00:00Z"}
	w.run(t, deployment.Policy{})
	w.run(t, deployment.Policy{})
	for _, s := range w.sets {
		w.report(s)
	}
	require.Empty(t, w.plan(deployment.Policy{}).Actions)
}

func FuzzRemovals(f *testing.F) {
	f.Add("m~2026-02-01T00:00:00Z,n", "2026-02-01T00:00:00Z")
	f.Add("~,~~,,m~x~y", "?")
	f.Fuzz(func(t *testing.T, text, scaled string) {
		w := newMarksWorld(2)
		w.d.Annotations = map[string]string{namesKey: text, scaledKey: scaled}
		removals, _ := deployment.RemovalsOf(w.d, marksNow)
		for _, r := range removals {
			d := &v1alpha1.MachineDeployment{}
			d.Annotations = map[string]string{namesKey: r.String()}
			again, unreadable := deployment.RemovalsOf(d, marksNow)
			require.Empty(t, unreadable)
			require.Equal(t, []string{r.String()}, []string{again[0].String()})
		}
		w.run(t, deployment.Policy{})
		after := w.d.Annotations[namesKey]
		w.run(t, deployment.Policy{})
		require.Equal(t, after, w.d.Annotations[namesKey], "what is left is stable")
	})
}

func ExampleScaleDown() {
	w := newMarksWorld(3)
	next, err := deployment.ScaleDown(w.d, []string{"w-a-2"}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	fmt.Println(next.Spec.Replicas, err)
	fmt.Println(next.Annotations[v1alpha1.TriggerDeletionByMCM])
	// Output:
	// 2 <nil>
	// w-a-2~2026-03-01T12:00:00Z
}

func TestAPriorityThatSomebodyElseHasWrittenMeanwhileStays(t *testing.T) {
	w := newMarksWorld(2)
	for i, priority := range []string{"1", "7"} {
		w.machines[i].Annotations = map[string]string{
			deployment.NamedAnnotation: "3", v1alpha1.MachinePriority: priority, v1alpha1.MarkedForDeletionTime: "2026-03-01T11:00:00Z",
		}
	}
	w.run(t, deployment.Policy{})
	require.Equal(t, map[string]string{v1alpha1.MachinePriority: "3"}, w.machines[0].Annotations)
	require.Equal(t, map[string]string{v1alpha1.MachinePriority: "7"}, w.machines[1].Annotations)
}
