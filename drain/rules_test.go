// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
)

func rulesNamespace(name string, keysAndValues ...string) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		ns.Labels[keysAndValues[i]] = keysAndValues[i+1]
	}
	return ns
}

func rulesLabels(keysAndValues ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		s.MatchLabels[keysAndValues[i]] = keysAndValues[i+1]
	}
	return s
}

func rulesLabeled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{key: value} }
}

func rulesAnnotated(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": value} }
}

// rulesAlways is a rule with the same opinion of every pod.
func rulesAlways(op drain.Opinion) drain.Rule {
	return func(drain.Subject, time.Time) (drain.Opinion, bool) { return op, true }
}

func rulesNone(drain.Subject, time.Time) (drain.Opinion, bool) { return drain.Opinion{}, false }

// rulesOfATown are rules of every kind.
func rulesOfATown() []drain.PodRule {
	return []drain.PodRule{
		{Name: "40-last", Select: []drain.PodSelector{{Pods: rulesLabels("tier", "storage")}}, Behavior: drain.BehaviorDrain, Order: new(int32(10))},
		{Name: "10-batch", Select: []drain.PodSelector{{Namespaces: rulesLabels("kind", "batch")}}, Behavior: drain.BehaviorWaitCompleted},
		{Name: "20-system", Select: []drain.PodSelector{{Pods: rulesLabels("app", "agent"), Namespaces: rulesLabels(corev1.LabelMetadataName, "kube-system")}}, Behavior: drain.BehaviorSkip},
		{Name: "30-either", Select: []drain.PodSelector{{Pods: rulesLabels("a", "1")}, {Pods: rulesLabels("b", "2")}}, Behavior: drain.BehaviorBlock},
	}
}

func rulesDecide(t *testing.T, pod *corev1.Pod, p drain.Policy, namespaces ...*corev1.Namespace) drain.Row {
	t.Helper()
	in := observed(pod)
	in.Namespaces = drain.All(namespaces...)
	rows := drain.Decide(in, p, now).Rows
	require.Len(t, rows, 1)
	return rows[0]
}

