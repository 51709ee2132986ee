// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/nodeops"
)

// anyText is a text of a few letters, some of which JSON has to escape.
func anyText(r *rand.Rand) string {
	of := []string{"a", "b", "c/d", `"`, `\`, "<", "é", "\u2028", "", "a b", "\x7f"}
	return of[r.IntN(len(of))]
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
			t.Taints[i].TimeAdded = new(metav1.NewTime(t1))
		}
	}
	return t
}

// TestARecordSaysTheSameWhetherItIsDecodedOrNot compares records with templates, by
// what is decided and by what the record means.
func TestARecordSaysTheSameWhetherItIsDecodedOrNot(t *testing.T) {
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 1))
		recorded, desired := anyTemplate(r), anyTemplate(r)
		if r.IntN(2) == 0 {
			desired = recorded
		}
		text := nodeops.EncodeTemplate(recorded)
		if r.IntN(4) == 0 && len(text) > 0 { // somebody has touched it
			i := r.IntN(len(text))
			text = text[:i] + string(`":,{}x`[r.IntN(6)]) + text[i+r.IntN(2):]
		}
		node := &corev1.Node{}
		node.Annotations = map[string]string{nodeops.LastAppliedTemplateAnnotation: text}
		decoded, err := nodeops.DecodeTemplate(text)
		same := err == nil && maps.Equal(decoded.Labels, desired.Labels) && maps.Equal(decoded.Annotations, desired.Annotations) &&
			nodeops.EqualTaints(decoded.Taints, desired.Taints)
		require.Equal(t, same, nodeops.PlanTemplate(node, desired, desired).Base == "", "seed %d: %s", seed, text)
	}
}

func TestTheRecordOfACapacitySaysTheSameWhetherItIsDecodedOrNot(t *testing.T) {
	amounts := []string{"0", "1", "1000m", "1Gi", "1024Mi", "100n", "12345678901234567890", "1.5", "-3"}
	list := func(r *rand.Rand) corev1.ResourceList {
		l := corev1.ResourceList{}
		for range 1 + r.IntN(2) {
			l[corev1.ResourceName("x"+anyText(r))] = resource.MustParse(amounts[r.IntN(len(amounts))])
		}
		return l
	}
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 2))
		recorded, desired := list(r), list(r)
		if r.IntN(2) == 0 {
			desired = recorded
		}
		text := nodeops.EncodeCapacity(recorded)
		if r.IntN(4) == 0 {
			i := r.IntN(len(text))
			text = text[:i] + string(`":,{}x1`[r.IntN(7)]) + text[i+r.IntN(2):]
		}
		node := &corev1.Node{}
		node.Annotations = map[string]string{nodeops.LastAppliedCapacityAnnotation: text}
		decoded, err := nodeops.DecodeCapacity(text)
		same := err == nil && len(decoded) == len(desired)
		for name, x := range decoded {
			y, ok := desired[name]
			same = same && ok && x.Cmp(y) == 0
		}
		require.Equal(t, same, nodeops.PlanCapacity(node, desired, desired).Base == "", "seed %d: %s", seed, text)
	}
}

func TestATemplateThatIsThereCostsNothing(t *testing.T) {
	desired := nodeops.Template{
		Labels: map[string]string{"a": "1", "b": "2"}, Annotations: map[string]string{"c": "3"},
		Taints: []corev1.Taint{taint("a", "", noSchedule), taint("b", "x", noExecute)},
	}
	node, _ := nodeops.MergeTemplate(&corev1.Node{}, nodeops.Template{}, desired)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if !nodeops.PlanTemplate(node, desired, desired).Empty() {
			t.Error("a change")
		}
	}))
}
