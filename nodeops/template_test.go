// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/nodeops"
)

// crowdedNode is a node with something in every field that these functions look at or copy.
func crowdedNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n1", UID: "u1", ResourceVersion: "7",
			Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"},
		},
		Spec: corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/i-0abc", Taints: []corev1.Taint{since(taint("t", "1", noSchedule), metav1.NewTime(t0))}},
		Status: corev1.NodeStatus{
			Capacity:   corev1.ResourceList{"cpu": resource.MustParse("4")},
			Conditions: []corev1.NodeCondition{cond("Ready", "True", "KubeletReady", t0)},
			Images:     []corev1.ContainerImage{{Names: []string{"x"}, SizeBytes: 1}},
		},
	}
}

const baseKey = nodeops.LastAppliedTemplateAnnotation

// synced applies the template and fails on an error.
func synced(t *testing.T, node *corev1.Node, desired nodeops.Template) (*corev1.Node, nodeops.TemplateChange) {
	t.Helper()
	out, change, err := nodeops.SyncTemplate(node, desired)
	require.NoError(t, err)
	return out, change
}

func TestSyncTemplateAddsChangesAndRemovesOnlyWhatIsOurs(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"foreign": "f", "clash": "theirs"}, Annotations: map[string]string{"foreign": "f"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{taint("foreign", "", noExecute)}},
	}
	node, change := synced(t, node, nodeops.Template{
		Labels:      map[string]string{"clash": "ours", "l": "1"},
		Annotations: map[string]string{"a": "1"},
		Taints:      []corev1.Taint{taint("t", "1", noSchedule), taint("u", "", noSchedule)},
	})
	require.Equal(t, map[string]string{"foreign": "f", "clash": "ours", "l": "1"}, node.Labels)
	require.Equal(t, []corev1.Taint{taint("foreign", "", noExecute), taint("t", "1", noSchedule), taint("u", "", noSchedule)}, node.Spec.Taints)
	require.Equal(t, "set labels clash, l; set annotations a; set taints t=1:NoSchedule, u:NoSchedule; record what was applied", change.String())

	node, change = synced(t, node, nodeops.Template{Labels: map[string]string{"l": "2"}, Taints: []corev1.Taint{taint("u", "new", noSchedule)}})
	require.Equal(t, map[string]string{"foreign": "f", "l": "2"}, node.Labels)
	require.Equal(t, map[string]string{"foreign": "f", baseKey: `{"metadata":{"labels":{"l":"2"}},"spec":{"taints":[{"key":"u","value":"new","effect":"NoSchedule"}]}}`}, node.Annotations)
	require.Equal(t, []corev1.Taint{taint("foreign", "", noExecute), taint("u", "new", noSchedule)}, node.Spec.Taints)
	require.Equal(t, "set labels l; remove labels clash; remove annotations a; set taints u=new:NoSchedule; remove taints t:NoSchedule; record what was applied",
		stringWithoutValues(change))

	node, _ = synced(t, node, nodeops.Template{})
	require.Equal(t, map[string]string{"foreign": "f"}, node.Labels)
	require.Equal(t, map[string]string{"foreign": "f", baseKey: `{"metadata":{},"spec":{}}`}, node.Annotations)
	require.Equal(t, []corev1.Taint{taint("foreign", "", noExecute)}, node.Spec.Taints)

	_, change = synced(t, node, nodeops.Template{})
	require.True(t, change.Empty())
	require.Equal(t, "nothing", change.String())
}

// stringWithoutValues prints the change with removed taints named by key and effect.
func stringWithoutValues(c nodeops.TemplateChange) string {
	for i := range c.RemoveTaints {
		c.RemoveTaints[i].Value = ""
	}
	return c.String()
}

func TestSyncTemplateRecordsWhatMatchedFromTheStart(t *testing.T) { // DM-23
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"l": "1"}}}
	node, change := synced(t, node, nodeops.Template{Labels: map[string]string{"l": "1"}})
	require.Equal(t, "record what was applied", change.String())
	require.False(t, change.Empty())
	node, _ = synced(t, node, nodeops.Template{})
	require.Empty(t, node.Labels, "a label that matched from the start is removed when it is no longer wanted")
}

func TestSyncTemplateRenewsTheRecordWhenOnlyTheRecordIsBehind(t *testing.T) { // DM-23
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"l": "1"}, Annotations: map[string]string{baseKey: `{"metadata":{"labels":{"gone":"1"}},"spec":{}}`},
	}}
	node, change := synced(t, node, nodeops.Template{Labels: map[string]string{"l": "1"}})
	require.Empty(t, change.RemoveLabels, "what is gone already need not be removed")
	require.JSONEq(t, `{"metadata":{"labels":{"l":"1"}},"spec":{}}`, node.Annotations[baseKey])
}

