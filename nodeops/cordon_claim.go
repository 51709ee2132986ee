// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// claimAnnotationPrefix is what the annotations of claims begin with. The owner follows.
const claimAnnotationPrefix = "cordon.machinist.dev/"

// Claim is what one owner of cordons holds on a Node, as its annotation says.
type Claim struct {
	// Owner of the claim.
	Owner string
	// Reason it gave, for people.
	Reason string
	// Since when it has the claim. Zero means that this is not known.
	Since time.Time
	// Marks that it holds, sorted. They stay as long as it does.
	Marks []Mark
	// Missing are those of them that are not on the Node any more, because somebody
	// else took them away: the cordon is broken. Setting it again repairs it.
	Missing []Mark
	// Unreadable says that the annotation makes no sense. Its owner then holds every
	// mark that there is.
	Unreadable bool
}

// Holds says whether the claim keeps a mark from being taken away.
func (c Claim) Holds(m Mark) bool { return c.Unreadable || slices.Contains(c.Marks, m) }

// holdsAll says whether the claim holds each of marks.
func (c Claim) holdsAll(marks []Mark) bool {
	return !slices.ContainsFunc(marks, func(m Mark) bool { return !c.Holds(m) })
}

// Cordons returns the claims on the node, by owner. A nil node has none.
func Cordons(node *corev1.Node) []Claim {
	if node == nil {
		return nil
	}
	var claims []Claim
	for key := range node.Annotations {
		if owner, ok := strings.CutPrefix(key, claimAnnotationPrefix); ok && owner != "" {
			claim, _ := claimOf(node, owner)
			claims = append(claims, claim)
		}
	}
	slices.SortFunc(claims, func(a, b Claim) int { return strings.Compare(a.Owner, b.Owner) })
	return claims
}

// claimText is the claim as its annotation spells it.
type claimText struct {
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Marks  []Mark    `json:"marks"`
}

// claimOf returns the claim of an owner, and whether there is one.
func claimOf(node *corev1.Node, owner string) (Claim, bool) {
	value, ok := node.Annotations[claimAnnotationPrefix+owner]
	if !ok || owner == "" {
		return Claim{Owner: owner}, false
	}
	var text claimText
	if err := json.Unmarshal([]byte(value), &text); err != nil || len(text.Marks) == 0 {
		return Claim{Owner: owner, Unreadable: true, Missing: missingMarks(node, cordonMarks(node))}, true
	}
	slices.Sort(text.Marks)
	marks := slices.Compact(text.Marks)
	return Claim{Owner: owner, Reason: text.Reason, Since: text.Since, Marks: marks, Missing: missingMarks(node, marks)}, true
}

// missingMarks returns those of marks that are not on the node.
func missingMarks(node *corev1.Node, marks []Mark) []Mark {
	var missing []Mark
	for _, m := range marks {
		if !m.on(node) {
			missing = append(missing, m)
		}
	}
	return missing
}

// store writes the claim to the node.
func (c Claim) store(node *corev1.Node) {
	text, err := json.Marshal(claimText{Reason: c.Reason, Since: c.Since, Marks: c.Marks})
	if err != nil { // a year that RFC 3339 cannot say
		text, err = json.Marshal(claimText{Reason: c.Reason, Marks: c.Marks})
	}
	if err != nil {
		text = nil // which holds everything
	}
	node.Annotations = setKey(node.Annotations, claimAnnotationPrefix+c.Owner, string(text))
}