// Each behavior, for pods in every state, in the order of precedence.
func TestB2WhatARuleCanDo(t *testing.T) {
	const m = "it is so"
	rule := func(b drain.Behavior) drain.Opinion { return drain.Opinion{Behavior: b, Message: m} }
	zero := drain.Policy{}
	away := leaving(time.Minute, 60)
	for _, tt := range []struct {
		name   string
		pod    *corev1.Pod
		op     drain.Opinion
		policy drain.Policy
		want   podsVerdict
	}{
		{"B2 Skip leaves it alone", newPod("a"), rule(drain.BehaviorSkip), zero, podsVerdict{drain.Ignore, drain.ReasonRule, m}},
		{"Skip leaves it alone on its way out", newPod("a", away), rule(drain.BehaviorSkip), zero, podsVerdict{drain.Ignore, drain.ReasonRule, m}},
		{"Skip leaves it alone whatever the ladder allows", newPod("a"), rule(drain.BehaviorSkip), podsForced(drain.IgnoreProtection, drain.ForceDeletePods), podsVerdict{drain.Ignore, drain.ReasonRule, m}},
		{"B2 WaitCompleted waits", newPod("a"), rule(drain.BehaviorWaitCompleted), zero, podsVerdict{drain.Wait, drain.ReasonWaitCompleted, m}},
		{"WaitCompleted is no matter of budgets", newPod("a"), rule(drain.BehaviorWaitCompleted), podsForced(drain.IgnoreBudgets), podsVerdict{drain.Wait, drain.ReasonWaitCompleted, m}},
		{"WaitCompleted ends when protection does", newPod("a"), rule(drain.BehaviorWaitCompleted), podsForced(drain.IgnoreProtection), podsVerdict{drain.Delete, drain.ReasonForced, m}},
		{"WaitCompleted on its way out is waited for as such", newPod("a", away), rule(drain.BehaviorWaitCompleted), zero, podsVerdict{drain.Wait, drain.ReasonTerminating, m}},
		{"DD-50 WaitCompleted is over when the pod has succeeded", newPod("a", inPhase(corev1.PodSucceeded)), rule(drain.BehaviorWaitCompleted), zero, podsVerdict{drain.Ignore, drain.ReasonFinished, ""}},
		{"DD-50 WaitCompleted is over when the pod has failed", newPod("a", inPhase(corev1.PodFailed)), rule(drain.BehaviorWaitCompleted), zero, podsVerdict{drain.Ignore, drain.ReasonFinished, ""}},
		{"Block protects it", newPod("a"), rule(drain.BehaviorBlock), anything, podsVerdict{drain.Block, drain.ReasonRule, m}},
		{"Block ends when protection does", newPod("a"), rule(drain.BehaviorBlock), podsForced(drain.IgnoreProtection), podsVerdict{drain.Delete, drain.ReasonForced, m}},
		{"Block on its way out protects nothing", newPod("a", away), rule(drain.BehaviorBlock), zero, podsVerdict{drain.Wait, drain.ReasonTerminating, m}},
		{"what is not known blocks", newPod("a"), rule("Boil"), anything, podsVerdict{drain.Block, drain.ReasonRule, m + "; a rule wants Boil, which is not known"}},
		{"Drain overrides what the policy protects", newPod("a", unmanaged, emptyDir), rule(drain.BehaviorDrain), zero, podsVerdict{drain.Evict, drain.ReasonEvict, m}},
		{"Drain does not override who it is", newPod("a", mirror), rule(drain.BehaviorDrain), zero, podsVerdict{drain.Ignore, drain.ReasonMirror, ""}},
		{"Drain does not override that a DaemonSet brings it back", newPod("a", ownedBy("DaemonSet")), rule(drain.BehaviorDrain), zero, podsVerdict{drain.Ignore, drain.ReasonDaemonSet, ""}},
		{"no rule makes up an identity", newPod("a", func(p *corev1.Pod) { p.UID = "" }), rule(drain.BehaviorSkip), zero, podsVerdict{drain.Block, drain.ReasonNoIdentity, noIdentity}},
		{"Note leaves it to the policy, and is read", newPod("a", unmanaged), rule(drain.BehaviorNote), zero, podsVerdict{drain.Block, drain.ReasonUnmanaged, lonely + "; " + m}},
		{"a rule may give its own reason", newPod("a"), drain.Opinion{Behavior: drain.BehaviorBlock, Reason: "Backup"}, zero, podsVerdict{drain.Block, "Backup", ""}},
		{"a rule may give its own reason to wait", newPod("a"), drain.Opinion{Behavior: drain.BehaviorWaitCompleted, Reason: "Backup"}, zero, podsVerdict{drain.Wait, "Backup", ""}},
		{"D-14 a rule may give its own reason to skip", newPod("a"), drain.Opinion{Behavior: drain.BehaviorSkip, Reason: "Teardown"}, zero, podsVerdict{drain.Ignore, "Teardown", ""}},
		{"one that has ended is none", newPod("a"), drain.Opinion{Behavior: drain.BehaviorBlock, Until: now}, zero, podsVerdict{drain.Evict, drain.ReasonEvict, ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.policy.Rules = []drain.Rule{nil, rulesNone, rulesAlways(tt.op), rulesAlways(drain.Opinion{Behavior: drain.BehaviorDrain})}
			if tt.op.Behavior == drain.BehaviorNote || !tt.op.Until.IsZero() {
				tt.policy.Rules = tt.policy.Rules[:3]
			}
			require.Equal(t, tt.want, podsVerdictOf(rulesDecide(t, tt.pod, tt.policy)))
		})
	}
}

func TestARuleSaysWhenToLookAgain(t *testing.T) {
	later := now.Add(time.Hour)
	for _, behavior := range []drain.Behavior{drain.BehaviorBlock, drain.BehaviorWaitCompleted} {
		p := drain.Policy{Rules: []drain.Rule{rulesAlways(drain.Opinion{Behavior: behavior, Until: later})}}
		plan := drain.Decide(observed(newPod("a")), p, now)
		require.Equal(t, later, plan.Rows[0].Until)
		require.Equal(t, later, plan.NextCheck)
		require.Equal(t, drain.Evict, drain.Decide(observed(newPod("a")), p, later).Rows[0].Verdict, "then it has ended")
	}
	p := drain.Policy{Rules: []drain.Rule{rulesAlways(drain.Opinion{Behavior: drain.BehaviorSkip, Until: now})}}
	plan := drain.Decide(observed(newPod("a")), p, now)
	require.Equal(t, drain.Drained, plan.Outcome)
	require.Zero(t, plan.Rows[0].Until)
}

