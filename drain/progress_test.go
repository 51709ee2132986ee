// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/nodeops"
)

// progressPlan is a plan under way since the beginning of the test.
func progressPlan(edits ...func(*drain.Decision)) drain.Decision {
	p := drain.Decision{Node: "node-1", Started: now}
	for _, edit := range edits {
		edit(&p)
	}
	return p
}

func progressRow(name string, v drain.Verdict, r machinist.Reason) func(*drain.Decision) {
	return func(p *drain.Decision) {
		p.Rows = append(p.Rows, drain.Row{Namespace: "shop", Name: name, UID: "uid", Verdict: v, Reason: r})
	}
}

func progressVolume(v drain.Verdict, r machinist.Reason) func(*drain.Decision) {
	return func(p *drain.Decision) {
		p.Volumes = append(p.Volumes, drain.VolumeRow{Volume: "pv", Verdict: v, Reason: r})
	}
}

func progressOver(o drain.Outcome, r machinist.Reason) func(*drain.Decision) {
	return func(p *drain.Decision) { p.Outcome, p.Reason = o, r }
}

func progressTexts(events []drain.Progress) []string {
	texts := []string{}
	for _, e := range events {
		texts = append(texts, e.String())
	}
	return texts
}

// budgetRefusal is the answer of an API server whose budget allows nothing.
func budgetRefusal() error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget web needs 3 healthy pods and has 3 currently"}}
	return err
}