func TestSyncTemplateComparesTaintsWithoutTheirTimes(t *testing.T) { // DM-22
	desired := nodeops.Template{Taints: []corev1.Taint{since(taint("t", "1", noSchedule), metav1.NewTime(t1))}}
	node := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{since(taint("t", "1", noSchedule), metav1.NewTime(t0))}}}
	node, _ = synced(t, node, desired)
	require.True(t, node.Spec.Taints[0].TimeAdded.Equal(new(metav1.NewTime(t0))), "the time on the node stays")
	_, change := synced(t, node, nodeops.Template{Taints: []corev1.Taint{since(taint("t", "1", noSchedule), metav1.NewTime(t2))}})
	require.True(t, change.Empty(), change.String())
}

func TestSyncTemplateNeverTouchesItsOwnRecords(t *testing.T) {
	reserved := map[string]string{baseKey: "x", nodeops.LastAppliedCapacityAnnotation: "y", "": "z"}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{nodeops.LastAppliedCapacityAnnotation: `{"cpu":"1"}`}}}
	desired := nodeops.Template{
		Annotations: reserved, Labels: map[string]string{"": "x"},
		Taints: []corev1.Taint{taint("", "v", noSchedule), taint("t", "v", "")},
	}
	out, change := synced(t, node, desired)
	require.True(t, change.Empty(), change.String())
	require.Equal(t, []string{
		`annotation ""`, `annotation "` + baseKey + `"`, `annotation "` + nodeops.LastAppliedCapacityAnnotation + `"`,
		`label ""`, `taint "=v:NoSchedule"`, `taint "t=v"`,
	}, change.Ignored)
	require.Equal(t, node, out)

	// A record that names them, written by somebody else, does not remove them either.
	out, change = nodeops.MergeTemplate(node, nodeops.Template{Annotations: reserved}, nodeops.Template{})
	require.Empty(t, change.RemoveAnnotations)
	require.Equal(t, node, out)
}

func TestSyncTemplateStopsAtARecordThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"{", "[]", `"x"`, `{"metadata":[]}`, `{"spec":{"taints":[{"timeAdded":"yesterday"}]}}`, `{} {}`} {
		node := crowdedNode()
		node.Annotations[baseKey] = text
		out, change, err := nodeops.SyncTemplate(node, nodeops.Template{Labels: map[string]string{"x": "y"}})
		var typed *nodeops.BaseError
		require.ErrorAs(t, err, &typed, text)
		require.Equal(t, baseKey, typed.Annotation)
		require.Error(t, errors.Unwrap(err))
		require.Equal(t, node, out)
		require.True(t, change.Empty())

		out, change = nodeops.MergeTemplate(node, nodeops.Template{}, nodeops.Template{Labels: map[string]string{"x": "y"}})
		require.NotEmpty(t, change.Base, "a merge with a zero base is the way out")
		require.Equal(t, map[string]string{"l": "1", "x": "y"}, out.Labels)
		_, change = synced(t, out, nodeops.Template{Labels: map[string]string{"x": "y"}})
		require.True(t, change.Empty())
	}
}

func TestTemplateOfANilNodeIsNothing(t *testing.T) {
	desired := nodeops.Template{Labels: map[string]string{"x": "y"}}
	out, change, err := nodeops.SyncTemplate(nil, desired)
	require.NoError(t, err)
	require.Nil(t, out)
	require.True(t, change.Empty())
	require.True(t, nodeops.PlanTemplate(nil, desired, desired).Empty())
	out, _ = nodeops.MergeTemplate(nil, desired, desired)
	require.Nil(t, out)
}

// referenceTemplate has the shape of a machine's node template in the reference system.
type referenceTemplate struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              corev1.NodeSpec `json:"spec,omitempty"`
}

func TestTheRecordIsTheJSONOfANodeTemplate(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		template := nodeops.Template{Labels: randomEntries(rng), Annotations: randomEntries(rng), Taints: randomTaints(rng, 3, false)}
		reference := referenceTemplate{
			ObjectMeta: metav1.ObjectMeta{Labels: template.Labels, Annotations: template.Annotations},
			Spec:       corev1.NodeSpec{Taints: template.Taints},
		}
		want, err := json.Marshal(reference)
		require.NoError(t, err)
		text := nodeops.EncodeTemplate(template)
		require.Equal(t, string(want), text)

		decoded, err := nodeops.DecodeTemplate(text)
		require.NoError(t, err)
		require.True(t, maps.Equal(template.Labels, decoded.Labels))
		require.True(t, maps.Equal(template.Annotations, decoded.Annotations))
		require.Equal(t, text, nodeops.EncodeTemplate(decoded))
	}
}

func TestARecordInOtherWordsIsNotRewritten(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"l": "1"},
			Annotations: map[string]string{
				baseKey: `{ "metadata":{"creationTimestamp":null,"labels":{"l":"1"}}, "spec":{"taints":[{"key":"b","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule"}]}}`,
			},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{taint("a", "", noSchedule), taint("b", "", noSchedule)}},
	}
	_, change := synced(t, node, nodeops.Template{
		Labels: map[string]string{"l": "1"}, Taints: []corev1.Taint{taint("a", "", noSchedule), taint("b", "", noSchedule)},
	})
	require.True(t, change.Empty(), change.String())
}

