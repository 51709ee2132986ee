// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/nodeops"
)

func TestNormalizeProviderID_Table_Canonical(t *testing.T) {
	for id, want := range map[string]string{
		"aws:///eu-west-1a/i-0abc":     "aws://eu-west-1a/i-0abc",
		"AWS:////eu-west-1a//i-0abc/ ": "aws://eu-west-1a/i-0abc",
		"azure:///subscriptions/S/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/VM-1": "azure://subscriptions/s/resourcegroups/rg/providers/microsoft.compute/virtualmachines/vm-1",
		"/a//b/":                   "a/b",
		"equinix-metal+x.2://Q":    "equinix-metal+x.2://Q",
		"://x":                     ":/x",
		" \t\n":                    "",
		"":                         "",
		"aws://":                   "",
		"aws:// / /":               "",
		"azure:///ÄB":              "azure://Äb",
		"azure:///\xffA":           "azure://\xffa",
		"ironcore-metal://ns/a /b": "ironcore-metal://ns/a/b",
	} {
		require.Equal(t, want, nodeops.NormalizeProviderID(id), "%q", id)
	}
}

func TestSameInstance_Table_Result(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"aws:///eu-west-1a/i-0abc", "aws:///eu-west-1/i-0abc", true},
		{"aws:///eu-west-1a/i-0abc", "i-0abc", true},
		{"aws:///eu-west-1a/i-0abc/", "aws:///eu-west-1a/i-0ab", false},
		{"aws:///eu-west-1a/i-0abc", "aws:///eu-west-1b/i-0abc", true}, // an ID is unique in its region
		{"aws:///eu-west-1a/i-0abc", "aws:///eu-west-2/i-0abc", false},
		{"aws:///eu-west-1a/i-0abc", "gce:///eu-west-1a/i-0abc", false},
		{"aws:///eu-west-1a/i-0abc", "0abc", false},
		{"azure:///x/VM", "azure:///X/vm", true},
		{"azure:///x/VM", "azure:///y/vm", false},
		{"azure:///x/VM", "VM", true},
		{"azure:///s/virtualMachineScaleSets/pool-a/virtualMachines/0", "azure:///s/virtualMachineScaleSets/pool-b/virtualMachines/0", false},
		{"azure:///s/virtualMachineScaleSets/pool-a/virtualMachines/0", "azure:///s/virtualMachineScaleSets/pool/virtualMachines/0", false},
		{"azure:///s/virtualMachineScaleSets/pool-a/virtualMachines/0", "azure:///s/virtualMachineScaleSets/pool-a/virtualMachines/10", false},
		{"gce://p/z/VM", "gce://p/z/vm", false},
		{"gce://p/z/n", "gce:///p/z/n", true},
		{"gce://p/z/n", "z/n", true},
		{"gce://p/z1/n", "gce://p/z2/n", false},
		{"openstack:///uuid", "openstack://region/uuid", true},
		{"", "", false},
		{"aws:///", "gce:///", false},
		{"x", "", false},
	} {
		require.Equal(t, tc.want, nodeops.SameInstance(tc.a, tc.b), "%q %q", tc.a, tc.b)
		require.Equal(t, tc.want, nodeops.SameInstance(tc.b, tc.a), "%q %q", tc.b, tc.a)
	}
}

func FuzzNormalizeProviderID(f *testing.F) {
	for _, s := range []string{"aws:///z/i-1", "AZURE:///A/b", " a://b://c", "://", "A:/", "/ /", "a: //b", "", "é://É"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		got := nodeops.NormalizeProviderID(id)
		require.Equal(t, got, nodeops.NormalizeProviderID(got), "normalizing twice is normalizing once")
		if !strings.HasSuffix(got, ":") { // "a:/" is a path, and "a://" is a scheme
			require.Equal(t, got, nodeops.NormalizeProviderID(" "+id+"/ "), "space and slashes at the end mean nothing")
		}
		require.Equal(t, got != "", nodeops.SameInstance(id, got), "an id is the same instance as its canonical spelling")
		require.False(t, strings.HasSuffix(got, "/"))
	})
}

// named returns a node with a name and a provider id.
func named(name, id string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}
}

