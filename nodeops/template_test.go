// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

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

const (
	templateKey = "node.machine.sapcloud.io/last-applied-anno-labels-taints"
	capacityKey = "node.machine.sapcloud.io/last-applied-virtual-capacity"
)

// synced returns the node with the template, and what was done.
func synced(t *testing.T, node *corev1.Node, desired nodeops.Template) (*corev1.Node, nodeops.Change) {
	t.Helper()
	return applied(t, node)(nodeops.SyncTemplate(node, desired))
}

// applied returns the node after a change, and checks that a change has a text.
func applied(t *testing.T, node *corev1.Node) func(nodeops.Change, error) (*corev1.Node, nodeops.Change) {
	return func(change nodeops.Change, err error) (*corev1.Node, nodeops.Change) {
		require.NoError(t, err)
		require.Equal(t, change.Node == nil, change.Text == "")
		if change.Node == nil {
			return node, change
		}
		return change.Node, change
	}
}

func TestSyncTemplate_Entries_SetsAndRemovesItsOwn(t *testing.T) {
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
	require.Equal(t, "set labels clash, l; set annotations a; set taints t=1:NoSchedule, u:NoSchedule; record what was applied", change.Text)

	node, change = synced(t, node, nodeops.Template{Labels: map[string]string{"l": "2"}, Taints: []corev1.Taint{taint("u", "new", noSchedule)}})
	require.Equal(t, map[string]string{"foreign": "f", "l": "2"}, node.Labels)
	require.Equal(t, map[string]string{"foreign": "f", templateKey: `{"metadata":{"labels":{"l":"2"}},"spec":{"taints":[{"key":"u","value":"new","effect":"NoSchedule"}]}}`}, node.Annotations)
	require.Equal(t, []corev1.Taint{taint("foreign", "", noExecute), taint("u", "new", noSchedule)}, node.Spec.Taints)
	require.Equal(t, "set labels l; remove labels clash; remove annotations a; set taints u=new:NoSchedule; remove taints t=1:NoSchedule; record what was applied", change.Text)

	node, _ = synced(t, node, nodeops.Template{})
	require.Equal(t, map[string]string{"foreign": "f"}, node.Labels)
	require.Equal(t, map[string]string{"foreign": "f", templateKey: `{"metadata":{},"spec":{}}`}, node.Annotations)
	require.Equal(t, []corev1.Taint{taint("foreign", "", noExecute)}, node.Spec.Taints)
}

func TestSyncTemplate_MatchesFromTheStart_IsRecorded(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"l": "1"}}}
	node, change := synced(t, node, nodeops.Template{Labels: map[string]string{"l": "1"}})
	require.Equal(t, "record what was applied", change.Text)
	node, _ = synced(t, node, nodeops.Template{})
	require.Empty(t, node.Labels, "a label that matched from the start is removed when it is no longer wanted")

	node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"l": "1"}, Annotations: map[string]string{templateKey: `{"metadata":{"labels":{"gone":"1"}},"spec":{}}`},
	}}
	node, change = synced(t, node, nodeops.Template{Labels: map[string]string{"l": "1"}})
	require.Equal(t, "record what was applied", change.Text, "a label that is gone already need not be removed")
	require.JSONEq(t, `{"metadata":{"labels":{"l":"1"}},"spec":{}}`, node.Annotations[templateKey])
}

func TestSyncTemplate_TaintTimes_AreIgnored(t *testing.T) {
	taints := func(at time.Time) []corev1.Taint {
		return []corev1.Taint{since(taint("t", "1", noSchedule), metav1.NewTime(at))}
	}
	node, _ := synced(t, &corev1.Node{Spec: corev1.NodeSpec{Taints: taints(t0)}}, nodeops.Template{Taints: taints(t1)})
	require.Equal(t, taints(t0), node.Spec.Taints, "the time on the node stays")
	_, change := synced(t, node, nodeops.Template{Taints: taints(t2)})
	require.Nil(t, change.Node, change.Text)
}

