// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/drain"
)

func TestLaddersGoUp(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ladder  drain.Ladder
		rung    int
		problem string // empty if there is none
	}{
		{"the empty ladder is valid", nil, 0, ""},
		{"rungs of the same time are", drain.Ladder{{Action: drain.IgnoreBudgets}, {Action: drain.CapGrace, Grace: time.Second}, {Action: drain.Proceed}}, 0, ""},
		{"a rung before the anchor is not", drain.Ladder{{After: -1, Action: drain.IgnoreBudgets}}, 0, "before the anchor"},
		{"a rung before the one below it is not", drain.Ladder{{After: 2, Action: drain.IgnoreBudgets}, {After: 1, Action: drain.Proceed}}, 1, "before the rung below"},
		{"nothing is above going on", drain.Ladder{{Action: drain.Proceed}, {Action: drain.IgnoreBudgets}}, 1, "above the end"},
		{"nothing is above giving up", drain.Ladder{{Action: drain.GiveUp}, {Action: drain.Proceed}}, 1, "above the end"},
		{"a cap of nothing is not", drain.Ladder{{Action: drain.CapGrace}}, 0, "less than a second"},
		{"a cap above a lower one is not", drain.Ladder{{Action: drain.CapGrace, Grace: time.Second}, {Action: drain.IgnoreBudgets}, {Action: drain.CapGrace, Grace: time.Minute}}, 2, "more grace"},
		{"caps that fall are", drain.Ladder{{Action: drain.CapGrace, Grace: time.Minute}, {Action: drain.CapGrace, Grace: time.Second}}, 0, ""},
		{"a grace that caps nothing is not", drain.Ladder{{Action: drain.IgnoreBudgets, Grace: time.Second}}, 0, "caps none"},
		{"grace fits deletions", drain.Ladder{{Action: drain.IgnoreBudgets, GraceFits: true}, {Action: drain.IgnoreProtection, GraceFits: true}}, 0, ""},
		{"grace does not fit an end", drain.Ladder{{Action: drain.Proceed, GraceFits: true}}, 0, "grace could fit"},
		{"an instance that is off is for force", drain.Ladder{{Action: drain.ForceDeletePods, IfOff: true}}, 0, ""},
		{"and for nothing else", drain.Ladder{{Action: drain.IgnoreBudgets, IfOff: true}}, 0, "instance is off"},
		{"a rung must do something", drain.Ladder{{}}, 0, `what is ""`},
		{"that is known", drain.Ladder{{Action: "Pray"}}, 0, `what is "Pray"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.ladder.Validate()
			if tt.problem == "" {
				require.NoError(t, err)
				return
			}
			var wrong *drain.LadderError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, tt.rung, wrong.Rung)
			require.Contains(t, err.Error(), tt.problem)
		})
	}
}

func TestRungsReadAsText(t *testing.T) {
	for want, rung := range map[string]drain.Rung{
		"after 0s IgnoreBudgets":                  {Action: drain.IgnoreBudgets},
		"after 1m0s CapGrace 2s":                  {After: time.Minute, Action: drain.CapGrace, Grace: 2 * time.Second},
		"after 1h0m0s IgnoreBudgets (grace fits)": {After: time.Hour, Action: drain.IgnoreBudgets, GraceFits: true},
		"after 1s ForceDeletePods (if off)":       {After: time.Second, Action: drain.ForceDeletePods, IfOff: true},
	} {
		require.Equal(t, want, rung.String())
	}
}

func TestReadyMadeLadders(t *testing.T) {
	second, hour := time.Second, time.Hour
	for _, tt := range []struct {
		name      string
		got, want drain.Ladder
	}{
		{"force after an hour, with a grace", drain.ForceAfter(hour, 5*second), drain.Ladder{{After: hour, Action: drain.IgnoreBudgets}, {After: hour, Action: drain.CapGrace, Grace: 5 * second}}},
		{"force with the pods' own grace", drain.ForceAfter(hour, 0), drain.Ladder{{After: hour, Action: drain.IgnoreBudgets}}},
		{"force at once, with a second at least", drain.ForceAfter(-1, 1), drain.Ladder{{Action: drain.IgnoreBudgets}, {Action: drain.CapGrace, Grace: second}}},
		{"Karpenter's deadline", drain.TerminateWithin(hour), drain.Ladder{{After: hour, Action: drain.IgnoreProtection, GraceFits: true}, {After: hour, Action: drain.Proceed}}},
		{"Karpenter's deadline of nothing", drain.TerminateWithin(-hour), drain.Ladder{{Action: drain.IgnoreProtection, GraceFits: true}, {Action: drain.Proceed}}},
		{"Cluster API's timeout", drain.ProceedAfter(hour), drain.Ladder{{After: hour, Action: drain.Proceed}}},
		{"Cluster API's timeout of zero is none", drain.ProceedAfter(0), nil},
		{"Cluster API's rule for Nodes that do not answer", drain.HurryTerminating(), drain.Ladder{{Action: drain.CapGrace, Grace: second}, {Action: drain.SkipTerminating}}},
		{"the reference system's rule for Nodes that do not answer", drain.ForceDeleteAfter(5 * time.Minute), drain.Ladder{{After: 5 * time.Minute, Action: drain.ForceDeletePods}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, tt.got)
			require.NoError(t, tt.got.Validate())
		})
	}
}

func TestTightening(t *testing.T) {
	minute, hour := time.Minute, time.Hour
	for _, tt := range []struct {
		name       string
		l, m, want drain.Ladder
	}{
		{"nothing tightens nothing", nil, nil, nil},
		{"by nothing it stays", drain.ForceAfter(hour, 0), nil, drain.ForceAfter(hour, 0)},
		{"nothing becomes something", nil, drain.ForceAfter(hour, 0), drain.ForceAfter(hour, 0)},
		{"the earlier time rules", drain.ProceedAfter(hour), drain.ProceedAfter(minute), drain.ProceedAfter(minute)},
		{"a later time changes nothing", drain.ProceedAfter(minute), drain.ProceedAfter(hour), drain.ProceedAfter(minute)},
		{"both escalate", drain.ForceAfter(hour, 0), drain.ForceDeleteAfter(2 * hour), drain.Ladder{{After: hour, Action: drain.IgnoreBudgets}, {After: 2 * hour, Action: drain.ForceDeletePods}}},
		{"but not above the end", drain.ForceAfter(hour, 0), drain.ProceedAfter(minute), drain.ProceedAfter(minute)},
		{"the end comes after all else of its time", drain.ProceedAfter(hour), drain.ForceAfter(hour, 0), drain.Ladder{{After: hour, Action: drain.IgnoreBudgets}, {After: hour, Action: drain.Proceed}}},
		{"a higher cap adds nothing", drain.Ladder{{Action: drain.CapGrace, Grace: minute}}, drain.Ladder{{After: 1, Action: drain.CapGrace, Grace: hour}}, drain.Ladder{{Action: drain.CapGrace, Grace: minute}}},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, tt.l.Tighten(tt.m)) })
	}
	t.Run("one that is not valid stays so", func(t *testing.T) {
		broken := drain.Ladder{{Action: "Pray"}}
		require.Equal(t, broken, broken.Tighten(drain.ProceedAfter(hour)))
		require.Equal(t, broken, drain.ProceedAfter(hour).Tighten(broken))
	})
}

// B6 deadline may only tighten: whatever one of two ladders allows at a time, the
// tightened one does, unless the drain is over by then.
func TestB6DeadlineMayOnlyTighten(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 11))
		l, m := randomLadder(r), randomLadder(r)
		require.NoError(t, l.Validate())
		before := fmt.Sprint(l, m)
		tight := l.Tighten(m)
		require.NoError(t, tight.Validate(), "%v + %v", l, m)
		require.Equal(t, before, fmt.Sprint(l, m), "neither is changed")
		end := endOf(tight)
		require.Equal(t, min(endOf(l), endOf(m)), end, "%v + %v = %v", l, m, tight)
		for _, of := range []drain.Ladder{l, m} {
			for _, rung := range of {
				if rung.After <= end {
					require.LessOrEqual(t, firstTime(tight, rung), rung.After, "%v + %v = %v", l, m, tight)
				}
			}
		}
		for _, rung := range tight {
			require.True(t, firstTime(l, rung) <= rung.After || firstTime(m, rung) <= rung.After, "nothing is new: %v + %v = %v", l, m, tight)
		}
	}
}

// firstTime is when a ladder allows what a rung allows, or very late.
func firstTime(l drain.Ladder, want drain.Rung) time.Duration {
	for _, rung := range l {
		switch {
		case rung.Action != want.Action || rung.GraceFits != want.GraceFits || rung.IfOff != want.IfOff:
		case rung.Action == drain.CapGrace && rung.Grace > want.Grace:
		default:
			return rung.After
		}
		if want.Action == drain.GiveUp && rung.Action == drain.Proceed && rung.After <= want.After {
			return rung.After // one end is as good as the other
		}
	}
	return time.Duration(1 << 62)
}

func endOf(l drain.Ladder) time.Duration {
	for _, rung := range l {
		if rung.Action == drain.Proceed || rung.Action == drain.GiveUp {
			return rung.After
		}
	}
	return time.Duration(1 << 62)
}

// randomLadder is valid.
func randomLadder(r *rand.Rand) drain.Ladder {
	var l drain.Ladder
	after, grace := time.Duration(0), time.Minute
	for range r.IntN(5) {
		after += time.Duration(r.IntN(3)) * 30 * time.Second
		rung := drain.Rung{After: after}
		switch r.IntN(9) {
		case 0, 1:
			grace = max(grace/time.Duration(1+r.IntN(3)), time.Second)
			rung.Action, rung.Grace = drain.CapGrace, grace
		case 2, 3:
			rung.Action, rung.GraceFits = drain.IgnoreBudgets, r.IntN(2) == 0
		case 4:
			rung.Action, rung.GraceFits = drain.IgnoreProtection, r.IntN(2) == 0
		case 5:
			rung.Action, rung.IfOff = drain.ForceDeletePods, r.IntN(2) == 0
		case 6:
			rung.Action = drain.SkipTerminating
		case 7:
			return append(l, drain.Rung{After: after, Action: drain.Proceed})
		default:
			return append(l, drain.Rung{After: after, Action: drain.GiveUp})
		}
		l = append(l, rung)
	}
	return l
}

func TestTighteningRepeatsNoGrace(t *testing.T) {
	early := drain.Ladder{{After: time.Minute, Action: drain.CapGrace, Grace: time.Second}}
	late := drain.Ladder{{After: time.Hour, Action: drain.CapGrace, Grace: time.Second}}
	require.Equal(t, early, early.Tighten(late))
	require.Equal(t, early, late.Tighten(early))
}
