// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// historyBuilder builds histories.
type historyBuilder struct {
	machines map[string]*v1alpha1.Machine
	writes   []draintest.Write
}

// write changes a machine, and creates a missing one. A nil change removes it.
func (b *historyBuilder) write(name string, change func(*v1alpha1.Machine)) {
	if b.machines == nil {
		b.machines = map[string]*v1alpha1.Machine{}
	}
	w := draintest.Write{Name: name, Time: began.Add(time.Duration(len(b.writes)+1) * time.Second)}
	before := b.machines[name]
	if before != nil {
		w.Before = before
	}
	delete(b.machines, name)
	if change != nil {
		after := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(w.Time)}}
		if before != nil {
			after = before.DeepCopy()
		}
		change(after)
		b.machines[name], w.After = after, after
	}
	b.writes = append(b.writes, w)
}

func enters(phase v1alpha1.MachinePhase) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) {
		m.Status.CurrentStatus.Phase = phase
		m.Status.LastOperation.Description = "failed to join"
	}
}

func goes(m *v1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: began} }

// historyOf adds writes, one for each word such as "a:Failed", and returns the lifecycles of the
// history.
func (b *historyBuilder) historyOf(words ...string) []*lifecycle {
	for _, word := range words {
		name, what := word[:1], word[2:]
		switch what {
		case "made":
			b.write(name, func(*v1alpha1.Machine) {})
		case "kept":
			b.write(name, func(m *v1alpha1.Machine) {
				m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: began.Add(5 * time.Second)}
			})
		case "let-go":
			b.write(name, func(m *v1alpha1.Machine) {
				metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.PreserveMachineAnnotationKey, "false")
			})
		case "free":
			b.write(name, func(m *v1alpha1.Machine) { m.Status.CurrentStatus.PreserveExpiryTime = nil })
		case "deleted":
			b.write(name, goes)
		case "gone":
			b.write(name, nil)
		default:
			b.write(name, enters(v1alpha1.MachinePhase(what)))
		}
	}
	return lifecyclesIn(b.writes)
}

func TestLifecycles_History_IsRead(t *testing.T) {
	b := &historyBuilder{}
	b.writes = append(b.writes, draintest.Write{Name: "a", After: &corev1.Node{}})
	lifecycles := b.historyOf("a:made", "b:made", "a:Running", "a:Unknown", "a:Running", "a:kept", "a:Failed", "a:let-go", "a:free", "a:deleted", "a:gone")
	require.Len(t, lifecycles, 2)
	a := lifecycleOf(lifecycles, "a")
	for want, m := range map[int]moment{2: a.made, 4: a.running, 5: a.unknown, 7: a.preserved, 8: a.failed, 9: a.letGo, 10: a.released, 11: a.deleted, 12: a.gone} {
		require.Equal(t, moment{want, began.Add(time.Duration(want) * time.Second)}, m)
	}
	require.Equal(t, began.Add(5*time.Second), a.until)
	require.Equal(t, &lifecycle{name: "c"}, lifecycleOf(lifecycles, "c"))
	require.True(t, lifecycleOf(lifecycles, "b").running.never())
	require.False(t, moment{}.before(a.made), "never is before no moment")
	require.False(t, a.made.before(moment{}))
}