func TestRulesAreAskedInOrderAndNotesAreKept(t *testing.T) {
	note := func(m string) drain.Rule {
		return rulesAlways(drain.Opinion{Behavior: drain.BehaviorNote, Message: m, Order: new(int32(5))})
	}
	p := drain.Policy{Rules: []drain.Rule{
		note("one"), note(""), note("two"), rulesAlways(drain.Opinion{Behavior: drain.BehaviorDrain, Order: new(int32(3))}), note("three"),
	}}
	row := rulesDecide(t, newPod("a"), p)
	require.Equal(t, podsVerdict{drain.Evict, drain.ReasonEvict, "one; two"}, podsVerdictOf(row))
	require.Equal(t, int32(3), row.Wave)
	p.Rules = p.Rules[:3]
	require.Zero(t, rulesDecide(t, newPod("a"), p).Wave, "a note orders nothing")
}

func TestRulesOrderWaves(t *testing.T) {
	last := drain.PodRule{Name: "last", Select: []drain.PodSelector{{Pods: rulesLabels("app", "db")}}, Behavior: drain.BehaviorDrain, Order: new(int32(7))}
	rule, err := drain.CompileRules(last)
	require.NoError(t, err)
	p := drain.Policy{Rules: []drain.Rule{rule}}
	in := observed(newPod("a", rulesLabeled("app", "db")), newPod("b", withPriority(2000000000)))
	plan := drain.Decide(in, p, now)
	require.Equal(t, "b", wavesAsked(plan), "the order of a rule counts more than the waves of the policy")
	require.Equal(t, `wave 1 has 1 pod left; rule "last"`, plan.Rows[0].Message)

	*last.Order = -1
	require.Equal(t, "b", wavesAsked(drain.Decide(in, p, now)), "what was compiled does not change")
}

func TestB2CompiledRules(t *testing.T) {
	rule, err := drain.CompileRules(rulesOfATown()...)
	require.NoError(t, err)
	p := drain.Policy{Rules: []drain.Rule{rule}}
	batch, front, system := rulesNamespace("shop", "kind", "batch"), rulesNamespace("shop"), rulesNamespace("kube-system")
	inSystem := func(p *corev1.Pod) { p.Namespace = "kube-system" }
	for _, tt := range []struct {
		name string
		pod  *corev1.Pod
		ns   *corev1.Namespace
		want podsVerdict
	}{
		{"no rule is for the pod", newPod("a"), front, podsVerdict{drain.Evict, drain.ReasonEvict, ""}},
		{"the namespace decides", newPod("a"), batch, podsVerdict{drain.Wait, drain.ReasonWaitCompleted, `rule "10-batch"`}},
		{"the first by name decides", newPod("a", rulesLabeled("a", "1")), batch, podsVerdict{drain.Wait, drain.ReasonWaitCompleted, `rule "10-batch"`}},
		{"pod and namespace decide together", newPod("a", inSystem, rulesLabeled("app", "agent")), system, podsVerdict{drain.Ignore, drain.ReasonRule, `rule "20-system"`}},
		{"the namespace alone does not do", newPod("a", inSystem), system, podsVerdict{drain.Evict, drain.ReasonEvict, ""}},
		{"the pod alone does not do", newPod("a", rulesLabeled("app", "agent")), front, podsVerdict{drain.Evict, drain.ReasonEvict, ""}},
		{"any of several selectors does: the first", newPod("a", rulesLabeled("a", "1")), front, podsVerdict{drain.Block, drain.ReasonRule, `rule "30-either"`}},
		{"any of several selectors does: the second", newPod("a", rulesLabeled("b", "2")), front, podsVerdict{drain.Block, drain.ReasonRule, `rule "30-either"`}},
		{
			"nothing is guessed of a namespace that is not known", newPod("a"), nil,
			podsVerdict{drain.Block, drain.ReasonNotEvaluated, `rule "10-batch" selects by labels of namespace shop, which is not known`},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, podsVerdictOf(rulesDecide(t, tt.pod, p, nil, tt.ns)))
		})
	}
}

