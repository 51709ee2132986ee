// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/nodeops"
)

const (
	excluded    = corev1.LabelNodeExcludeBalancers
	claimPrefix = "fence.machinist.dev/"
	marksKey    = "machinist.dev/fence-marks"

	markExcluded     nodeops.Mark = "exclude-from-external-load-balancers"
	markOutOfService nodeops.Mark = "out-of-service"
)

// owned is a plain cordon with an owner.
var owned = nodeops.Fence{Owner: "a", Reason: "update"}

// everything has all the marks that there are, but for the cordon.
func everything(owner string) nodeops.Fence {
	return nodeops.Fence{Owner: owner, Taint: "example.com/drain", ExcludeFromLoadBalancers: true, OutOfService: true}
}

// fenced sets a fence and checks what holds for every fence: it stands, a second time changes
// nothing, and the node that was given is as before.
func fenced(t *testing.T, node *corev1.Node, f nodeops.Fence) *corev1.Node {
	t.Helper()
	before := node.DeepCopy()
	got, changed, err := f.Set(node, t0)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(before, node), "the input was changed")
	require.NotEqual(t, f.Stands(node), changed, "it is written unless it stands")
	require.Equal(t, changed, !cmp.Equal(before, got))
	require.True(t, f.Stands(got))
	again, changed, err := f.Set(got, t0.Add(time.Hour))
	require.NoError(t, err)
	require.False(t, changed)
	require.Empty(t, cmp.Diff(got, again))
	return got
}

// unfenced takes a claim back and checks what holds for every owner.
func unfenced(t *testing.T, node *corev1.Node, owner string) *corev1.Node {
	t.Helper()
	before := node.DeepCopy()
	got, changed := nodeops.Unfence(node, owner)
	require.Empty(t, cmp.Diff(before, node), "the input was changed")
	require.Equal(t, changed, !cmp.Equal(before, got))
	again, changed := nodeops.Unfence(got, owner)
	require.False(t, changed)
	require.Empty(t, cmp.Diff(got, again))
	return got
}

func TestAFenceIsWhatItSays(t *testing.T) {
	for name, test := range map[string]struct {
		fence                                     nodeops.Fence
		unschedulable, taint, excluded, noService bool
	}{
		"a cordon":                         {fence: owned, unschedulable: true},
		"a taint instead of the cordon":    {fence: nodeops.Fence{Owner: "a", Taint: "example.com/drain"}, taint: true},
		"a cordon without traffic":         {fence: nodeops.Fence{Owner: "a", ExcludeFromLoadBalancers: true}, unschedulable: true, excluded: true},
		"an instance that is off":          {fence: nodeops.Fence{Owner: "a", OutOfService: true}, unschedulable: true, noService: true},
		"nobody in charge":                 {unschedulable: true},
		"everything":                       {fence: everything("a"), taint: true, excluded: true, noService: true},
		"everything, and nobody in charge": {fence: everything(""), taint: true, excluded: true, noService: true},
	} {
		t.Run(name, func(t *testing.T) {
			node := crowdedNode()
			got := fenced(t, node, test.fence)
			require.Equal(t, test.unschedulable, got.Spec.Unschedulable)
			require.Equal(t, test.taint, nodeops.HasTaint(got.Spec.Taints, taint("example.com/drain", "", noSchedule)))
			require.Equal(t, test.excluded, got.Labels[excluded] == "true")
			require.Equal(t, test.noService, nodeops.HasTaint(got.Spec.Taints, taint("node.kubernetes.io/out-of-service", "nodeshutdown", noExecute)))
			if test.fence.Owner == "" {
				require.Equal(t, node.Annotations, got.Annotations)
				require.Empty(t, cmp.Diff(got, unfenced(t, got, "")), "what nobody holds is not taken back")
				return
			}
			require.Empty(t, cmp.Diff(node, unfenced(t, got, "a")), "taking it back leaves no trace")
		})
	}
}