func TestProgressBetweenTwoPlans(t *testing.T) {
	result := func(err error) []drain.Result {
		return []drain.Result{{Row: drain.Row{Namespace: "shop", Name: "a", UID: "uid", Verdict: drain.Evict, Reason: drain.ReasonEvict}, Err: err}}
	}
	waits := progressRow("a", drain.Wait, drain.ReasonTerminating)
	for name, test := range map[string]struct {
		before, after drain.Decision
		results       []drain.Result
		want          []string
	}{
		"the first plan": {
			after: progressPlan(progressRow("a", drain.Evict, drain.ReasonEvict), progressRow("b", drain.Block, drain.ReasonUnmanaged), progressRow("c", drain.Ignore, drain.ReasonStays)),
			want:  []string{"Started node/node-1", "Waiting pod/shop/b (Unmanaged)"},
		},
		"the first plan of a program that was restarted": {
			after: progressPlan(waits, func(p *drain.Decision) { p.Started, p.FencedAt = now.Add(-time.Hour), now.Add(-time.Hour) }),
			want:  []string{"Waiting pod/shop/a (Terminating)"},
		},
		"a fence that stands from the beginning": {
			after: progressPlan(func(p *drain.Decision) { p.FencedAt = now }),
			want:  []string{"Started node/node-1", "Fenced node/node-1"},
		},
		"a fence that stands now": {
			before: progressPlan(func(p *drain.Decision) { p.Fence = &drain.SetFence{} }),
			after:  progressPlan(func(p *drain.Decision) { p.FencedAt = now.Add(-time.Second) }),
			want:   []string{"Fenced node/node-1"},
		},
		"an accepted request": {
			before: progressPlan(progressRow("a", drain.Evict, drain.ReasonEvict)), after: progressPlan(waits), results: result(nil),
			want: []string{"Requested pod/shop/a to evict (Evictable)"},
		},
		"a refused request": {
			before:  progressPlan(progressRow("a", drain.Evict, drain.ReasonEvict)),
			after:   progressPlan(progressRow("a", drain.Wait, drain.ReasonBudget)),
			results: result(budgetRefusal()),
			want:    []string{"Requested pod/shop/a to evict (DisruptionBudget): The disruption budget web needs 3 healthy pods and has 3 currently"},
		},
		"a refusal that turns out to be final": {
			before:  progressPlan(progressRow("a", drain.Evict, drain.ReasonEvict)),
			after:   progressPlan(progressRow("a", drain.Wait, drain.ReasonBudgetNever)),
			results: result(budgetRefusal()),
			want: []string{
				"Requested pod/shop/a to evict (DisruptionBudget): The disruption budget web needs 3 healthy pods and has 3 currently",
				"Waiting pod/shop/a (BudgetNeverAllows)",
			},
		},
		"an error without a message": {
			before: progressPlan(waits), after: progressPlan(waits), results: result(errors.New("")),
			want: []string{"Requested pod/shop/a to evict (Refused): ", "Waiting pod/shop/a (Terminating)"},
		},
		"another reason": {
			before: progressPlan(waits), after: progressPlan(progressRow("a", drain.Wait, drain.ReasonOverdue)),
			want: []string{"Waiting pod/shop/a (Overdue)"},
		},
		"the same reason": {before: progressPlan(waits), after: progressPlan(waits), want: []string{}},
		"a pod that has gone": {
			before: progressPlan(waits), after: progressPlan(), want: []string{"Gone pod/shop/a (Gone)"},
		},
		"a pod that has completed": {
			before: progressPlan(progressRow("a", drain.Wait, drain.ReasonWaitCompleted)), after: progressPlan(progressRow("a", drain.Ignore, drain.ReasonGone)),
			want: []string{"Gone pod/shop/a (Gone)"},
		},
		"a pod that turns out to be elsewhere": {
			before: progressPlan(waits), after: progressPlan(progressRow("a", drain.Ignore, drain.ReasonGone)),
			want: []string{"Gone pod/shop/a (Gone)"},
		},
		"a pod that is not waited for any more": {
			before: progressPlan(waits), after: progressPlan(progressRow("a", drain.Ignore, drain.ReasonAbandoned)),
			want: []string{"Left pod/shop/a (Abandoned)"},
		},
		"a pod that was never waited for": {
			before: progressPlan(progressRow("a", drain.Ignore, drain.ReasonStays)), after: progressPlan(), want: []string{},
		},
		"a successor of the same name": {
			before: progressPlan(waits), after: progressPlan(progressRow("a", drain.Wait, drain.ReasonTerminating), func(p *drain.Decision) { p.Rows[0].UID = "other" }),
			want: []string{"Gone pod/shop/a (Gone)", "Waiting pod/shop/a (Terminating)"},
		},
		"a plan that could observe nothing": {
			before: progressPlan(waits), after: drain.Decision{Node: "node-1", Reason: drain.ReasonNotObserved}, results: result(nil),
			want: []string{"Requested pod/shop/a to evict (Evictable)"},
		},
		"a rung": {
			before: progressPlan(func(p *drain.Decision) { p.Rungs = drain.Ladder{{Action: drain.IgnoreBudgets}} }),
			after: progressPlan(func(p *drain.Decision) {
				p.Rungs = drain.Ladder{{Action: drain.IgnoreBudgets}, {Action: drain.IgnoreBudgets}, {Action: drain.ForceDeletePods, Grace: time.Second}}
			}),
			want: []string{"Escalated node/node-1 (IgnoreBudgets): after 0s IgnoreBudgets", "Escalated node/node-1 (ForceDeletePods): after 0s ForceDeletePods (grace 1s)"},
		},
		"a volume is waited for": {
			before: progressPlan(), after: progressPlan(progressVolume(drain.Wait, drain.ReasonDetaching)), want: []string{"Waiting volume/pv (Detaching)"},
		},
		"a volume is detached": {
			before: progressPlan(progressVolume(drain.Wait, drain.ReasonDetaching)), after: progressPlan(), want: []string{"Gone volume/pv (Gone)"},
		},
		"a volume is detached and is to be attached elsewhere": {
			before: progressPlan(progressVolume(drain.Wait, drain.ReasonDetaching)), after: progressPlan(progressVolume(drain.Wait, drain.ReasonReattaching)),
			want: []string{"Waiting volume/pv (Reattaching)"},
		},
		"a volume is attached elsewhere": {
			before: progressPlan(progressVolume(drain.Wait, drain.ReasonReattaching)), after: progressPlan(), want: []string{"Gone volume/pv (Gone)"},
		},
		"a volume is detached and nobody will attach it": {
			before: progressPlan(progressVolume(drain.Wait, drain.ReasonDetaching)), after: progressPlan(progressVolume(drain.Ignore, drain.ReasonReattaching)),
			want: []string{"Left volume/pv (Reattaching)"},
		},
		"a volume stays attached": {
			before: progressPlan(progressVolume(drain.Wait, drain.ReasonDetaching)), after: progressPlan(progressVolume(drain.Ignore, drain.ReasonAbandoned)),
			want: []string{"Left volume/pv (Abandoned)"},
		},
		"a gate": {
			before: progressPlan(func(p *drain.Decision) {
				p.Gates = []machinist.Hold{{Subject: "policy", Reason: drain.ReasonInvalidPolicy}}
			}),
			after: progressPlan(func(p *drain.Decision) {
				p.Gates = []machinist.Hold{{Subject: "policy", Reason: drain.ReasonInvalidPolicy}, {Subject: "node/node-1", Reason: drain.ReasonUncordoned, Message: "why"}}
			}),
			want: []string{"Waiting node/node-1 (Uncordoned): why"},
		},
		"the end": {
			before: progressPlan(waits), after: progressPlan(progressOver(drain.Drained, "")),
			want: []string{"Gone pod/shop/a (Gone)", "Ended node/node-1 (Drained)"},
		},
		"an end with pods left": {
			before: progressPlan(waits), after: progressPlan(progressRow("a", drain.Block, drain.ReasonAbandoned), progressRow("b", drain.Block, drain.ReasonUnmanaged), progressOver(drain.GaveUp, "")),
			want: []string{"Left pod/shop/a (Abandoned)", "Ended node/node-1 (GaveUp)"},
		},
		"the Node has gone": {
			before: progressPlan(waits), after: drain.Decision{Outcome: drain.NodeGone, Reason: machinist.Reason(drain.NodeGone)}, want: []string{"Ended node/node-1 (NodeGone)"},
		},
		"the same end": {
			before: progressPlan(progressRow("a", drain.Block, drain.ReasonAbandoned), progressOver(drain.GaveUp, "")),
			after:  progressPlan(progressRow("a", drain.Block, drain.ReasonAbandoned), progressOver(drain.GaveUp, "")), want: []string{},
		},
		"a pod that came after the end": {
			before: progressPlan(progressRow("a", drain.Block, drain.ReasonAbandoned), progressOver(drain.Drained, "")),
			after:  progressPlan(waits), want: []string{"Waiting pod/shop/a (Terminating)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			events := drain.Compare(test.before, test.after, test.results, now)
			require.Equal(t, test.want, progressTexts(events))
			for _, e := range events {
				require.Equal(t, "node-1", e.Node)
				require.Equal(t, now, e.Time)
				require.Equal(t, test.before.Started.IsZero() && test.after.Started.IsZero(), e.Started.IsZero())
				require.Equal(t, strings.HasPrefix(e.Subject, "pod/"), e.Row != nil)
				require.Equal(t, e.Type == drain.ProgressEscalated, e.Rung != nil)
			}
			require.Empty(t, drain.Compare(test.after, test.after, nil, now.Add(time.Hour)), "nothing has happened since")
		})
	}
}