func TestNamespacesThatAreNotKnown(t *testing.T) {
	selector := func(b drain.Behavior, s ...drain.PodSelector) drain.PodRule {
		return drain.PodRule{Name: "b", Select: s, Behavior: b}
	}
	byLabel := drain.PodSelector{Namespaces: rulesLabels("kind", "batch")}
	byName := func(name string) drain.PodSelector {
		return drain.PodSelector{Namespaces: rulesLabels(corev1.LabelMetadataName, name)}
	}
	both := drain.PodSelector{Namespaces: rulesLabels(corev1.LabelMetadataName, "shop", "kind", "batch")}
	for _, tt := range []struct {
		name  string
		rules []drain.PodRule
		want  machinist.Reason
	}{
		{"a rule selects by its labels", []drain.PodRule{selector(drain.BehaviorSkip, byLabel)}, drain.ReasonNotEvaluated},
		{"also one that would drain anyway", []drain.PodRule{selector(drain.BehaviorDrain, byLabel)}, drain.ReasonNotEvaluated},
		{"an earlier rule has decided", []drain.PodRule{{Name: "a", Behavior: drain.BehaviorDrain}, selector(drain.BehaviorSkip, byLabel)}, drain.ReasonEvict},
		{"the pod is not meant anyway", []drain.PodRule{selector(drain.BehaviorSkip, drain.PodSelector{Pods: rulesLabels("app", "db"), Namespaces: rulesLabels("kind", "batch")})}, drain.ReasonEvict},
		{"another selector of the rule decides", []drain.PodRule{selector(drain.BehaviorSkip, byLabel, drain.PodSelector{Pods: rulesLabels("app", "web")})}, drain.ReasonRule},
		{"its name is known: yes", []drain.PodRule{selector(drain.BehaviorSkip, byName("shop"))}, drain.ReasonRule},
		{"its name is known: no", []drain.PodRule{selector(drain.BehaviorSkip, byName("bar"))}, drain.ReasonEvict},
		{"its name is known, and its other labels are not", []drain.PodRule{selector(drain.BehaviorSkip, both)}, drain.ReasonNotEvaluated},
		{"an empty selector selects all", []drain.PodRule{selector(drain.BehaviorSkip, drain.PodSelector{Pods: &metav1.LabelSelector{}, Namespaces: &metav1.LabelSelector{}})}, drain.ReasonRule},
		{"no selector at all selects all", []drain.PodRule{selector(drain.BehaviorSkip)}, drain.ReasonRule},
		{"no rules have no opinion", nil, drain.ReasonEvict},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rule, err := drain.CompileRules(tt.rules...)
			require.NoError(t, err)
			row := rulesDecide(t, newPod("a"), drain.Policy{Rules: []drain.Rule{rule}})
			require.Equal(t, tt.want, row.Reason, "%s", row)
		})
	}
}

func TestTheNewestCopyOfANamespaceCounts(t *testing.T) {
	rule, err := drain.CompileRules(drain.PodRule{Name: "a", Select: []drain.PodSelector{{Namespaces: rulesLabels("kind", "batch")}}, Behavior: drain.BehaviorSkip})
	require.NoError(t, err)
	old, current := rulesNamespace("shop"), rulesNamespace("shop", "kind", "batch")
	old.ResourceVersion, current.ResourceVersion = "9", "10"
	p := drain.Policy{Rules: []drain.Rule{rule}}
	require.Equal(t, drain.Ignore, rulesDecide(t, newPod("a"), p, old, current).Verdict)
	require.Equal(t, drain.Ignore, rulesDecide(t, newPod("a"), p, current, old).Verdict)
}

