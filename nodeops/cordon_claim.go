// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// claimAnnotationPrefix is the prefix of the annotations of claims. The owner follows.
const claimAnnotationPrefix = "cordon.machinist.dev/"

// Claim is what one owner holds on a Node, as its annotation says.
type Claim struct {
	// Owner is the owner of the claim.
	Owner string
	// Reason is that of the [Cordon].
	Reason string
	// Since is when the claim was made. Zero means that the annotation does not say.
	Since time.Time
	// Marks are the marks that the claim holds, sorted.
	Marks []string
	// Missing are the marks that are not on the Node, because another writer removed them.
	// [Cordon.Set] restores them.
	Missing []string
	// Unreadable means that the annotation cannot be read. Its owner then holds all marks.
	Unreadable bool
}

// Unschedulable reports whether the claim keeps the Node unschedulable.
func (c Claim) Unschedulable() bool { return c.holds(markUnschedulable) }

// holds reports whether the claim keeps a mark on the Node.
func (c Claim) holds(m string) bool { return c.Unreadable || slices.Contains(c.Marks, m) }

// holdsAll reports whether the claim holds all of marks.
func (c Claim) holdsAll(marks []string) bool {
	return !slices.ContainsFunc(marks, func(m string) bool { return !c.holds(m) })
}

// Cordons returns the claims on the node, sorted by owner. A nil node has none.
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

// claimText is the JSON of a claim.
type claimText struct {
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Marks  []string  `json:"marks"`
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

// missingMarks returns the marks that are not on the node.
func missingMarks(node *corev1.Node, marks []string) []string {
	var missing []string
	for _, m := range marks {
		if !mark(m).on(node) {
			missing = append(missing, m)
		}
	}
	return missing
}

// store writes the claim to the node.
func (c Claim) store(node *corev1.Node) {
	text, err := json.Marshal(claimText{Reason: c.Reason, Since: c.Since, Marks: c.Marks})
	if err != nil { // RFC 3339 cannot express the year
		text, err = json.Marshal(claimText{Reason: c.Reason, Marks: c.Marks})
	}
	if err != nil {
		text = nil // unreadable, which holds all marks
	}
	node.Annotations = setKey(node.Annotations, claimAnnotationPrefix+c.Owner, string(text))
}
