// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/nodeops"
)

// resources returns a list from a text of names and quantities.
func resources(text string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for entry := range strings.FieldsSeq(text) {
		name, quantity, _ := strings.Cut(entry, "=")
		out[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return out
}

func TestSyncCapacity_Table_Change(t *testing.T) {
	for name, tc := range map[string]struct{ record, have, desired, want, recorded, change string }{
		"what was ours is removed":   {`{"a":"1","b":"1"}`, "cpu=4 a=1 b=1", "a=1", "cpu=4 a=1", `{"a":"1"}`, "remove b; record what was applied"},
		"a first match is recorded":  {"", "a=1", "a=1", "a=1", `{"a":"1"}`, "record what was applied"},
		"nothing is wanted":          {`{"a":"1"}`, "cpu=4 a=1", "", "cpu=4", "", "remove a; forget what was applied"},
		"the amount in another unit": {`{"m":"1024Mi"}`, "m=1Gi", "m=1073741824", "m=1Gi", `{"m":"1024Mi"}`, ""},
		"a resource without a name":  {"", "cpu=4", "=1", "cpu=4", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			node, desired := &corev1.Node{}, resources(tc.desired)
			if node.Status.Capacity = resources(tc.have); tc.record != "" {
				node.Annotations = map[string]string{capacityKey: tc.record}
			}
			before := node.DeepCopy()
			got, change := applied(t, node)(nodeops.SyncCapacity(node, desired))
			require.Equal(t, tc.change, change.Text)
			require.Empty(t, cmp.Diff(resources(tc.want), got.Status.Capacity))
			require.Equal(t, tc.recorded, got.Annotations[capacityKey])
			require.Empty(t, cmp.Diff(before, node))
			require.Empty(t, cmp.Diff(resources(tc.desired), desired))
			_, change = applied(t, got)(nodeops.SyncCapacity(got, desired))
			require.Nil(t, change.Node, "the second time nothing changes: %s", change.Text)
		})
	}
}

// withCapacityRecord returns a node with the text as record.
func withCapacityRecord(text string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{capacityKey: text}}}
}

func TestSyncCapacity_CostlyQuantityInTheRecord_IsAnError(t *testing.T) {
	digits := strings.Repeat("9", 257)
	for _, quantity := range []string{`"1e-99999999"`, `1e-99999999`, `"1\u0065-99999999"`, `"1E+1000"`, `"` + digits + `"`, digits} {
		_, err := nodeops.SyncCapacity(withCapacityRecord(`{"a":`+quantity+`}`), nil)
		require.ErrorContains(t, err, "too many digits", quantity)
	}
	node := withCapacityRecord(`{"a":"1E","b":1e3,"c":"1e-3","d":"12345678901234567890","e":null,"f":"123456"}`)
	node.Status.Capacity = resources("a=1E b=1k c=1m d=12345678901234567890 e=0 f=123456")
	_, change := applied(t, node)(nodeops.SyncCapacity(node, node.Status.Capacity))
	require.Nil(t, change.Node, change.Text)
}

// TestSyncCapacity_Result_SharesNoQuantity has a quantity of more than 63 bits, which is a pointer
// inside. Add changes the value behind it.
func TestSyncCapacity_Result_SharesNoQuantity(t *testing.T) {
	const large = "99999999999999999999"
	desired := resources("a=" + large)
	out, _ := applied(t, nil)(nodeops.SyncCapacity(&corev1.Node{}, desired))
	quantity := out.Status.Capacity["a"]
	quantity.Add(resource.MustParse("1"))
	require.Empty(t, cmp.Diff(resources("a="+large), desired))
}

func TestSyncCapacity_AnyRecord_IsRenewedIfItMeansAnotherCapacity(t *testing.T) {
	list := func(r *rand.Rand) corev1.ResourceList {
		l := corev1.ResourceList{}
		for range 1 + r.IntN(2) {
			l[corev1.ResourceName("x"+anyText(r))] = resource.MustParse(pick(r, "0", "1", "1000m", "1Gi", "1024Mi", "100n", "12345678901234567890", "1.5", "-3"))
		}
		return l
	}
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 2))
		before, desired := list(r), list(r)
		if r.IntN(2) == 0 {
			desired = before
		}
		encoded, err := json.Marshal(before)
		require.NoError(t, err)
		text := string(encoded)
		if r.IntN(4) == 0 { // another writer has changed it
			i := r.IntN(len(text))
			text = text[:i] + string(`":,{}x1`[r.IntN(7)]) + text[i+r.IntN(2):]
		}
		change, err := nodeops.SyncCapacity(withCapacityRecord(text), desired)
		var decoded corev1.ResourceList
		if unreadable := json.Unmarshal([]byte(text), &decoded); err != nil {
			require.Error(t, unreadable, "seed %d: %s", seed, text)
			continue
		}
		require.Equal(t, !sameAmounts(decoded, desired), strings.Contains(change.Text, "record"), "seed %d: %s", seed, text)
	}
}

// sameAmounts reports whether both have the same names with the same amounts.
func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

func TestSyncCapacity_Random_Laws(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	random := func() corev1.ResourceList {
		out := corev1.ResourceList{}
		for range rng.IntN(4) {
			out[corev1.ResourceName(pick(rng, "a", "b", "c", "d"))] = resource.MustParse(pick(rng, "1", "2", "1Gi", "1024Mi", "-1", "500m"))
		}
		return out
	}
	for range 1500 {
		node := &corev1.Node{Status: corev1.NodeStatus{Capacity: random()}}
		for range 4 {
			var base corev1.ResourceList
			if text := node.Annotations[capacityKey]; text != "" {
				require.NoError(t, json.Unmarshal([]byte(text), &base))
			}
			desired := random()
			out, _ := applied(t, node)(nodeops.SyncCapacity(node, desired))
			for name, want := range desired {
				have, ok := out.Status.Capacity[name]
				require.True(t, ok && have.Cmp(want) == 0, "%s is there", name)
			}
			for name := range out.Status.Capacity {
				_, wanted := desired[name]
				_, ours := base[name]
				require.True(t, wanted || !ours, "%s was ours and is not wanted", name)
			}
			for name := range node.Status.Capacity {
				_, ours := base[name]
				_, kept := out.Status.Capacity[name]
				require.True(t, ours || kept, "%s is not ours and is gone", name)
			}
			node = out
		}
	}
}

func FuzzCapacityBase(f *testing.F) {
	for _, s := range []string{`{"cpu":"1","memory":"1Gi"}`, `null`, ``, `{}`, `[]`, `{"cpu":"1e9"}`, `{"a":-1.5}`, `{"a":"1e-30"}`, `{"":1}`, `{"a":"1e999"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		change, err := nodeops.SyncCapacity(withCapacityRecord(text), resources("a=2"))
		if err != nil {
			return
		}
		node, _ := applied(t, withCapacityRecord(text))(change, err)
		_, again := applied(t, node)(nodeops.SyncCapacity(node, resources("a=2")))
		require.Nil(t, again.Node, again.Text)
	})
}