// The laws of the comparison of three states, over random sequences of templates and of changes by others.
func TestTemplateLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 1500 {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Labels: randomEntries(rng), Annotations: randomEntries(rng)},
			Spec:       corev1.NodeSpec{Taints: randomTaints(rng, 4, true)},
		}
		for range 4 {
			base, err := nodeops.LastAppliedTemplate(node)
			require.NoError(t, err)
			desired := nodeops.Template{Labels: randomEntries(rng), Annotations: randomEntries(rng), Taints: randomTaints(rng, 3, true)}
			nodeBefore, desiredBefore := node.DeepCopy(), desired
			desiredBefore.Taints = cloned(desired.Taints)
			out, change := synced(t, node, desired)
			require.Empty(t, cmp.Diff(nodeBefore, node))
			require.Empty(t, cmp.Diff(desiredBefore, desired))
			require.Equal(t, change.Empty(), cmp.Equal(node, out), "the change says whether the node differs")

			requireMerged(t, node.Labels, base.Labels, desired.Labels, out.Labels)
			live := maps.Clone(out.Annotations)
			delete(live, baseKey)
			liveBefore := maps.Clone(node.Annotations)
			delete(liveBefore, baseKey)
			requireMerged(t, liveBefore, base.Annotations, desired.Annotations, live)
			requireMerged(t, taintMap(node.Spec.Taints), taintMap(base.Taints), taintMap(desired.Taints), taintMap(out.Spec.Taints))

			again, second := synced(t, out, desired)
			require.True(t, second.Empty(), "the second time nothing changes: %s", second)
			require.Empty(t, cmp.Diff(out, again))
			scribble(again.Spec.Taints, change.SetTaints, change.RemoveTaints)
			require.Empty(t, cmp.Diff(nodeBefore, node))
			require.Empty(t, cmp.Diff(desiredBefore, desired))

			node = out
			if rng.IntN(2) == 0 { // somebody else
				node.Labels, _ = nodeops.SetLabels(node.Labels, randomEntries(rng))
				node.Spec.Taints, _ = nodeops.RemoveTaints(node.Spec.Taints, randomTaints(rng, 2, false))
			}
		}
	}
}

// requireMerged states the rule once more, the slow and obvious way.
func requireMerged(t *testing.T, live, base, desired, got map[string]string) {
	t.Helper()
	want := map[string]string{}
	for key, value := range live {
		_, wasOurs := base[key]
		_, wanted := desired[key]
		if !wasOurs || wanted {
			want[key] = value
		}
	}
	maps.Copy(want, desired)
	require.True(t, maps.Equal(want, got), "want %v, got %v", want, got)
}

// taintMap returns the taints as a map from key and effect to value.
func taintMap(taints []corev1.Taint) map[string]string {
	out := map[string]string{}
	for _, x := range taints {
		out[x.Key+":"+string(x.Effect)] = x.Value
	}
	return out
}

func FuzzTemplateBase(f *testing.F) {
	for _, s := range []string{
		`{"metadata":{"labels":{"a":"b"}},"spec":{"taints":[{"key":"k","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00Z"}]}}`,
		`{"cpu":"1","memory":"1Gi"}`, `null`, ``, `{}`, `[]`, `{"cpu":"1e9"}`, `{"a":-1.5}`, `{"metadata":{"annotations":{"` + baseKey + `":""}}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		node := crowdedNode()
		node.Annotations[baseKey] = text
		desired := nodeops.Template{Labels: map[string]string{"l": "2"}}
		out, _, err := nodeops.SyncTemplate(node, desired)
		if err != nil {
			var typed *nodeops.BaseError
			require.ErrorAs(t, err, &typed)
		} else {
			_, change := synced(t, out, desired)
			require.True(t, change.Empty(), change.String())
		}
		if base, err := nodeops.DecodeTemplate(text); err == nil {
			// A template that came out of a record can be applied, and stays applied.
			out, _ := synced(t, crowdedNode(), base)
			_, change := synced(t, out, base)
			require.True(t, change.Empty(), change.String())
		}
	})
}

func FuzzCapacityBase(f *testing.F) {
	for _, s := range []string{`{"cpu":"1","memory":"1Gi"}`, `null`, ``, `{}`, `[]`, `{"cpu":"1e9"}`, `{"a":-1.5}`, `{"a":"1e-30"}`, `{"":1}`, `{"a":"1e999"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		base, err := nodeops.DecodeCapacity(text)
		if err != nil {
			var typed *nodeops.BaseError
			require.ErrorAs(t, err, &typed)
			return
		}
		out, _ := nodeops.MergeCapacity(crowdedNode(), nil, base)
		_, change, err := nodeops.SyncCapacity(out, base)
		require.NoError(t, err)
		require.True(t, change.Empty(), change.String())
	})
}
