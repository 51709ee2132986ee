// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
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
	claimPrefix = "cordon.machinist.dev/"
	marksKey    = "machinist.dev/cordon-marks"

	markExcluded     = "exclude-from-external-load-balancers"
	markOutOfService = "out-of-service"
)

// hasKey reports whether the node has a taint with the key.
func hasKey(node *corev1.Node, key string) bool {
	_, has := nodeops.RemoveTaintKey(node.Spec.Taints, key)
	return has
}

// owned is a plain cordon with an owner.
var owned = nodeops.Cordon{Owner: "a", Reason: "update"}

// everything has all the marks that there are, but for the cordon.
func everything(owner string) nodeops.Cordon {
	return nodeops.Cordon{Owner: owner, Taint: "example.com/drain", ExcludeFromLoadBalancers: true, OutOfService: true}
}

// cordoned sets a cordon and checks what holds for every cordon: it stands, a second time changes
// nothing, and the node that was given is as before.
func cordoned(t *testing.T, node *corev1.Node, f nodeops.Cordon) *corev1.Node {
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

// uncordoned takes a claim back and checks what holds for every owner.
func uncordoned(t *testing.T, node *corev1.Node, owner string) *corev1.Node {
	t.Helper()
	before := node.DeepCopy()
	got, changed := nodeops.Uncordon(node, owner)
	require.Empty(t, cmp.Diff(before, node), "the input was changed")
	require.Equal(t, changed, !cmp.Equal(before, got))
	again, changed := nodeops.Uncordon(got, owner)
	require.False(t, changed)
	require.Empty(t, cmp.Diff(got, again))
	return got
}

func TestCordon_Set_HasItsMarks(t *testing.T) {
	for name, test := range map[string]struct {
		cordon                                    nodeops.Cordon
		unschedulable, taint, excluded, noService bool
	}{
		"a cordon":                      {cordon: owned, unschedulable: true},
		"a taint instead of the cordon": {cordon: nodeops.Cordon{Owner: "a", Taint: "example.com/drain"}, taint: true},
		"a cordon without traffic":      {cordon: nodeops.Cordon{Owner: "a", ExcludeFromLoadBalancers: true}, unschedulable: true, excluded: true},
		"an instance that is off":       {cordon: nodeops.Cordon{Owner: "a", OutOfService: true}, unschedulable: true, noService: true},
		"no owner":                      {unschedulable: true},
		"everything":                    {cordon: everything("a"), taint: true, excluded: true, noService: true},
		"everything, no owner":          {cordon: everything(""), taint: true, excluded: true, noService: true},
	} {
		t.Run(name, func(t *testing.T) {
			node := crowdedNode()
			got := cordoned(t, node, test.cordon)
			require.Equal(t, test.unschedulable, got.Spec.Unschedulable)
			require.Equal(t, test.taint, nodeops.HasTaint(got.Spec.Taints, taint("example.com/drain", "", noSchedule)))
			require.Equal(t, test.excluded, got.Labels[excluded] == "true")
			require.Equal(t, test.noService, nodeops.HasTaint(got.Spec.Taints, taint("node.kubernetes.io/out-of-service", "nodeshutdown", noExecute)))
			if test.cordon.Owner == "" {
				require.Equal(t, node.Annotations, got.Annotations)
				opened := got.DeepCopy()
				opened.Spec.Unschedulable = false
				require.Empty(t, cmp.Diff(opened, uncordoned(t, got, "")), "without a claim only spec.unschedulable is removed")
				return
			}
			require.Empty(t, cmp.Diff(node, uncordoned(t, got, "a")), "taking it back leaves no trace")
		})
	}
}

func TestCordon_Invalid_ErrorAndNothingSet(t *testing.T) {
	for name, test := range map[string]struct {
		cordon nodeops.Cordon
		field  string
	}{
		"an owner with a slash":         {nodeops.Cordon{Owner: "a/b"}, "owner"},
		"an owner that ends in a dot":   {nodeops.Cordon{Owner: "a."}, "owner"},
		"a taint that is no key":        {nodeops.Cordon{Taint: "a=b"}, "taint"},
		"the taint of nodes out of use": {nodeops.Cordon{Taint: corev1.TaintNodeOutOfService}, "taint"},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed, err := test.cordon.Set(crowdedNode(), t0)
			require.ErrorContains(t, err, "cordon: "+test.field+" \""+test.cordon.Owner+test.cordon.Taint+"\": ")
			require.False(t, changed)
			require.Empty(t, cmp.Diff(crowdedNode(), got))
			require.False(t, test.cordon.Stands(got))
		})
	}
	require.NoError(t, nodeops.Cordon{Owner: "machine-drain", Taint: "example.com/drain"}.Validate())
	require.False(t, nodeops.Cordon{}.Stands(nil))
	require.Empty(t, nodeops.Cordons(nil))
	none, _, err := owned.Set(nil, t0)
	require.NoError(t, err)
	require.Nil(t, none)
	none, _ = nodeops.Uncordon(nil, "a")
	require.Nil(t, none)
}