func TestMatch_Table_Result(t *testing.T) {
	const a, b = "aws:///eu-west-1a/i-a", "aws:///eu-west-1a/i-b"
	for name, tc := range map[string]struct {
		node       *corev1.Node
		candidates []nodeops.Candidate
		want       string
	}{
		"empty matches nothing": {named("", ""), []nodeops.Candidate{{Name: "m"}}, "NoMatch"},
		"an id of slashes is empty": {
			named("", "aws:///"), []nodeops.Candidate{{Name: "m", ProviderID: "aws:///"}}, "NoMatch",
		},
		"an empty id does not match an empty id": {named("n", ""), []nodeops.Candidate{{Name: "m"}}, "NoMatch"},
		"by node name":                           {named("n", ""), []nodeops.Candidate{{"x", "n2", b}, {"m", "n", a}}, "NodeName: m"},
		"by node name, id unknown":               {named("n", a), []nodeops.Candidate{{"m", "n", ""}}, "NodeName: m"},
		"region instead of zone":                 {named("n", a), []nodeops.Candidate{{"m", "n", "aws:///eu-west-1/i-a"}}, "NodeName: m"},
		"late label, by id":                      {named("n", a), []nodeops.Candidate{{"x", "n2", b}, {"m", "", "AWS://eu-west-1a/i-a/"}}, "ProviderID: m"},
		"region is not enough":                   {named("n", a), []nodeops.Candidate{{"m", "", "aws:///eu-west-1/i-a"}}, "NoMatch"},
		"case variants on azure":                 {named("n", "azure:///S/VM"), []nodeops.Candidate{{"m", "", "azure:///s/vm"}}, "ProviderID: m"},
		"two with the node name":                 {named("n", a), []nodeops.Candidate{{"y", "n", a}, {"x", "n", b}}, "Ambiguous: x, y"},
		"two with the id":                        {named("n", a), []nodeops.Candidate{{"y", "", a}, {"x", "", a}}, "Ambiguous: x, y"},
		"the node name used again":               {named("n", a), []nodeops.Candidate{{"old", "n", b}}, "Contradiction: old"},
		"old and new by that name":               {named("n", a), []nodeops.Candidate{{"old", "n", b}, {"new", "", a}}, "Contradiction: new, old"},
		"name here and id there":                 {named("n", a), []nodeops.Candidate{{"x", "n", ""}, {"y", "", a}}, "Contradiction: x, y"},
		"the id with another name":               {named("n", a), []nodeops.Candidate{{"m", "n2", a}}, "Contradiction: m"},
		"a node without a name yet":              {named("", a), []nodeops.Candidate{{"m", "n2", a}}, "ProviderID: m"},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.candidates)
			x := nodeops.NewIndex(tc.candidates)
			got := x.Match(tc.node)
			require.Equal(t, tc.want, got.String())
			require.Equal(t, strings.HasPrefix(tc.want, "NodeName") || strings.HasPrefix(tc.want, "ProviderID"), got.Found())
			require.Equal(t, before, tc.candidates)
			for i := range tc.candidates {
				tc.candidates[i] = nodeops.Candidate{Name: "scribble", NodeName: "n"}
			}
			require.Equal(t, got, x.Match(tc.node), "the index keeps no reference")
		})
	}
	var none *nodeops.Index
	for _, x := range []*nodeops.Index{none, {}, nodeops.NewIndex(nil)} {
		require.Equal(t, "NoMatch", x.Match(named("n", "x")).Reason)
		require.Equal(t, "NoMatch", x.Match(nil).Reason)
	}
	require.False(t, nodeops.MatchResult{}.Found(), "the zero result is no match")
}

// TestMatch_Random_Laws asserts that the order of the candidates does not matter, and a match is
// never one of an empty ID.
func TestMatch_Random_Laws(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	ids := []string{"", "aws:///", "aws:///z/a", "aws://z//a/", "aws:///y/a", "aws:///z/b", "azure:///z/A", "azure:///Z/a", "a"}
	for range 5000 {
		candidates := make([]nodeops.Candidate, rng.IntN(5))
		for i := range candidates {
			candidates[i] = nodeops.Candidate{Name: fmt.Sprint("m", i), NodeName: pick(rng, "", "n1", "n2", "n3"), ProviderID: pick(rng, ids...)}
		}
		node := named(pick(rng, "", "n1", "n2"), pick(rng, ids...))
		got := nodeops.NewIndex(candidates).Match(node)
		info := fmt.Sprintf("%v %v %+v -> %v", node.Name, node.Spec.ProviderID, candidates, got)

		other := slices.Clone(candidates)
		rng.Shuffle(len(other), func(i, k int) { other[i], other[k] = other[k], other[i] })
		require.Equal(t, got, nodeops.NewIndex(other).Match(node), info)

		id := nodeops.NormalizeProviderID(node.Spec.ProviderID)
		byName := func(c nodeops.Candidate) bool { return node.Name != "" && c.NodeName == node.Name }
		byID := func(c nodeops.Candidate) bool { return id != "" && nodeops.NormalizeProviderID(c.ProviderID) == id }
		for _, c := range candidates {
			switch matched := slices.Contains(got.Names, c.Name); {
			case matched:
				require.True(t, byName(c) || byID(c), info)
			case got.Found():
				require.False(t, byName(c), "another one names the node: "+info)
				require.False(t, byID(c), "another one has the id: "+info)
			case len(got.Names) == 0:
				require.False(t, byName(c) || byID(c), info)
			}
		}
	}
}

var (
	sinkConditions []corev1.NodeCondition
	sinkMatch      nodeops.MatchResult
	sinkIndex      *nodeops.Index
)

func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		candidates := make([]nodeops.Candidate, n)
		for i := range candidates {
			candidates[i] = nodeops.Candidate{Name: fmt.Sprint("m", i), NodeName: fmt.Sprint("n", i), ProviderID: fmt.Sprint("aws:///eu-west-1a/i-", i)}
		}
		node := named(candidates[n/2].NodeName, candidates[n/2].ProviderID)
		b.Run(fmt.Sprintf("newindex/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sinkIndex = nodeops.NewIndex(candidates)
			}
		})
		b.Run(fmt.Sprintf("index/%d", n), func(b *testing.B) {
			index := nodeops.NewIndex(candidates)
			b.ReportAllocs()
			for b.Loop() {
				sinkMatch = index.Match(node)
			}
		})
	}
}