func TestLifecycles_DidNotHappen_FactsReturnError(t *testing.T) {
	joins := func(l []*lifecycle) error { _, err := neverJoined(l, lifecycleOf(l, "a")); return err }
	silent := func(l []*lifecycle) error {
		_, err := oneAtATime(l, lifecycleOf(l, "a"), lifecycleOf(l, "b"), began)
		return err
	}
	kept := func(l []*lifecycle) error { _, err := keptUntilReleased(l, lifecycleOf(l, "a")); return err }
	timed := func(l []*lifecycle) error { _, err := timeRanOut(lifecycleOf(l, "a")); return err }
	tests := map[string]struct {
		facts func([]*lifecycle) error
		words []string
		says  string // empty means no error
	}{
		"one never joins":                        {joins, []string{"a:made", "a:Failed", "a:deleted", "b:made", "a:gone", "b:Running"}, ""},
		"one joins":                              {joins, []string{"a:made", "a:Running", "a:Failed", "a:deleted", "b:made", "a:gone", "b:Running"}, "has joined"},
		"one does not fail":                      {joins, []string{"a:made", "a:deleted", "b:made", "a:gone", "b:Running"}, "did not fail"},
		"one stays although it has failed":       {joins, []string{"a:made", "a:Failed", "b:made", "b:Running"}, "was not deleted"},
		"one is deleted before it fails":         {joins, []string{"a:made", "a:deleted", "a:Failed", "a:gone", "b:made", "b:Running"}, "was not deleted after"},
		"one is not replaced":                    {joins, []string{"a:made", "b:made", "a:Failed", "a:deleted", "a:gone", "b:Running"}, "was not replaced"},
		"one is replaced by what does not run":   {joins, []string{"a:made", "a:Failed", "a:deleted", "a:gone", "b:made"}, "was not replaced"},
		"two are replaced one after the other":   {silent, []string{"a:Unknown", "b:Unknown", "a:Failed", "c:made", "c:Running", "a:gone", "b:Failed", "d:made", "b:gone", "d:Running"}, ""},
		"one is well":                            {silent, []string{"a:Unknown", "a:Failed", "c:made", "c:Running", "a:gone", "b:Failed", "d:made", "b:gone", "d:Running"}, "were not both Unknown"},
		"one does not fail at all":               {silent, []string{"a:Unknown", "b:Unknown", "a:Failed", "c:made", "c:Running", "a:gone"}, "have not both failed"},
		"the second fails before the first went": {silent, []string{"a:Unknown", "b:Unknown", "a:Failed", "c:made", "c:Running", "b:Failed", "a:gone", "d:made", "b:gone", "d:Running"}, "although the replacement"},
		"the second fails before another runs":   {silent, []string{"a:Unknown", "b:Unknown", "a:Failed", "c:made", "a:gone", "b:Failed", "c:Running", "d:made", "b:gone", "d:Running"}, "although the replacement"},
		"the first has no replacement":           {silent, []string{"c:made", "a:Unknown", "b:Unknown", "a:Failed", "a:gone", "b:Failed", "b:gone"}, "machine a was not replaced"},
		"the second has none":                    {silent, []string{"a:Unknown", "b:Unknown", "a:Failed", "c:made", "c:Running", "a:gone", "b:Failed", "b:gone"}, "machine b was not replaced"},
		"one is kept and released":               {kept, []string{"a:Failed", "a:kept", "a:let-go", "a:free", "a:deleted", "b:made", "a:gone", "b:Running"}, ""},
		"one is not kept":                        {kept, []string{"a:Failed", "a:let-go", "a:deleted", "b:made", "a:gone", "b:Running"}, "was not preserved"},
		"one is not released":                    {kept, []string{"a:Failed", "a:kept", "a:free", "a:deleted", "b:made", "a:gone", "b:Running"}, "was not released"},
		"one is deleted although it is kept":     {kept, []string{"a:Failed", "a:kept", "a:deleted", "a:let-go", "b:made", "a:gone", "b:Running"}, "was not deleted after"},
		"one is replaced although it is kept":    {kept, []string{"a:Failed", "a:kept", "b:made", "b:Running", "a:let-go", "a:deleted", "a:gone"}, "was not replaced after"},
		"the time of one runs out":               {timed, []string{"a:kept", "c:made", "c:Running", "d:made", "a:free"}, ""},
		"one is released before its time":        {timed, []string{"a:kept", "a:free"}, "3s before its time"},
		"one is preserved for ever":              {timed, []string{"a:kept"}, "was not preserved for a time"},
		"one was Unknown meanwhile":              {timed, []string{"a:kept", "a:Unknown", "a:Running", "d:made", "a:free"}, "did not stay Running"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.facts((&historyBuilder{}).historyOf(test.words...))
			if test.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.says)
		})
	}
}

func TestTokens_NodesJoin_NoTokenIsLeft(t *testing.T) {
	node, secret := &corev1.Node{}, &corev1.Secret{Type: corev1.SecretTypeOpaque}
	token := &corev1.Secret{Type: corev1.SecretTypeBootstrapToken}
	joins, made, gone := draintest.Write{After: node}, draintest.Write{After: token}, draintest.Write{Before: token}
	other := []draintest.Write{{After: secret}, {Before: token, After: token}, {Before: node, After: node}, {Before: node}}
	text, err := joinedWithTokens(append(other, made, joins, gone, made, gone))
	require.NoError(t, err)
	require.Equal(t, "1 Nodes joined, each with its own bootstrap token; all 2 tokens were deleted", text)
	_, err = joinedWithTokens(append(other, joins))
	require.ErrorContains(t, err, "1 Nodes joined with 0 bootstrap tokens")
	_, err = joinedWithTokens(append(other, made, joins, made, gone))
	require.ErrorContains(t, err, "1 of 2 bootstrap tokens were not deleted")
	_, err = joinedWithTokens(nil)
	require.Error(t, err)
}

func TestAutoscaler_NodeCordonedForRollout_ScaleDownDisabled(t *testing.T) {
	node := func(told string) draintest.Write {
		return draintest.Write{After: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{
			v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey: told,
		}}}}
	}
	require.NoError(t, spared([]draintest.Write{node(""), node("true"), node("")}, "n"))
	require.ErrorContains(t, spared([]draintest.Write{node("")}, "n"), "did not get the annotation")
	require.ErrorContains(t, spared([]draintest.Write{node("true")}, "other"), "did not get the annotation")
	require.ErrorContains(t, spared([]draintest.Write{node(""), node("true")}, "n"), "still")
}