func TestAFenceThatMakesNoSenseIsATypedErrorAndSetsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		fence nodeops.Fence
		field string
	}{
		"an owner with a slash":         {nodeops.Fence{Owner: "a/b"}, "owner"},
		"an owner that ends in a dot":   {nodeops.Fence{Owner: "a."}, "owner"},
		"a taint that is no key":        {nodeops.Fence{Taint: "a=b"}, "taint"},
		"the taint of nodes out of use": {nodeops.Fence{Taint: corev1.TaintNodeOutOfService}, "taint"},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed, err := test.fence.Set(crowdedNode(), t0)
			wrong, ok := errors.AsType[*nodeops.FenceError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, test.field, wrong.Field)
			require.Contains(t, err.Error(), test.field)
			require.False(t, changed)
			require.Empty(t, cmp.Diff(crowdedNode(), got))
			require.False(t, test.fence.Stands(got))
		})
	}
	require.NoError(t, nodeops.Fence{Owner: "machine-drain", Taint: "example.com/drain"}.Validate())
	require.False(t, nodeops.Fence{}.Stands(nil))
	require.Empty(t, nodeops.Fences(nil))
	none, _, err := owned.Set(nil, t0)
	require.NoError(t, err)
	require.Nil(t, none)
	none, _ = nodeops.Unfence(nil, "a")
	require.Nil(t, none)
}

