// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
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

const capacityKey = nodeops.LastAppliedCapacityAnnotation

// resources returns a list from pairs of name and quantity.
func resources(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func TestSyncCapacity(t *testing.T) {
	node := func(base string, capacity corev1.ResourceList) *corev1.Node {
		n := &corev1.Node{Status: corev1.NodeStatus{Capacity: capacity}}
		if base != "" {
			n.Annotations = map[string]string{capacityKey: base}
		}
		return n
	}
	for name, tc := range map[string]struct {
		node     *corev1.Node
		desired  corev1.ResourceList
		capacity corev1.ResourceList
		base     string
		change   string
	}{
		"what is missing is set": {
			node("", nil), resources("x.io/gpu", "2"), resources("x.io/gpu", "2"), `{"x.io/gpu":"2"}`, "set x.io/gpu=2; record what was applied",
		},
		"what differs is set, the rest stays": {
			node(`{"a":"1"}`, resources("cpu", "4", "a", "1")), resources("a", "3"), resources("cpu", "4", "a", "3"), `{"a":"3"}`, "set a=3; record what was applied",
		},
		"what was ours is removed": {
			node(`{"a":"1","b":"1"}`, resources("cpu", "4", "a", "1", "b", "1")), resources("a", "1"), resources("cpu", "4", "a", "1"), `{"a":"1"}`, "remove b; record what was applied",
		},
		"what was ours and is gone only leaves the record": {
			node(`{"a":"1","b":"1"}`, resources("a", "1")), resources("a", "1"), resources("a", "1"), `{"a":"1"}`, "record what was applied",
		},
		"what matched from the start is recorded (DM-23)": {
			node("", resources("a", "1")), resources("a", "1"), resources("a", "1"), `{"a":"1"}`, "record what was applied",
		},
		"nothing wanted removes record and resources": {
			node(`{"a":"1"}`, resources("cpu", "4", "a", "1")), nil, resources("cpu", "4"), "", "remove a; forget what was applied",
		},
		"nothing wanted and nothing recorded is nothing": {
			node("", resources("cpu", "4")), nil, resources("cpu", "4"), "", "nothing",
		},
		"the same amount in another unit is no change": {
			node(`{"m":"1024Mi"}`, resources("m", "1Gi")), resources("m", "1073741824"), resources("m", "1Gi"), `{"m":"1024Mi"}`, "nothing",
		},
		"a resource without a name is passed over": {
			node("", resources("cpu", "4")), resources("", "1"), resources("cpu", "4"), "", "nothing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, desired := tc.node.DeepCopy(), tc.desired.DeepCopy()
			got, change, err := nodeops.SyncCapacity(tc.node, tc.desired)
			require.NoError(t, err)
			require.Equal(t, tc.change, change.String())
			require.Equal(t, tc.change == "nothing", change.Empty())
			require.Empty(t, cmp.Diff(tc.capacity, got.Status.Capacity))
			require.Equal(t, tc.base, got.Annotations[capacityKey])
			require.Empty(t, cmp.Diff(before, tc.node))
			require.Empty(t, cmp.Diff(desired, tc.desired))
			_, change, err = nodeops.SyncCapacity(got, tc.desired)
			require.NoError(t, err)
			require.True(t, change.Empty(), "the second time nothing changes: %s", change)
		})
	}
}

func TestSyncCapacityStopsAtARecordThatCannotBeRead(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{capacityKey: `{"a":"many"}`}},
		Status:     corev1.NodeStatus{Capacity: resources("a", "1")},
	}
	got, change, err := nodeops.SyncCapacity(node, nil)
	var typed *nodeops.BaseError
	require.ErrorAs(t, err, &typed)
	require.Equal(t, capacityKey, typed.Annotation)
	require.Contains(t, err.Error(), capacityKey)
	require.True(t, change.Empty())
	require.Equal(t, node, got)

	got, _ = nodeops.MergeCapacity(node, nil, resources("b", "1"))
	require.Equal(t, `{"b":"1"}`, got.Annotations[capacityKey])
	require.Len(t, got.Status.Capacity, 2, "with an unknown base nothing is removed")
}

func TestDecodeCapacityRefusesWhatWouldTakeMinutes(t *testing.T) {
	digits := strings.Repeat("9", 257)
	for _, quantity := range []string{`"1e-99999999"`, `1e-99999999`, `"1\u0065-99999999"`, `"1E+1000"`, `"` + digits + `"`, digits} {
		_, err := nodeops.DecodeCapacity(`{"a":` + quantity + `}`)
		var typed *nodeops.BaseError
		require.ErrorAs(t, err, &typed, quantity)
	}
	got, err := nodeops.DecodeCapacity(`{"a":"1E","b":1e3,"c":"1e-3","d":"12345678901234567890","e":null,"f":"123456"}`)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(resources("a", "1E", "b", "1k", "c", "1m", "d", "12345678901234567890", "e", "0", "f", "123456"), got))
}

func TestCapacityOfANilNodeIsNothing(t *testing.T) {
	got, change, err := nodeops.SyncCapacity(nil, resources("a", "1"))
	require.NoError(t, err)
	require.Nil(t, got)
	require.True(t, change.Empty())
	require.True(t, nodeops.PlanCapacity(nil, resources("a", "1"), resources("b", "1")).Empty())
	got, _ = nodeops.MergeCapacity(nil, nil, nil)
	require.Nil(t, got)
}

// A quantity beyond 63 bits is a pointer inside, and Add changes what it points to.
func TestSyncCapacitySharesNoQuantity(t *testing.T) {
	const large = "99999999999999999999"
	desired := resources("a", large)
	out, change, err := nodeops.SyncCapacity(&corev1.Node{}, desired)
	require.NoError(t, err)
	for _, list := range []corev1.ResourceList{out.Status.Capacity, change.Set} {
		quantity := list["a"]
		quantity.Add(resource.MustParse("1"))
		require.Empty(t, cmp.Diff(resources("a", large), desired))
	}
	require.Empty(t, cmp.Diff(resources("a", "100000000000000000000"), out.Status.Capacity), "node and change share none either")
}

func TestCapacityLaws(t *testing.T) {
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
			base, err := nodeops.LastAppliedCapacity(node)
			require.NoError(t, err)
			desired := random()
			out, _, err := nodeops.SyncCapacity(node, desired)
			require.NoError(t, err)
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