func TestCordons_Claim_OwnerReasonSinceMarks(t *testing.T) {
	node := cordoned(t, crowdedNode(), owned)
	node = cordoned(t, node, nodeops.Cordon{Owner: "b", ExcludeFromLoadBalancers: true})
	require.Equal(t, []nodeops.Claim{
		{Owner: "a", Reason: "update", Since: t0, Marks: []string{"unschedulable"}},
		{Owner: "b", Since: t0, Marks: []string{markExcluded, "unschedulable"}},
	}, nodeops.Cordons(node))
	require.JSONEq(t, `{"reason":"update","since":"`+t0.UTC().Format(time.RFC3339)+`","marks":["unschedulable"]}`, node.Annotations["cordon.machinist.dev/a"])

	t.Run("another reason alone is not written", func(t *testing.T) {
		require.True(t, nodeops.Cordon{Owner: "a", Reason: "other"}.Stands(node))
	})
	t.Run("a wider cordon keeps the time and takes the new reason", func(t *testing.T) {
		wider, _, err := nodeops.Cordon{Owner: "a", Reason: "off", OutOfService: true}.Set(node, t0.Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, nodeops.Claim{
			Owner: "a", Reason: "off", Since: t0, Marks: []string{markOutOfService, "unschedulable"},
		}, nodeops.Cordons(wider)[0])
		i := slices.IndexFunc(wider.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
		require.True(t, wider.Spec.Taints[i].TimeAdded.Time.Equal(t0.Add(time.Hour)))

		silent := cordoned(t, wider, nodeops.Cordon{Owner: "a", ExcludeFromLoadBalancers: true})
		require.Equal(t, "off", nodeops.Cordons(silent)[0].Reason, "no reason is no news")
	})
	t.Run("a narrower cordon goes on to hold what it held", func(t *testing.T) {
		require.True(t, nodeops.Cordon{Owner: "b"}.Stands(node))
		node := cordoned(t, node, nodeops.Cordon{Owner: "b", Taint: "example.com/drain"})
		require.Equal(t, []string{markExcluded, "taint/example.com/drain", "unschedulable"}, nodeops.Cordons(node)[1].Marks)
		node = uncordoned(t, node, "b")
		require.NotContains(t, node.Labels, excluded)
		require.True(t, node.Spec.Unschedulable, "a holds it")
	})
}

func TestUncordon_EarlierMarks_Stay(t *testing.T) {
	before := cordoned(t, crowdedNode(), everything(""))
	before.Spec.Unschedulable = true
	before.Labels[excluded] = "by-hand"
	node := cordoned(t, before, nodeops.Cordon{Owner: "a", ExcludeFromLoadBalancers: true, OutOfService: true})
	require.NotContains(t, node.Annotations, marksKey, "nothing was set")
	require.Empty(t, cmp.Diff(before, uncordoned(t, node, "a")))
}

func TestUncordon_AdoptedMarks_AreRemoved(t *testing.T) {
	before := cordoned(t, crowdedNode(), everything(""))
	before.Spec.Unschedulable = true
	adopting := nodeops.Cordon{Owner: "a", Adopt: true, ExcludeFromLoadBalancers: true, OutOfService: true}
	node := uncordoned(t, cordoned(t, before, adopting), "a")
	node.Spec.Taints, _ = nodeops.RemoveTaintKey(node.Spec.Taints, "example.com/drain") // of the earlier cordon
	require.Empty(t, cmp.Diff(crowdedNode(), node))
	require.Equal(t, cordoned(t, crowdedNode(), nodeops.Cordon{Owner: "a"}), cordoned(t, crowdedNode(), nodeops.Cordon{Owner: "a", Adopt: true}), "nothing to adopt")
	both := cordoned(t, cordoned(t, before, adopting), nodeops.Cordon{Owner: "b", OutOfService: true, ExcludeFromLoadBalancers: true})
	require.True(t, uncordoned(t, both, "a").Spec.Unschedulable, "b holds it")
}

func TestUncordon_LastOwner_RemovesTheTaint(t *testing.T) {
	node := cordoned(t, crowdedNode(), everything("")) // by an earlier version without claims, say
	node = cordoned(t, node, nodeops.Cordon{Owner: "a", Taint: "example.com/drain"})
	node = cordoned(t, node, nodeops.Cordon{Owner: "b", Taint: "example.com/drain"})
	node = uncordoned(t, node, "a")
	require.True(t, hasKey(node, "example.com/drain"))
	node = uncordoned(t, node, "b")
	require.False(t, hasKey(node, "example.com/drain"))
	require.Contains(t, node.Labels, excluded)

	t.Run("also if the memory was lost", func(t *testing.T) {
		node := cordoned(t, crowdedNode(), nodeops.Cordon{Owner: "a", Taint: "example.com/drain"})
		delete(node.Annotations, marksKey)
		require.Empty(t, cmp.Diff(crowdedNode(), uncordoned(t, node, "a")))
	})
}

// TestCordon_InstanceRunsAgain_RemovesOutOfService asserts that the out-of-service taint does not
// stay, which would remove the pods of a running instance.
func TestCordon_InstanceRunsAgain_RemovesOutOfService(t *testing.T) {
	off, on := nodeops.Cordon{Owner: "a", OutOfService: true}, nodeops.Cordon{Owner: "a"}
	node := cordoned(t, crowdedNode(), off)
	require.False(t, off.Outlived(node))
	require.True(t, on.Outlived(node))
	require.False(t, on.Stands(node))
	back := cordoned(t, node, on)
	require.Empty(t, cmp.Diff(cordoned(t, crowdedNode(), on), back), "as if it had never been off")
	require.False(t, on.Outlived(back))

	other := cordoned(t, cordoned(t, node, nodeops.Cordon{Owner: "b", OutOfService: true}), on)
	require.True(t, nodeops.Cordon{Owner: "b", OutOfService: true}.Stands(other), "another owner still says that it is off")
	require.Empty(t, cmp.Diff(crowdedNode(), uncordoned(t, uncordoned(t, other, "a"), "b")))
	require.False(t, nodeops.Cordon{}.Outlived(node), "without an owner there is no claim")
	require.False(t, on.Outlived(nil))
}

func TestCordon_MalformedAnnotations_KeepMarks(t *testing.T) {
	for name, value := range map[string]string{
		"no JSON": "yes", "no marks": `{"reason":"x","marks":[]}`,
		"a time that is none": `{"since":"today","marks":["unschedulable"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			node := cordoned(t, crowdedNode(), owned)
			node = cordoned(t, node, everything("a"))
			node.Annotations[claimPrefix+"b"] = value
			claim := nodeops.Cordons(node)[1]
			require.True(t, claim.Unreadable)
			require.True(t, nodeops.Cordon{Owner: "b", OutOfService: true}.Stands(node), "it holds everything")

			left := uncordoned(t, node, "a")
			require.True(t, left.Spec.Unschedulable, "who cannot be read holds everything")
			require.Contains(t, left.Labels, excluded)
			require.Empty(t, cmp.Diff(crowdedNode(), uncordoned(t, left, "b")))

			left.Spec.Unschedulable = false
			require.Equal(t, []string{"unschedulable"}, nodeops.Cordons(left)[0].Missing)
			rewritten := cordoned(t, left, nodeops.Cordon{Owner: "b"})
			require.False(t, nodeops.Cordons(rewritten)[0].Unreadable)
			require.Contains(t, uncordoned(t, rewritten, "").Labels, excluded, "it still holds what it may have held")
			require.Empty(t, cmp.Diff(crowdedNode(), uncordoned(t, rewritten, "b")))
		})
	}
	t.Run("a memory of nonsense takes nothing away", func(t *testing.T) {
		node := crowdedNode()
		node.Annotations[marksKey] = " ,, later-mark,taint/ ,"
		require.Empty(t, cmp.Diff(node, uncordoned(t, cordoned(t, node, owned), "a"),
			cmpopts.IgnoreMapEntries(func(k, _ string) bool { return k == marksKey })))
		require.Equal(t, "later-mark", uncordoned(t, node, "a").Annotations[marksKey], "a later version knows")
	})
}

// TestUncordon_TwoOwnersAndAUserInAnyOrder_LastOwnerOpens plays every order of two owners and a
// user, up to six steps.
func TestUncordon_TwoOwnersAndAUserInAnyOrder_LastOwnerOpens(t *testing.T) {
	for name, w := range map[string]*cordonWorld{
		"one cordon":                        {a: owned, b: nodeops.Cordon{Owner: "b"}, see: unschedulable, flip: setUnschedulable},
		"one owner with a taint of its own": {a: owned, b: nodeops.Cordon{Owner: "b", Taint: "example.com/b"}, see: unschedulable, flip: setUnschedulable},
		"load balancers": {
			a:   nodeops.Cordon{Owner: "a", Taint: "example.com/a", ExcludeFromLoadBalancers: true},
			b:   nodeops.Cordon{Owner: "b", ExcludeFromLoadBalancers: true},
			see: func(n *corev1.Node) bool { return n.Labels[excluded] == "true" },
			flip: func(n *corev1.Node, on bool) {
				n.Labels = maps.Clone(n.Labels)
				if n.Labels[excluded] = "true"; !on {
					delete(n.Labels, excluded)
				}
			},
		},
		"out of service": {
			a:   nodeops.Cordon{Owner: "a", OutOfService: true},
			b:   nodeops.Cordon{Owner: "b", Taint: "example.com/b", OutOfService: true},
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
			w.play(cordonHistory{node: crowdedNode()}, 6)
			require.Greater(t, w.states, 50_000)
			require.Positive(t, w.opened)
			require.Positive(t, w.kept)
		})
	}
}

func unschedulable(n *corev1.Node) bool        { return n.Spec.Unschedulable }
func setUnschedulable(n *corev1.Node, on bool) { n.Spec.Unschedulable = on }

// cordonWorld is two owners and a human who care for one mark.
type cordonWorld struct {
	t                    *testing.T
	a, b                 nodeops.Cordon
	see                  func(*corev1.Node) bool
	flip                 func(*corev1.Node, bool)
	states, opened, kept int
}

// cordonHistory is a node, and what an observer who sees every act knows about it.
type cordonHistory struct {
	node *corev1.Node
	acts []string
	// holders are the owners with a claim.
	holders []string
	// byHuman says that a human was the last to put the mark on; unseen that a human took
	// away what a cordon had set, and no cordon could see that yet.
	byHuman, unseen bool
}

func (w *cordonWorld) play(h cordonHistory, more int) {
	w.states++
	if more == 0 {
		return
	}
	for _, f := range []nodeops.Cordon{w.a, w.b} {
		w.play(w.cordon(h, f), more-1)
		w.play(w.uncordon(h, f.Owner), more-1)
	}
	for _, on := range []bool{true, false} {
		w.play(w.human(h, on), more-1)
	}
}

func (h cordonHistory) after(act string, node *corev1.Node) cordonHistory {
	h.acts, h.node = append(slices.Clone(h.acts), act), node
	return h
}

func (w *cordonWorld) human(h cordonHistory, on bool) cordonHistory {
	next := h.after(fmt.Sprintf("human %t", on), h.node.DeepCopy())
	w.flip(next.node, on)
	switch was := w.see(h.node); {
	case was == on:
	case on:
		next.byHuman, next.unseen = !h.unseen, false // what looks as if a cordon had set it is a cordon's
	default:
		next.unseen, next.byHuman = !h.byHuman, false
	}
	return next
}

func (w *cordonWorld) cordon(h cordonHistory, f nodeops.Cordon) cordonHistory {
	node, changed, err := f.Set(h.node, t0)
	next := h.after("cordon "+f.Owner, node)
	w.require(err == nil && f.Stands(node), next, "it stands")
	w.require(changed == !f.Stands(h.node), next, "it is written once")
	w.require(w.see(node) || !w.see(h.node), next, "a cordon takes nothing away")
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

func (w *cordonWorld) uncordon(h cordonHistory, owner string) cordonHistory {
	node, changed := nodeops.Uncordon(h.node, owner)
	next := h.after("uncordon "+owner, node)
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

// cares reports whether the cordon of an owner has the mark.
func (w *cordonWorld) cares(owner string) bool {
	f := w.a
	if owner == w.b.Owner {
		f = w.b
	}
	node, _, _ := f.Set(crowdedNode(), t0)
	return w.see(node)
}

func (w *cordonWorld) require(ok bool, h cordonHistory, law string) {
	if !ok {
		w.t.Fatalf("%s: %v\n%s", law, h.acts, cmp.Diff(crowdedNode(), h.node))
	}
}

func FuzzCordons_Annotations(f *testing.F) {
	f.Add("a", `{"marks":["unschedulable"]}`, "unschedulable", "example.com/drain", uint8(7))
	f.Add("b", `{"marks":["taint/x","later"]}`, "taint/x,later,,", "x", uint8(0))
	f.Add("a.b", `{"since":"2026-03-01T12:00:00Z","marks":["out-of-service"]}`, "out-of-service,unschedulable", "", uint8(3))
	f.Add("", "null", " , ", "node.kubernetes.io/unschedulable", uint8(1))
	f.Fuzz(func(t *testing.T, owner, value, memory, key string, marks uint8) {
		node := crowdedNode()
		node.Spec.Unschedulable = marks&8 > 0
		node.Annotations[claimPrefix+"b"] = value
		node.Annotations[marksKey] = memory
		cordon := nodeops.Cordon{Owner: owner, Taint: key, ExcludeFromLoadBalancers: marks&1 > 0, OutOfService: marks&2 > 0}
		if cordon.Validate() != nil {
			return
		}
		others := node.DeepCopy()
		got := cordoned(t, node, cordon)
		for _, c := range nodeops.Cordons(got) {
			require.True(t, c.Unreadable || len(c.Marks) > 0)
		}
		got = uncordoned(t, got, owner)
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