func TestAClaimSaysWhoWhySinceWhenAndWhat(t *testing.T) {
	node := fenced(t, crowdedNode(), owned)
	node = fenced(t, node, nodeops.Fence{Owner: "b", ExcludeFromLoadBalancers: true})
	require.Equal(t, []nodeops.Claim{
		{Owner: "a", Reason: "update", Since: t0, Marks: []nodeops.Mark{nodeops.MarkUnschedulable}},
		{Owner: "b", Since: t0, Marks: []nodeops.Mark{markExcluded, nodeops.MarkUnschedulable}},
	}, nodeops.Fences(node))
	require.JSONEq(t, `{"reason":"update","since":"`+t0.UTC().Format(time.RFC3339)+`","marks":["unschedulable"]}`, node.Annotations["fence.machinist.dev/a"])

	t.Run("another reason alone is not written", func(t *testing.T) {
		require.True(t, nodeops.Fence{Owner: "a", Reason: "other"}.Stands(node))
	})
	t.Run("a wider fence keeps the time and takes the new reason", func(t *testing.T) {
		wider, _, err := nodeops.Fence{Owner: "a", Reason: "off", OutOfService: true}.Set(node, t0.Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, nodeops.Claim{
			Owner: "a", Reason: "off", Since: t0, Marks: []nodeops.Mark{markOutOfService, nodeops.MarkUnschedulable},
		}, nodeops.Fences(wider)[0])
		i := slices.IndexFunc(wider.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
		require.True(t, wider.Spec.Taints[i].TimeAdded.Time.Equal(t0.Add(time.Hour)))

		silent := fenced(t, wider, nodeops.Fence{Owner: "a", ExcludeFromLoadBalancers: true})
		require.Equal(t, "off", nodeops.Fences(silent)[0].Reason, "no reason is no news")
	})
	t.Run("a narrower fence goes on to hold what it held", func(t *testing.T) {
		require.True(t, nodeops.Fence{Owner: "b"}.Stands(node))
		node := fenced(t, node, nodeops.Fence{Owner: "b", Taint: "example.com/drain"})
		require.Equal(t, []nodeops.Mark{markExcluded, "taint/example.com/drain", nodeops.MarkUnschedulable}, nodeops.Fences(node)[1].Marks)
		node = unfenced(t, node, "b")
		require.NotContains(t, node.Labels, excluded)
		require.True(t, node.Spec.Unschedulable, "a holds it")
	})
}

func TestN1WhatWasThereBeforeSurvives(t *testing.T) {
	before := fenced(t, crowdedNode(), everything(""))
	before.Spec.Unschedulable = true
	before.Labels[excluded] = "by-hand"
	node := fenced(t, before, nodeops.Fence{Owner: "a", ExcludeFromLoadBalancers: true, OutOfService: true})
	require.NotContains(t, node.Annotations, marksKey, "nothing was set")
	require.Empty(t, cmp.Diff(before, unfenced(t, node, "a")))
}

func TestN1TheTaintOfOwnersGoesWithTheLastOfThem(t *testing.T) {
	node := fenced(t, crowdedNode(), everything("")) // by an earlier version without claims, say
	node = fenced(t, node, nodeops.Fence{Owner: "a", Taint: "example.com/drain"})
	node = fenced(t, node, nodeops.Fence{Owner: "b", Taint: "example.com/drain"})
	node = unfenced(t, node, "a")
	require.True(t, hasKey(node, "example.com/drain"))
	node = unfenced(t, node, "b")
	require.False(t, hasKey(node, "example.com/drain"))
	require.Contains(t, node.Labels, excluded)

	t.Run("also if the memory was lost", func(t *testing.T) {
		node := fenced(t, crowdedNode(), nodeops.Fence{Owner: "a", Taint: "example.com/drain"})
		delete(node.Annotations, marksKey)
		require.Empty(t, cmp.Diff(crowdedNode(), unfenced(t, node, "a")))
	})
}

func TestN1AManualUncordonIsSeenAndNotUndone(t *testing.T) {
	node := fenced(t, crowdedNode(), owned)
	node.Spec.Unschedulable = false
	require.False(t, owned.Stands(node))
	require.Equal(t, []nodeops.Mark{nodeops.MarkUnschedulable}, nodeops.Fences(node)[0].Missing)
	require.Empty(t, cmp.Diff(crowdedNode(), unfenced(t, node, "a")))
	repaired := fenced(t, node, owned)
	require.Empty(t, nodeops.Fences(repaired)[0].Missing)
	require.Empty(t, cmp.Diff(crowdedNode(), unfenced(t, repaired, "a")))
}

func TestWhatSomebodyChangedIsTheirs(t *testing.T) {
	node := fenced(t, crowdedNode(), nodeops.Fence{Owner: "a", ExcludeFromLoadBalancers: true, OutOfService: true})
	node.Labels[excluded] = "by-hand"
	node.Spec.Taints, _ = nodeops.SetTaint(node.Spec.Taints, taint("node.kubernetes.io/out-of-service", "by-hand", noExecute))
	want := crowdedNode()
	want.Labels[excluded] = "by-hand"
	want.Spec.Taints = append(want.Spec.Taints, taint("node.kubernetes.io/out-of-service", "by-hand", noExecute))
	require.Empty(t, cmp.Diff(want, unfenced(t, node, "a")))
}

// The taint for an instance that is off would remove the pods of one that is on.
func TestANodeIsPutBackIntoServiceWhenItsInstanceIsOn(t *testing.T) {
	off, on := nodeops.Fence{Owner: "a", OutOfService: true}, nodeops.Fence{Owner: "a"}
	node := fenced(t, crowdedNode(), off)
	require.False(t, off.Outlived(node))
	require.True(t, on.Outlived(node))
	require.False(t, on.Stands(node))
	back := fenced(t, node, on)
	require.Empty(t, cmp.Diff(fenced(t, crowdedNode(), on), back), "as if it had never been off")
	require.False(t, on.Outlived(back))

	other := fenced(t, fenced(t, node, nodeops.Fence{Owner: "b", OutOfService: true}), on)
	require.True(t, nodeops.Fence{Owner: "b", OutOfService: true}.Stands(other), "another owner still says that it is off")
	require.Empty(t, cmp.Diff(crowdedNode(), unfenced(t, unfenced(t, other, "a"), "b")))
	require.False(t, nodeops.Fence{}.Outlived(node), "nobody's fence has no claim")
	require.False(t, on.Outlived(nil))
}

func TestMalformedAnnotationsDoNoHarm(t *testing.T) {
	for name, value := range map[string]string{
		"no JSON": "yes", "no marks": `{"reason":"x","marks":[]}`,
		"a time that is none": `{"since":"today","marks":["unschedulable"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			node := fenced(t, crowdedNode(), owned)
			node = fenced(t, node, everything("a"))
			node.Annotations[claimPrefix+"b"] = value
			claim := nodeops.Fences(node)[1]
			require.True(t, claim.Unreadable)
			require.True(t, nodeops.Fence{Owner: "b", OutOfService: true}.Stands(node), "it holds everything")

			left := unfenced(t, node, "a")
			require.True(t, left.Spec.Unschedulable, "who cannot be read holds everything")
			require.Contains(t, left.Labels, excluded)
			require.Empty(t, cmp.Diff(crowdedNode(), unfenced(t, left, "b")))

			left.Spec.Unschedulable = false
			require.Equal(t, []nodeops.Mark{nodeops.MarkUnschedulable}, nodeops.Fences(left)[0].Missing)
			rewritten := fenced(t, left, nodeops.Fence{Owner: "b"})
			require.False(t, nodeops.Fences(rewritten)[0].Unreadable)
			require.Contains(t, unfenced(t, rewritten, "").Labels, excluded, "it still holds what it may have held")
			require.Empty(t, cmp.Diff(crowdedNode(), unfenced(t, rewritten, "b")))
		})
	}
	t.Run("a memory of nonsense takes nothing away", func(t *testing.T) {
		node := crowdedNode()
		node.Annotations[marksKey] = " ,, later-mark,taint/ ,"
		require.Empty(t, cmp.Diff(node, unfenced(t, fenced(t, node, owned), "a"),
			cmpopts.IgnoreMapEntries(func(k, _ string) bool { return k == marksKey })))
		require.Equal(t, "later-mark", unfenced(t, node, "a").Annotations[marksKey], "a later version knows")
	})
}

func TestN7WhatNobodyHoldsIsTakenAwayByAnybody(t *testing.T) {
	node := fenced(t, crowdedNode(), nodeops.Fence{Owner: "a", ExcludeFromLoadBalancers: true})
	node = fenced(t, node, nodeops.Fence{Owner: "b"})
	delete(node.Annotations, claimPrefix+"a") // by hand
	node = unfenced(t, node, "")
	require.NotContains(t, node.Labels, excluded)
	require.True(t, node.Spec.Unschedulable)
	require.Empty(t, cmp.Diff(crowdedNode(), unfenced(t, node, "b")))
}

// I-13 in every order of two owners and a human, up to six acts.
func TestI13TwoOwnersAndAHumanInAnyOrder(t *testing.T) {
	for name, w := range map[string]*fenceWorld{
		"one cordon": {a: owned, b: nodeops.Fence{Owner: "b"}, see: cordoned, flip: cordon},
		"one owner with a taint of its own": {
			a: owned, b: nodeops.Fence{Owner: "b", Taint: "example.com/b"}, see: cordoned, flip: cordon,
		},
		"load balancers": {
			a:   nodeops.Fence{Owner: "a", Taint: "example.com/a", ExcludeFromLoadBalancers: true},
			b:   nodeops.Fence{Owner: "b", ExcludeFromLoadBalancers: true},
			see: func(n *corev1.Node) bool { return n.Labels[excluded] == "true" },
			flip: func(n *corev1.Node, on bool) {
				n.Labels = maps.Clone(n.Labels)
				if n.Labels[excluded] = "true"; !on {
					delete(n.Labels, excluded)
				}
			},
		},
		"out of service": {
			a:   nodeops.Fence{Owner: "a", OutOfService: true},
			b:   nodeops.Fence{Owner: "b", Taint: "example.com/b", OutOfService: true},
			see: func(n *corev1.Node) bool { return hasKey(n, corev1.TaintNodeOutOfService) },
			flip: func(n *corev1.Node, on bool) {
				service := taint(corev1.TaintNodeOutOfService, "nodeshutdown", noExecute)
				if n.Spec.Taints, _ = nodeops.SetTaint(n.Spec.Taints, service); !on {
					n.Spec.Taints, _ = nodeops.RemoveTaint(n.Spec.Taints, service)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.play(fenceHistory{node: crowdedNode()}, 6)
			require.Greater(t, w.states, 50_000)
			require.Positive(t, w.opened)
			require.Positive(t, w.kept)
		})
	}
}

func cordoned(n *corev1.Node) bool   { return n.Spec.Unschedulable }
func cordon(n *corev1.Node, on bool) { n.Spec.Unschedulable = on }

// fenceWorld is two owners and a human who care for one mark.
type fenceWorld struct {
	t                    *testing.T
	a, b                 nodeops.Fence
	see                  func(*corev1.Node) bool
	flip                 func(*corev1.Node, bool)
	states, opened, kept int
}

// fenceHistory is a node, and what an observer who sees every act knows about it.
type fenceHistory struct {
	node *corev1.Node
	acts []string
	// holders are the owners with a claim.
	holders []string
	// byHuman says that a human was the last to put the mark on; unseen that a human took
	// away what a fence had set, and no fence could see that yet.
	byHuman, unseen bool
}

func (w *fenceWorld) play(h fenceHistory, more int) {
	w.states++
	if more == 0 {
		return
	}
	for _, f := range []nodeops.Fence{w.a, w.b} {
		w.play(w.fence(h, f), more-1)
		w.play(w.unfence(h, f.Owner), more-1)
	}
	for _, on := range []bool{true, false} {
		w.play(w.human(h, on), more-1)
	}
}

func (h fenceHistory) after(act string, node *corev1.Node) fenceHistory {
	h.acts, h.node = append(slices.Clone(h.acts), act), node
	return h
}

func (w *fenceWorld) human(h fenceHistory, on bool) fenceHistory {
	next := h.after(fmt.Sprintf("human %t", on), h.node.DeepCopy())
	w.flip(next.node, on)
	switch was := w.see(h.node); {
	case was == on:
	case on:
		next.byHuman, next.unseen = !h.unseen, false // what looks as if a fence had set it is a fence's
	default:
		next.unseen, next.byHuman = !h.byHuman, false
	}
	return next
}

func (w *fenceWorld) fence(h fenceHistory, f nodeops.Fence) fenceHistory {
	node, changed, err := f.Set(h.node, t0)
	next := h.after("fence "+f.Owner, node)
	w.require(err == nil && f.Stands(node), next, "it stands")
	w.require(changed == !f.Stands(h.node), next, "it is written once")
	w.require(w.see(node) || !w.see(h.node), next, "a fence takes nothing away")
	if !slices.Contains(h.holders, f.Owner) {
		next.holders = append(slices.Clone(h.holders), f.Owner)
	}
	if changed {
		next.unseen = false
	}
	if w.see(node) && !w.see(h.node) {
		next.byHuman = false
	}
	return next
}

func (w *fenceWorld) unfence(h fenceHistory, owner string) fenceHistory {
	node, changed := nodeops.Unfence(h.node, owner)
	next := h.after("unfence "+owner, node)
	next.holders = slices.DeleteFunc(slices.Clone(h.holders), func(o string) bool { return o == owner })
	if changed {
		next.unseen = false
	}
	was, is := w.see(h.node), w.see(node)
	switch {
	case !was:
		w.require(!is, next, "what a human took away is not put back")
	case h.byHuman:
		w.kept++
		w.require(is, next, "what a human has set survives")
	case slices.ContainsFunc(next.holders, w.cares):
		w.require(is, next, "another owner holds it")
	default:
		w.opened++
		w.require(!is, next, "the last owner takes it away")
	}
	if len(next.holders) == 0 {
		w.require(maps.Equal(node.Annotations, crowdedNode().Annotations), next, "no annotation is left")
	}
	return next
}

// cares says whether the fence of an owner has the mark.
func (w *fenceWorld) cares(owner string) bool {
	f := w.a
	if owner == w.b.Owner {
		f = w.b
	}
	node, _, _ := f.Set(crowdedNode(), t0)
	return w.see(node)
}

func (w *fenceWorld) require(ok bool, h fenceHistory, law string) {
	if !ok {
		w.t.Fatalf("%s: %v\n%s", law, h.acts, cmp.Diff(crowdedNode(), h.node))
	}
}

func FuzzFencesOnAnyAnnotations(f *testing.F) {
	f.Add("a", `{"marks":["unschedulable"]}`, "unschedulable", "example.com/drain", uint8(7))
	f.Add("b", `{"marks":["taint/x","later"]}`, "taint/x,later,,", "x", uint8(0))
	f.Add("a.b", `{"since":"2026-03-01T12:00:00Z","marks":["out-of-service"]}`, "out-of-service,unschedulable", "", uint8(3))
	f.Add("", "null", " , ", "node.kubernetes.io/unschedulable", uint8(1))
	f.Fuzz(func(t *testing.T, owner, value, memory, key string, marks uint8) {
		node := crowdedNode()
		node.Spec.Unschedulable = marks&8 > 0
		node.Annotations[claimPrefix+"b"] = value
		node.Annotations[marksKey] = memory
		fence := nodeops.Fence{Owner: owner, Taint: key, ExcludeFromLoadBalancers: marks&1 > 0, OutOfService: marks&2 > 0}
		if fence.Validate() != nil {
			return
		}
		others := node.DeepCopy()
		got := fenced(t, node, fence)
		for _, c := range nodeops.Fences(got) {
			require.True(t, c.Unreadable || len(c.Marks) > 0)
		}
		got = unfenced(t, got, owner)
		if owner != "" {
			require.NotContains(t, got.Annotations, claimPrefix+owner)
		}
		require.Equal(t, others.Labels["l"], got.Labels["l"])
		require.Equal(t, others.Annotations["a"], got.Annotations["a"])
		if owner != "b" {
			require.Equal(t, value, got.Annotations[claimPrefix+"b"])
		}
	})
}
