// SPDX-License-Identifier: Apache-2.0

package hollow_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
)

func required(r ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: r},
		}}
	}
}

func TestScheduler_Pod_IsBoundToAFittingNode(t *testing.T) {
	taint := func(effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: effect}} }
	}
	tolerates := func(key string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}
		}
	}
	label := func(n *corev1.Node) { n.Labels = map[string]string{"zone": "one"} }
	named := func(name string) func(*corev1.Pod) {
		return required(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
		}})
	}
	zone := func(op corev1.NodeSelectorOperator, zones ...string) func(*corev1.Pod) {
		return required(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: op, Values: zones}}})
	}
	nothing, plain := func(*corev1.Pod) {}, func(*corev1.Node) {}
	cases := map[string]struct {
		node func(*corev1.Node)
		pod  func(*corev1.Pod)
		goes bool
	}{
		"a plain one":                  {plain, nothing, true},
		"not ready":                    {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, nothing, false},
		"cordoned":                     {func(n *corev1.Node) { n.Spec.Unschedulable = true }, nothing, false},
		"cordoned and tolerated":       {func(n *corev1.Node) { n.Spec.Unschedulable = true }, tolerates(corev1.TaintNodeUnschedulable), true},
		"tainted against scheduling":   {taint(corev1.TaintEffectNoSchedule), nothing, false},
		"tainted against running":      {taint(corev1.TaintEffectNoExecute), nothing, false},
		"tainted mildly":               {taint(corev1.TaintEffectPreferNoSchedule), nothing, true},
		"tainted and tolerated":        {taint(corev1.TaintEffectNoExecute), tolerates("k"), true},
		"not selected":                 {plain, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "one"} }, false},
		"selected":                     {label, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "one"} }, true},
		"required by name":             {plain, named("a"), true},
		"another required by name":     {plain, named("b"), false},
		"required by label":            {label, zone(corev1.NodeSelectorOpIn, "one", "two"), true},
		"excluded by label":            {label, zone(corev1.NodeSelectorOpNotIn, "one"), false},
		"required in a way unheard of": {label, zone("Near", "one"), false},
		"required by no term":          {label, required(), false},
		"of another scheduler":         {plain, func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }, false},
		"gated":                        {plain, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t)
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			c.node(node)
			require.NoError(t, s.cluster.Add(node))
			s.podOn("", "p", c.pod)
			require.NoError(t, s.scheduler.Step(t.Context()))
			require.Equal(t, c.goes, s.pod("p").Spec.NodeName == "a")
		})
	}
}

func TestScheduler_BindFails_IsRepeated(t *testing.T) {
	s := newHarness(t)
	s.up("a")
	s.steps(11)
	s.podOn("", "p")
	s.cluster.Inject(draintest.Fault{Verb: "create", Resource: "pods/binding", Times: 1})
	require.ErrorContains(t, s.scheduler.Step(t.Context()), "bind pod default/p to a")
	s.steps(1)
	require.Equal(t, corev1.PodRunning, s.phase("p"))
}

func TestScheduler_PodBoundByAnother_NoError(t *testing.T) {
	s := newHarness(t)
	s.up("a")
	s.steps(11)
	s.podOn("", "p")
	s.cluster.Inject(draintest.Fault{Verb: "create", Resource: "pods/binding", Kind: draintest.Conflict, Times: 1})
	require.NoError(t, s.scheduler.Step(t.Context()))
}