func TestSyncTemplate_OwnRecords_AreNotSet(t *testing.T) {
	reserved := map[string]string{templateKey: "x", capacityKey: "y", "": "z"}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{capacityKey: `{"cpu":"1"}`}}}
	_, change := synced(t, node, nodeops.Template{
		Annotations: reserved, Labels: map[string]string{"": "x"},
		Taints: []corev1.Taint{taint("", "v", noSchedule), taint("t", "v", "")},
	})
	require.Nil(t, change.Node, change.Text)
	require.Equal(t, []string{
		`annotation ""`, `annotation "` + templateKey + `"`, `annotation "` + capacityKey + `"`,
		`label ""`, `taint "=v:NoSchedule"`, `taint "t=v:"`,
	}, change.Ignored)

	// A record that names them, written by another, does not remove them either.
	node.Annotations[templateKey] = `{"metadata":{"annotations":{"` + capacityKey + `":"y"}}}`
	_, change = synced(t, node, nodeops.Template{})
	require.Equal(t, "record what was applied", change.Text)
}

func TestSync_UnreadableRecord_IsAnErrorAndNoChange(t *testing.T) {
	node := crowdedNode()
	node.Annotations[capacityKey] = `{"cpu":"many"}`
	change, err := nodeops.SyncCapacity(node, nil)
	require.ErrorContains(t, err, capacityKey)
	require.Zero(t, change)
	for _, text := range []string{"{", "[]", `"x"`, `{"metadata":[]}`, `{"spec":{"taints":[{"timeAdded":"yesterday"}]}}`, `{} {}`} {
		node.Annotations[templateKey] = text
		change, err := nodeops.SyncTemplate(node, nodeops.Template{Labels: map[string]string{"x": "y"}})
		require.ErrorContains(t, err, templateKey, text)
		require.Zero(t, change)
	}
}

func TestSync_NilNode_NeedsNothing(t *testing.T) {
	_, change := synced(t, nil, nodeops.Template{Labels: map[string]string{"x": "y"}})
	require.Zero(t, change)
	_, change = applied(t, nil)(nodeops.SyncCapacity(nil, resources("a=1")))
	require.Zero(t, change)
}

// referenceTemplate has the shape of a machine's node template in MCM.
type referenceTemplate struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              corev1.NodeSpec `json:"spec,omitempty"`
}

// record returns the text that MCM would record.
func record(t *testing.T, template nodeops.Template) string {
	text, err := json.Marshal(referenceTemplate{
		ObjectMeta: metav1.ObjectMeta{Labels: template.Labels, Annotations: template.Annotations},
		Spec:       corev1.NodeSpec{Taints: template.Taints},
	})
	require.NoError(t, err)
	return string(text)
}

// recorded returns the template that a text records.
func recorded(text string) (reference referenceTemplate, err error) {
	if text != "" {
		err = json.Unmarshal([]byte(text), &reference)
	}
	return reference, err
}

func TestSyncTemplate_Record_IsJSONOfNodeTemplate(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		template := nodeops.Template{Labels: randomEntries(rng), Annotations: randomEntries(rng), Taints: randomTaints(rng, 3, false)}
		node, change := synced(t, &corev1.Node{}, template)
		if change.Node != nil {
			require.Equal(t, record(t, template), node.Annotations[templateKey])
		}
	}
}