func TestRulesThatMakeNoSense(t *testing.T) {
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
	for _, tt := range []struct {
		name  string
		rules []drain.PodRule
		want  []string
	}{
		{"a selector of pods", []drain.PodRule{{Name: "x", Behavior: drain.BehaviorSkip, Select: []drain.PodSelector{{Pods: bad}}}}, []string{"x: its selector of pods"}},
		{"a selector of namespaces", []drain.PodRule{{Name: "x", Behavior: drain.BehaviorSkip, Select: []drain.PodSelector{{}, {Namespaces: bad}}}}, []string{"x: its selector of namespaces"}},
		{"a behavior", []drain.PodRule{{Name: "x", Behavior: "Boil"}}, []string{`x: the behavior "Boil" is not known`}},
		{"no behavior", []drain.PodRule{{Name: "x"}}, []string{`x: the behavior "" is not known`}},
		{"a note is no behavior of data", []drain.PodRule{{Name: "x", Behavior: drain.BehaviorNote}}, []string{`x: the behavior "Note" is not known`}},
		{"no name", []drain.PodRule{{Behavior: drain.BehaviorSkip}}, []string{": it has no name"}},
		{
			"two of the same name, and more", []drain.PodRule{{Name: "y", Behavior: "Boil"}, {Name: "x", Behavior: drain.BehaviorSkip}, {Name: "x", Behavior: drain.BehaviorDrain}},
			[]string{"x: another rule has the same name", `y: the behavior "Boil" is not known`},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rule, err := drain.CompileRules(tt.rules...)
			require.Nil(t, rule)
			var problem *drain.RuleError
			require.ErrorAs(t, err, &problem)
			lines := strings.Split(strings.ReplaceAll(err.Error(), `"x"`, "x"), "\n")
			require.Len(t, lines, len(tt.want))
			for i, want := range tt.want {
				require.Contains(t, strings.ReplaceAll(lines[i], `"y"`, "y"), want)
			}
		})
	}
	reason := errors.New("why")
	require.ErrorIs(t, &drain.RuleError{Rule: "x", Err: reason}, reason)
}

func TestB2ClusterAPILabels(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  podsVerdict
	}{
		{"skip", podsVerdict{drain.Ignore, drain.ReasonRule, "label cluster.x-k8s.io/drain=skip"}},
		{"Skip", podsVerdict{drain.Ignore, drain.ReasonRule, "label cluster.x-k8s.io/drain=Skip"}},
		{"wait-completed", podsVerdict{drain.Wait, drain.ReasonWaitCompleted, "label cluster.x-k8s.io/drain=wait-completed"}},
		{"WaitCompleted", podsVerdict{drain.Wait, drain.ReasonWaitCompleted, "label cluster.x-k8s.io/drain=WaitCompleted"}},
		{"sk-ip", podsVerdict{drain.Evict, drain.ReasonEvict, "label cluster.x-k8s.io/drain=sk-ip is not known and ignored"}},
		{"", podsVerdict{drain.Evict, drain.ReasonEvict, "label cluster.x-k8s.io/drain= is not known and ignored"}},
	} {
		t.Run("B2 "+tt.value, func(t *testing.T) {
			pod := newPod("a", rulesLabeled("cluster.x-k8s.io/drain", tt.value))
			require.Equal(t, tt.want, podsVerdictOf(rulesDecide(t, pod, drain.Policy{Rules: []drain.Rule{drain.ClusterAPILabels()}})))
		})
	}
}