func TestARequestIsToldWithItsTimeAndItsError(t *testing.T) {
	refusal := budgetRefusal()
	events := drain.Compare(progressPlan(), progressPlan(), []drain.Result{{Err: refusal, At: now.Add(time.Second)}, {}}, now)
	require.Equal(t, now.Add(time.Second), events[0].Time)
	require.ErrorIs(t, events[0].Err, refusal)
	require.NoError(t, events[1].Err)
}

func TestAnEventWithoutAnythingIsAText(t *testing.T) {
	require.Empty(t, drain.Progress{}.String())
	require.Equal(t, "Fenced node/n (NotFenced): no", drain.Progress{Type: drain.ProgressFenced, Subject: "node/n", Reason: drain.ReasonNotFenced, Err: errors.New("no")}.String())
}

func TestProgressDoesNotDependOnTheOrderOfRows(t *testing.T) {
	before := progressPlan(progressRow("a", drain.Wait, "A"), progressRow("b", drain.Wait, "B"), progressRow("c", drain.Wait, "C"))
	after := progressPlan(progressRow("c", drain.Wait, "X"), progressRow("b", drain.Wait, "B"))
	require.Equal(t, []string{"Gone pod/shop/a (Gone)", "Waiting pod/shop/c (X)"}, progressTexts(drain.Compare(before, after, nil, now)))
}