// anyText returns a text of a few letters, some of which JSON has to escape.
func anyText(r *rand.Rand) string {
	return pick(r, "a", "b", "c/d", `"`, `\`, "<", "é", "\u2028", "", "a b", "\x7f")
}

func anyMap(r *rand.Rand) map[string]string {
	m := map[string]string{}
	for range r.IntN(4) {
		m["k"+anyText(r)] = anyText(r)
	}
	return m
}

func anyTemplate(r *rand.Rand) nodeops.Template {
	t := nodeops.Template{Labels: anyMap(r), Annotations: anyMap(r)}
	for i := range r.IntN(3) {
		t.Taints = append(t.Taints, taint(fmt.Sprint("t", i), anyText(r), noSchedule))
		if r.IntN(4) == 0 {
			t.Taints[i].TimeAdded = ptr.To(metav1.NewTime(t1))
		}
	}
	return t
}

// TestSyncTemplate_AnyRecord_IsRenewedIfItMeansAnotherTemplate asserts that a record that is
// recognized without decoding means the same as if it were decoded: it is renewed exactly if it
// means another template.
func TestSyncTemplate_AnyRecord_IsRenewedIfItMeansAnotherTemplate(t *testing.T) {
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 1))
		before, desired := anyTemplate(r), anyTemplate(r)
		if r.IntN(2) == 0 {
			desired = before
		}
		text := record(t, before)
		if r.IntN(4) == 0 { // another writer has changed it
			i := r.IntN(len(text))
			text = text[:i] + string(`":,{}x`[r.IntN(6)]) + text[i+r.IntN(2):]
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{templateKey: text}}}
		change, err := nodeops.SyncTemplate(node, desired)
		decoded, unreadable := recorded(text)
		if err != nil {
			require.Error(t, unreadable, "seed %d: %s", seed, text)
			continue
		}
		same := maps.Equal(decoded.Labels, desired.Labels) && maps.Equal(decoded.Annotations, desired.Annotations) &&
			maps.Equal(taintMap(decoded.Spec.Taints), taintMap(desired.Taints))
		require.Equal(t, !same, strings.Contains(change.Text, "record"), "seed %d: %s", seed, text)
	}
}

func TestSyncTemplate_EqualRecord_IsNotRewritten(t *testing.T) {
	taints := []corev1.Taint{taint("a", "", noSchedule), taint("b", "", noSchedule)}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"l": "1"},
			Annotations: map[string]string{
				templateKey: `{ "metadata":{"creationTimestamp":null,"labels":{"l":"1"}}, "spec":{"taints":[{"key":"b","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule"}]}}`,
			},
		},
		Spec: corev1.NodeSpec{Taints: taints},
	}
	_, change := synced(t, node, nodeops.Template{Labels: map[string]string{"l": "1"}, Taints: taints})
	require.Nil(t, change.Node, change.Text)
}

// TestSync_TaintRemovedWhileCapacityChanges_BothAreStored asserts that a write of the status may drop
// changes of the spec: template and capacity are two writes.
func TestSync_TaintRemovedWhileCapacityChanges_BothAreStored(t *testing.T) {
	node := crowdedNode()
	step := func(template nodeops.Template, capacity corev1.ResourceList) {
		change, err := nodeops.SyncCapacity(node, capacity)
		require.NoError(t, err)
		node.ObjectMeta, node.Status = change.Node.ObjectMeta, change.Node.Status // the status subresource
		change, err = nodeops.SyncTemplate(node, template)
		require.NoError(t, err)
		node.ObjectMeta, node.Spec = change.Node.ObjectMeta, change.Node.Spec
	}
	ours := taint("ours", "", noSchedule)
	step(nodeops.Template{Taints: []corev1.Taint{ours}}, resources("x=1"))
	require.True(t, nodeops.HasTaint(node.Spec.Taints, ours))
	step(nodeops.Template{}, resources("x=2"))
	require.False(t, nodeops.HasTaint(node.Spec.Taints, ours))
	require.True(t, nodeops.HasTaint(node.Spec.Taints, taint("t", "1", noSchedule)))
	require.Equal(t, resources("cpu=4 x=2"), node.Status.Capacity)
}