func TestB2DoNotDisrupt(t *testing.T) {
	const key = "annotation karpenter.sh/do-not-disrupt="
	started := func(ago time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: now.Add(-ago)} }
	}
	for _, tt := range []struct {
		name  string
		pod   *corev1.Pod
		want  podsVerdict
		until time.Duration
	}{
		{"B2 true blocks", newPod("a", rulesAnnotated("true")), podsVerdict{drain.Block, drain.ReasonDoNotDisrupt, key + "true"}, 0},
		{"B2 a duration blocks until then", newPod("a", rulesAnnotated("30m"), started(10*time.Minute)), podsVerdict{drain.Block, drain.ReasonDoNotDisrupt, key + "30m"}, 20 * time.Minute},
		{"a duration is over when it is", newPod("a", rulesAnnotated("30m"), started(30*time.Minute)), podsVerdict{drain.Evict, drain.ReasonEvict, ""}, 0},
		{"what has not started counts from when it was created", newPod("a", rulesAnnotated("30m"), podsCreated(now.Add(-time.Minute))), podsVerdict{drain.Block, drain.ReasonDoNotDisrupt, key + "30m"}, 29 * time.Minute},
		{"what was never created has no end", newPod("a", rulesAnnotated("30m")), podsVerdict{drain.Block, drain.ReasonDoNotDisrupt, key + "30m"}, 0},
		{"false is as good as none", newPod("a", rulesAnnotated("false")), podsVerdict{drain.Evict, drain.ReasonEvict, ""}, 0},
		{"B2 what makes no sense is ignored, and said", newPod("a", rulesAnnotated("soon")), podsVerdict{drain.Evict, drain.ReasonEvict, key + `"soon" is neither true nor a duration, and ignored`}, 0},
		{"no time is no sense", newPod("a", rulesAnnotated("0s")), podsVerdict{drain.Evict, drain.ReasonEvict, key + `"0s" is neither true nor a duration, and ignored`}, 0},
		{"less than no time is none either", newPod("a", rulesAnnotated("-5m")), podsVerdict{drain.Evict, drain.ReasonEvict, key + `"-5m" is neither true nor a duration, and ignored`}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			row := rulesDecide(t, tt.pod, drain.Policy{Rules: []drain.Rule{drain.DoNotDisrupt()}})
			require.Equal(t, tt.want, podsVerdictOf(row))
			if tt.until > 0 {
				require.Equal(t, now.Add(tt.until), row.Until)
			} else if row.Verdict == drain.Block {
				require.Zero(t, row.Until)
			}
		})
	}
}

func TestB2OnlyPods(t *testing.T) {
	selector, err := labels.Parse("app=web,tier notin (back)")
	require.NoError(t, err)
	p := drain.Policy{Rules: []drain.Rule{drain.OnlyPods(selector)}}
	require.Equal(t, drain.Evict, rulesDecide(t, newPod("a"), p).Verdict)
	require.Equal(t, drain.Block, rulesDecide(t, newPod("a", unmanaged), p).Verdict, "what is selected is protected as before")
	require.Equal(t, drain.Ignore, rulesDecide(t, newPod("a", rulesLabeled("app", "db")), p).Verdict)
	p.Rules[0] = drain.OnlyPods(nil)
	require.Equal(t, drain.Evict, rulesDecide(t, newPod("a", rulesLabeled("app", "db")), p).Verdict)
}

func TestNoRuleMindsThatThereIsNoPod(t *testing.T) {
	compiled, err := drain.CompileRules(rulesOfATown()...)
	require.NoError(t, err)
	for _, rule := range []drain.Rule{compiled, drain.ClusterAPILabels(), drain.DoNotDisrupt(), drain.OnlyPods(labels.Nothing())} {
		_, has := rule(drain.Subject{}, now)
		require.False(t, has)
	}
}

// A rule that is asked about every pod in every round must not compile anything.
func TestDD53SelectorsAreCompiledOnce(t *testing.T) {
	rule, err := drain.CompileRules(rulesOfATown()...)
	require.NoError(t, err)
	s := drain.Subject{Pod: newPod("a"), Namespace: rulesNamespace("shop")}
	require.Zero(t, testing.AllocsPerRun(100, func() { rule(s, now) }))
}

func FuzzDoNotDisrupt(f *testing.F) {
	for _, value := range []string{"true", "false", "30m", "-1h", "", "9999999h", "1h30m", "0", "NaN"} {
		f.Add(value, int64(0))
	}
	f.Fuzz(func(t *testing.T, value string, start int64) {
		pod := newPod("a", rulesAnnotated(value), func(p *corev1.Pod) {
			if start != 0 {
				p.Status.StartTime = &metav1.Time{Time: now.Add(time.Duration(start))}
			}
		})
		plan := drain.Decide(observed(pod), drain.Policy{Rules: []drain.Rule{drain.DoNotDisrupt()}}, now)
		row := plan.Rows[0]
		require.Contains(t, []drain.Verdict{drain.Block, drain.Evict}, row.Verdict)
		require.True(t, plan.NextCheck.After(now))
		require.True(t, row.Until.IsZero() || row.Until.After(now))
	})
}