// A random drain: pods come and go, requests are refused, nobody can look for a while,
// rungs are reached. Whatever happens, its events add up.
func TestTheEventsOfARandomDrainAddUp(t *testing.T) {
	outcomes := map[drain.Outcome]int{}
	for seed := range uint64(1500) {
		w := newProgressWorld(seed)
		outcomes[w.run(t)]++
		w.judge(t)
	}
	for _, o := range []drain.Outcome{drain.Drained, drain.Proceeded, drain.GaveUp, drain.NodeGone} {
		require.Greater(t, outcomes[o], 20, "%s: %v", o, outcomes)
	}
}

type progressWorld struct {
	seed    uint64
	rand    *rand.Rand
	now     time.Time
	node    *corev1.Node
	pods    []*corev1.Pod
	made    int
	policy  drain.Policy
	state   drain.State
	results []drain.Result
	last    drain.Decision
	events  []drain.Progress
	// waited are the pods that some plan waited for; rungs those that were reached.
	waited map[string]bool
	rungs  map[string]bool
}

func newProgressWorld(seed uint64) *progressWorld {
	w := &progressWorld{seed: seed, rand: rand.New(rand.NewPCG(seed, 5)), now: now, node: openNode(), waited: map[string]bool{}, rungs: map[string]bool{}}
	w.policy = drain.Policy{Fence: nodeops.Fence{Owner: "me"}, EvictUnmanaged: w.rand.IntN(2) == 0, EvictLocalStorage: true, Reassert: true}
	if w.rand.IntN(4) == 0 {
		w.policy.SkipTerminatingAfter = 30 * time.Second
	}
	end := []drain.Escalation{drain.Proceed, drain.GiveUp}[w.rand.IntN(2)]
	w.policy.Ladder = drain.Ladder{
		{After: 3 * time.Minute, Action: drain.IgnoreBudgets}, {After: 4 * time.Minute, Action: drain.IgnoreBudgets, Grace: time.Second}, {After: 6 * time.Minute, Action: end},
	}
	for range w.rand.IntN(8) {
		w.addPod()
	}
	return w
}

func (w *progressWorld) addPod() {
	w.made++
	edits := []func(*corev1.Pod){func(*corev1.Pod) {}, unmanaged, emptyDir, mirror, ownedBy("DaemonSet"), withPriority(2000000000)}
	w.pods = append(w.pods, newPod("p"+strconv.Itoa(w.made), edits[w.rand.IntN(len(edits))]))
}

// run plays the drain to its end.
func (w *progressWorld) run(t *testing.T) drain.Outcome {
	t.Helper()
	for range 200 {
		in := drain.Observation{Looked: w.rand.IntN(5) > 0, Node: w.node, Pods: drain.All(w.pods...), Results: w.results}
		if in.Looked && w.rand.IntN(150) == 0 {
			in.Node = nil
		}
		if !in.Looked {
			in.Reachability, in.Results = drain.NodeReachability{}, nil
		}
		next, plan := drain.Step(w.state, in, w.policy, w.now)
		plan.Node = "node-1" // also of one that was gone from the beginning
		w.notice(t, plan, in.Results)
		if in.Looked {
			w.state, w.results = next, nil
		}
		if plan.Over() {
			return plan.Outcome
		}
		w.carry(plan)
		w.live()
	}
	t.Fatalf("seed %d: no end", w.seed)
	return ""
}

// notice collects the events up to a plan.
func (w *progressWorld) notice(t *testing.T, plan drain.Decision, results []drain.Result) {
	t.Helper()
	events := drain.Compare(w.last, plan, results, w.now)
	require.Equal(t, events, drain.Compare(w.last, plan, results, w.now), "the same events for the same plans")
	w.events = append(w.events, events...)
	if plan.Reason != drain.ReasonNotObserved {
		w.last = plan
	}
	for _, r := range plan.Rows {
		if r.Verdict != drain.Ignore && !plan.Over() {
			w.waited["pod/"+r.Namespace+"/"+r.Name] = true
		}
	}
	for _, r := range plan.Rungs {
		w.rungs[r.String()] = true
	}
}