func TestSyncTemplate_NothingToDo_AllocatesNothing(t *testing.T) {
	desired := nodeops.Template{
		Labels: map[string]string{"a": "1", "b": "2"}, Annotations: map[string]string{"c": "3"},
		Taints: []corev1.Taint{taint("a", "", noSchedule), taint("b", "x", noExecute)},
	}
	node, _ := synced(t, &corev1.Node{}, desired)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if change, err := nodeops.SyncTemplate(node, desired); err != nil || change.Node != nil {
			t.Error("a change")
		}
	}))
}

// TestSyncTemplate_Random_Laws asserts the laws of the comparison of three states over random
// sequences of templates and of changes by others.
func TestSyncTemplate_Random_Laws(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 600 {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Labels: randomEntries(rng), Annotations: randomEntries(rng)},
			Spec:       corev1.NodeSpec{Taints: randomTaints(rng, 4, true)},
		}
		for range 4 {
			base, err := recorded(node.Annotations[templateKey])
			require.NoError(t, err)
			desired := nodeops.Template{Labels: randomEntries(rng), Annotations: randomEntries(rng), Taints: randomTaints(rng, 3, true)}
			nodeBefore, desiredBefore := node.DeepCopy(), desired
			desiredBefore.Taints = cloned(desired.Taints)
			out, change := synced(t, node, desired)
			require.Empty(t, cmp.Diff(nodeBefore, node))
			require.Empty(t, cmp.Diff(desiredBefore, desired))
			require.Equal(t, change.Node == nil, cmp.Equal(node, out), "the change says whether the node differs")

			requireMerged(t, node.Labels, base.Labels, desired.Labels, out.Labels)
			live := maps.Clone(out.Annotations)
			delete(live, templateKey)
			liveBefore := maps.Clone(node.Annotations)
			delete(liveBefore, templateKey)
			requireMerged(t, liveBefore, base.Annotations, desired.Annotations, live)
			requireMerged(t, taintMap(node.Spec.Taints), taintMap(base.Spec.Taints), taintMap(desired.Taints), taintMap(out.Spec.Taints))

			again, second := synced(t, out, desired)
			require.Nil(t, second.Node, "the second time nothing changes: %s", second.Text)
			require.Empty(t, cmp.Diff(out, again))
			if change.Node != nil {
				again = again.DeepCopy()
				scribble(out.Spec.Taints)
				require.Empty(t, cmp.Diff(nodeBefore, node), "the output shares memory with the node")
				require.Empty(t, cmp.Diff(desiredBefore, desired), "the output shares memory with the template")
			}

			node = again
			if rng.IntN(2) == 0 { // another writer
				node = node.DeepCopy()
				node.Labels = randomEntries(rng)
				node.Spec.Taints, _ = nodeops.RemoveTaintKey(node.Spec.Taints, "a")
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
		`{"cpu":"1","memory":"1Gi"}`, `null`, ``, `{}`, `[]`, `{"cpu":"1e9"}`, `{"a":-1.5}`, `{"metadata":{"annotations":{"` + templateKey + `":""}}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		node := crowdedNode()
		node.Annotations[templateKey] = text
		desired := nodeops.Template{Labels: map[string]string{"l": "2"}}
		if change, err := nodeops.SyncTemplate(node, desired); err == nil {
			_, again := synced(t, change.Node, desired)
			require.Nil(t, again.Node, again.Text)
		}
		if base, err := recorded(text); err == nil {
			// A template that came out of a record can be applied, and stays applied.
			desired = nodeops.Template{Labels: base.Labels, Annotations: base.Annotations, Taints: base.Spec.Taints}
			out, _ := synced(t, crowdedNode(), desired)
			_, again := synced(t, out, desired)
			require.Nil(t, again.Node, again.Text)
		}
	})
}

// randomEntries returns a small map over few keys and values.
func randomEntries(rng *rand.Rand) map[string]string {
	out := map[string]string{}
	for range rng.IntN(4) {
		out[pick(rng, "a", "b", "c", "d", "e")] = pick(rng, "", "1", "2")
	}
	return out
}
