// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
)

// The laws of the rows of tables. A row without a law fails TestTables_EachRow_HasLawGoldenAndPage.
var (
	// escalationLaws has the requests that an escalation allows, and how it ends the drain.
	escalationLaws = map[drain.Escalation]struct {
		allows []drain.Action
		ends   drain.Outcome
	}{
		drain.IgnoreBudgets:   {allows: []drain.Action{drain.Delete}},
		drain.ForceDeletePods: {allows: []drain.Action{drain.Delete, drain.ForceDelete}},
		drain.Proceed:         {ends: drain.Proceeded},
		drain.GiveUp:          {ends: drain.GaveUp},
	}

	// actionLaws has the requests, and their shortest grace period in seconds.
	actionLaws = map[drain.Action]struct {
		request bool
		grace   int64
	}{
		drain.Ignore: {}, drain.Wait: {}, drain.Block: {},
		drain.Evict: {request: true, grace: 1}, drain.Delete: {request: true, grace: 1}, drain.ForceDelete: {request: true},
	}

	// reasonLaws has the subjects and actions of each reason.
	reasonLaws = map[machinist.Reason][]string{
		drain.ReasonNotObserved: {"decision"}, drain.ReasonNotCordoned: {"hold"},
		drain.ReasonUncordoned: {"gate", "pod wait"}, "InvalidPolicy": {"gate", "pod wait", "pod block"},
		"Stays": {"pod ignore", "volume ignore"}, "Gone": {"pod ignore", "pod wait"}, drain.ReasonAbandoned: {"pod ignore", "volume ignore"},
		drain.ReasonUnmanaged: {"pod block"}, drain.ReasonLocalStorage: {"pod block"},
		"Rule": {"pod ignore", "pod wait", "pod block"}, drain.ReasonWaitCompleted: {"pod wait"}, drain.ReasonDoNotDisrupt: {"pod block"},
		"NotEvaluated":    {"pod block", "volume ignore", "volume wait"},
		drain.ReasonEvict: {"pod evict"}, drain.ReasonTerminating: {"pod wait"}, drain.ReasonOverdue: {"pod wait"}, "Wave": {"pod wait"},
		drain.ReasonBudget: {"pod wait"}, drain.ReasonBudgetNever: {"pod wait"}, drain.ReasonBudgets: {"pod wait"},
		"Forbidden": {"pod wait"}, "Invalid": {"pod wait"}, "Unavailable": {"pod wait"}, "Refused": {"pod wait"},
		"InUse": {"volume wait"}, "Detaching": {"volume wait"}, "Reattaching": {"volume wait", "volume ignore"},
	}

	outcomeLaws = map[drain.Outcome]func(t *testing.T, in drain.Observation, p drain.Policy, plan drain.Decision){
		drain.Draining: func(t *testing.T, _ drain.Observation, _ drain.Policy, plan drain.Decision) {
			require.True(t, plan.NextCheck.After(now), "a drain that waits has a next check in the future: %s", plan)
			require.NotEmpty(t, plan.Holds(), "a drain that waits has a hold")
		},
		drain.Drained: func(t *testing.T, in drain.Observation, p drain.Policy, plan drain.Decision) {
			require.True(t, p.KeepSchedulable || in.Node.Spec.Unschedulable, "no pod can be scheduled")
			require.Empty(t, plan.Gates)
			for _, row := range plan.Rows {
				require.Equal(t, drain.Ignore, row.Action)
				require.NotEqual(t, drain.ReasonAbandoned, row.Reason, "a Node with pods left is not Drained")
			}
		},
		drain.NodeGone: func(t *testing.T, in drain.Observation, _ drain.Policy, plan drain.Decision) {
			require.True(t, in.Looked && in.Node == nil)
			require.Empty(t, plan.Rows)
		},
		drain.Proceeded: func(t *testing.T, _ drain.Observation, _ drain.Policy, plan drain.Decision) {
			require.Empty(t, plan.Holds(), "nothing holds a drain that proceeds")
		},
		drain.GaveUp: func(t *testing.T, in drain.Observation, p drain.Policy, plan drain.Decision) {
			require.NotEmpty(t, plan.Holds(), "the holds are why it gave up")
			require.True(t, slices.ContainsFunc(allowedAt(p, in), func(e drain.Escalation) bool { return escalationLaws[e].ends == drain.GaveUp }))
		},
	}

	// progressLaws reports whether progress has the fields of its type.
	progressLaws = map[drain.ProgressType]func(e drain.Progress) bool{
		drain.ProgressStarted:    func(e drain.Progress) bool { return e.Started.Equal(e.Time) },
		drain.ProgressCordoned:   func(e drain.Progress) bool { return strings.HasPrefix(e.Subject, "node/") },
		drain.ProgressUncordoned: func(drain.Progress) bool { return false }, // of drain/runner alone
		drain.ProgressRequested:  func(e drain.Progress) bool { return e.Row != nil },
		drain.ProgressWaiting:    func(e drain.Progress) bool { return e.Reason != "" },
		drain.ProgressGone:       func(e drain.Progress) bool { return e.Reason != "" },
		drain.ProgressLeft:       func(e drain.Progress) bool { return e.Reason != "" },
		drain.ProgressEscalated:  func(e drain.Progress) bool { return e.Rung != nil },
		drain.ProgressEnded:      func(e drain.Progress) bool { return e.Outcome != drain.Draining },
	}

	// sourceLaws reports whether a list is complete.
	sourceLaws = map[drain.Source]func(in *drain.Observation) bool{
		drain.SourceBudgets:     func(in *drain.Observation) bool { return in.Budgets.Complete },
		drain.SourceDaemonSets:  func(in *drain.Observation) bool { return in.DaemonSets.Complete },
		drain.SourceAttachments: func(in *drain.Observation) bool { return in.Attachments.Complete },
		drain.SourceClaims:      func(in *drain.Observation) bool { return in.Claims.Complete },
		drain.SourceVolumes:     func(in *drain.Observation) bool { return in.Volumes.Complete },
	}

	// ruleLaws reports whether a rule allows no request for a pod.
	ruleLaws = map[string]func(pod *corev1.Pod, p drain.Policy) bool{
		"Rules": func(pod *corev1.Pod, p drain.Policy) bool {
			if p.Rules == nil {
				return false
			}
			rule := p.Rules(pod)
			return rule.Action == drain.Ignore || rule.Action != "" && pod.DeletionTimestamp == nil
		},
		"PodSelector": func(pod *corev1.Pod, p drain.Policy) bool {
			selector, err := labels.Parse(p.PodSelector)
			return err == nil && !selector.Matches(labels.Set(pod.Labels))
		},
		"ClusterAPILabels": func(pod *corev1.Pod, p drain.Policy) bool {
			value := pod.Labels["cluster.x-k8s.io/drain"]
			return p.ClusterAPILabels && (value == "skip" || value == "wait-completed" && pod.DeletionTimestamp == nil)
		},
		"DoNotDisrupt": func(pod *corev1.Pod, p drain.Policy) bool {
			return p.DoNotDisrupt && pod.Annotations["karpenter.sh/do-not-disrupt"] == "true" && pod.DeletionTimestamp == nil
		},
	}
)