// carry does what a plan says, with the luck of the day.
func (w *progressWorld) carry(plan drain.Decision) {
	if plan.Fence != nil && w.rand.IntN(4) > 0 {
		w.node, _, _ = plan.Fence.Fence.Set(w.node, w.now)
	}
	for _, row := range plan.Rows {
		if row.Verdict != drain.Evict && row.Verdict != drain.Delete && row.Verdict != drain.ForceDelete {
			continue
		}
		var err error
		if row.Verdict == drain.Evict && w.rand.IntN(2) == 0 {
			err = []error{budgetRefusal(), apierrors.NewInternalError(errors.New("no")), apierrors.NewTooManyRequests("busy", 1)}[w.rand.IntN(3)]
		}
		i := slices.IndexFunc(w.pods, func(p *corev1.Pod) bool { return p.Name == row.Name })
		if err == nil && w.pods[i].DeletionTimestamp.IsZero() {
			w.pods[i] = w.pods[i].DeepCopy()
			w.pods[i].DeletionTimestamp = &metav1.Time{Time: w.now.Add(30 * time.Second)}
			w.pods[i].DeletionGracePeriodSeconds = new(int64(30))
		}
		w.results = append(w.results, drain.Result{Row: row, Err: err, At: w.now})
	}
}

// live lets time pass, in which pods stop, stay, complete or come.
func (w *progressWorld) live() {
	w.now = w.now.Add(time.Duration(1+w.rand.IntN(30)) * time.Second)
	w.pods = slices.DeleteFunc(slices.Clone(w.pods), func(p *corev1.Pod) bool {
		return !p.DeletionTimestamp.IsZero() && w.rand.IntN(4) == 0
	})
	if w.rand.IntN(10) == 0 && !w.node.Spec.Unschedulable {
		w.addPod()
	}
	if i := w.rand.IntN(20); i < len(w.pods) {
		w.pods[i] = w.pods[i].DeepCopy()
		w.pods[i].Status.Phase = corev1.PodSucceeded
	}
	if w.rand.IntN(20) == 0 {
		w.node, _ = nodeops.Unfence(w.node, "me")
	}
}

// judge holds the events against what happened.
func (w *progressWorld) judge(t *testing.T) {
	t.Helper()
	count := map[string]int{}
	last := map[string]drain.Progress{}
	text := func() string { return fmt.Sprintf("seed %d\n%s", w.seed, strings.Join(progressTexts(w.events), "\n")) }
	for i, e := range w.events {
		count[string(e.Type)+" "+e.Subject]++
		if before := last[e.Subject]; before.Type == drain.ProgressWaiting && e.Type == drain.ProgressWaiting {
			require.NotEqual(t, before.Reason, e.Reason, text())
		}
		last[e.Subject] = e
		if i > 0 && e.Type != drain.ProgressRequested && w.events[i-1].Type != drain.ProgressRequested {
			require.False(t, e.Time.Before(w.events[i-1].Time), text())
		}
		if e.Type == drain.ProgressEscalated {
			count[e.Message]++
		}
	}
	end := w.events[len(w.events)-1]
	require.Equal(t, drain.ProgressEnded, end.Type, text())
	require.Equal(t, 1, count["Ended node/node-1"], text())
	if w.last.Started.IsZero() && end.Outcome == drain.NodeGone { // may be over before anything was planned
		require.LessOrEqual(t, count["Started node/node-1"], 1, text())
	} else {
		require.Equal(t, drain.ProgressStarted, w.events[0].Type, text())
		require.Equal(t, 1, count["Started node/node-1"], text())
	}
	for subject := range w.waited {
		ends := count["Gone "+subject] + count["Left "+subject]
		if end.Outcome == drain.NodeGone {
			require.LessOrEqual(t, ends, 1, "%s: %s", subject, text())
			continue
		}
		require.Equal(t, 1, ends, "%s: %s", subject, text())
		require.NotEqual(t, drain.ProgressWaiting, last[subject].Type, text())
	}
	for rung := range w.rungs {
		require.Equal(t, 1, count[rung], "%s: %s", rung, text())
	}
}