// requireReason asserts that a reason has a law for this subject and action. The reason of a deletion
// is an escalation.
func requireReason(t *testing.T, where string, reason machinist.Reason) {
	t.Helper()
	allowed := reasonLaws[reason]
	if _, is := escalationLaws[drain.Escalation(reason)]; is {
		allowed = []string{"pod delete", "pod force-delete"}
	}
	require.Contains(t, allowed, where, reason)
}

// meet counts the rows of tables that two consecutive decisions have.
func meet(met map[string]int, before, after drain.Decision, in drain.Observation) {
	met["Outcome "+string(after.Outcome)]++
	for _, row := range after.Rows {
		met["Action "+string(row.Action)]++
		met[fmt.Sprintf("Reason %s pod %s", row.Reason, row.Action)]++
	}
	for _, v := range after.Volumes {
		met[fmt.Sprintf("Reason %s volume %s", v.Reason, v.Action)]++
	}
	for _, g := range after.Gates {
		met[fmt.Sprintf("Reason %s gate", g.Reason)]++
	}
	met[fmt.Sprintf("Reason %s decision", after.Reason)]++
	for _, h := range after.Holds() {
		met[fmt.Sprintf("Reason %s hold", h.Reason)]++
	}
	for _, rung := range after.Rungs {
		met["Escalation "+string(rung.Action)]++
	}
	for _, source := range after.NotEvaluated {
		met["Source "+string(source)]++
	}
	for _, e := range drain.Compare(before, after, in.Results, now) {
		met["ProgressType "+string(e.Type)]++
	}
}

func words[K ~string, V any](laws map[K]V) []string {
	var all []string
	for word := range laws {
		all = append(all, string(word))
	}
	slices.Sort(all)
	return all
}

// tableWords returns the words of all laws by type.
func tableWords() map[string][]string {
	return map[string][]string{
		"Escalation": words(escalationLaws), "Action": words(actionLaws), "Reason": words(reasonLaws), "Outcome": words(outcomeLaws),
		"ProgressType": words(progressLaws), "Source": words(sourceLaws), "rule": words(ruleLaws),
	}
}

// requireMet asserts that random input has met each law more than five times.
func requireMet(t *testing.T, met map[string]int) {
	t.Helper()
	for kind, all := range tableWords() {
		for _, word := range all {
			wanted := []string{""}
			if kind == "Reason" {
				wanted = reasonLaws[machinist.Reason(word)]
			}
			for _, where := range wanted {
				want := strings.TrimSuffix(kind+" "+word+" "+where, " ")
				if kind != "rule" && want != "ProgressType Uncordoned" {
					require.Greater(t, met[want], 5, "random input does not meet %q: %v", want, met)
				}
			}
		}
	}
}

// constants returns the values of the constants of a type in this package.
func constants(t *testing.T, name string) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var values []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Type == nil || strings.TrimPrefix(types.ExprString(spec.Type), "machinist.") != name {
				return true
			}
			for _, value := range spec.Values {
				if literal, ok := value.(*ast.BasicLit); ok {
					values = append(values, strings.Trim(literal.Value, `"`))
				}
			}
			return true
		})
	}
	return values
}

// TestTables_EachRow_HasLawGoldenAndPage asserts that each row of a table has a law, a text, a JSON
// form, a golden file, and a row in docs/drain.md or docs/reasons.md.
func TestTables_EachRow_HasLawGoldenAndPage(t *testing.T) {
	read := func(path ...string) []byte {
		text, err := os.ReadFile(filepath.Join(path...))
		require.NoError(t, err)
		return text
	}
	_, section, _ := bytes.Cut(read("..", "docs", "reasons.md"), []byte("\n## drain\n"))
	section, _, _ = bytes.Cut(section, []byte("\n## "))
	page := append(read("..", "docs", "drain.md"), section...)
	paths, err := filepath.Glob(filepath.Join("testdata", "*.golden"))
	require.NoError(t, err)
	var goldens []byte
	for _, path := range paths {
		goldens = append(goldens, read(path)...)
	}
	hasRow := func(word string) bool { return regexp.MustCompile("(?m)^\\|[^|]*`" + word + "`").Match(page) }
	for kind, all := range tableWords() {
		switch kind {
		case "rule":
			require.ElementsMatch(t, drain.Rules(), all, "each rule has a law")
		case "Escalation":
			require.ElementsMatch(t, drain.Escalations(), slices.Collect(maps.Keys(escalationLaws)), "each escalation has a law")
			fallthrough
		default:
			require.ElementsMatch(t, constants(t, kind), all, "each constant of the type %s has a law", kind)
		}
		for _, word := range all {
			if word == "" {
				continue // Draining
			}
			require.True(t, hasRow(word), "docs/drain.md has no row for the %s %s", kind, word)
			require.True(t, regexp.MustCompile(`\b`+word+`\b`).Match(goldens), "no golden file has the %s %s", kind, word)
			row := drain.Row{Action: drain.Action(word), Reason: machinist.Reason(word), Next: drain.Escalation(word)}
			var again []drain.Row
			require.NoError(t, json.Unmarshal([]byte(asJSON(t, row)), &again))
			require.Equal(t, []drain.Row{row}, again)
			require.Contains(t, drain.Progress{Type: drain.ProgressType(word), Outcome: drain.Outcome(word)}.String(), word)
		}
	}
	for escalation := range escalationLaws {
		require.Regexp(t, `; \w[-\w ]* at 2026`, drain.Row{Action: drain.Wait, Next: escalation, Since: now, NextAt: now}.String(), "%s has no text", escalation)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[drain.Policy]()) {
		require.True(t, hasRow(field.Name), "docs/drain.md has no row for Policy.%s", field.Name)
	}
}
