// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machinist-dev/machinist"
)

// budget is a PodDisruptionBudget in a step.
type budget struct {
	*policyv1.PodDisruptionBudget
	// pairs are labels that all pods of the budget have. With a nil selector they are the whole
	// selector.
	pairs    []labelPair
	selector labels.Selector
	// version is the name and the resource version.
	version string
	// left is how many more pods may be evicted.
	left int32
	// reason and message are why it refuses evictions. They are computed when needed.
	reason  machinist.Reason
	message string
}

// budgetIndex finds the budgets of pods. It matches a budget only with pods that have a label of
// its selector, and once for all pods with the same labels. The zero budgetIndex has no budgets.
type budgetIndex struct {
	all []budget // by namespace and name
	// byLabel are the budgets that cover only pods with this label. rest are the other budgets of a
	// namespace.
	byLabel map[podLabel][]*budget
	rest    map[string][]*budget
	// found are the budgets of pods that were looked up, by namespace and labels.
	found map[string]*coverage
	key   []byte   // of the pod that was looked up last
	names []string // of its labels
}

// podLabel is a label of the pods of a namespace.
type podLabel struct {
	namespace string
	labelPair
}

// coverage are the budgets that cover pods with the same labels, by name.
type coverage struct {
	budgets []*budget
	// version, message and rows are computed when needed.
	version, message string
	rows             []Budget
}

// newBudgetIndex returns the index of the budgets. Of several copies of a budget the newest counts.
func newBudgetIndex(list List[*policyv1.PodDisruptionBudget]) *budgetIndex {
	if len(list.Items) == 0 {
		return &budgetIndex{}
	}
	items := slices.DeleteFunc(slices.Clone(list.Items), func(b *policyv1.PodDisruptionBudget) bool { return b == nil })
	slices.SortFunc(items, func(a, b *policyv1.PodDisruptionBudget) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), compareVersions(b.ResourceVersion, a.ResourceVersion))
	})
	items = slices.CompactFunc(items, func(a, b *policyv1.PodDisruptionBudget) bool { return a.Namespace == b.Namespace && a.Name == b.Name })
	x := &budgetIndex{all: make([]budget, 0, len(items)), found: map[string]*coverage{}}
	pairs := make([]labelPair, 0, len(items))
	for _, item := range items {
		b := budget{PodDisruptionBudget: item, version: item.Name + "@" + item.ResourceVersion, left: allowed(item)}
		from := len(pairs)
		b.selector, pairs = compileSelector(item.Spec.Selector, pairs)
		b.pairs = pairs[from:]
		x.all = append(x.all, b)
	}
	x.index()
	return x
}

// index adds each budget to byLabel, under the label of its selector that the fewest budgets share.
func (x *budgetIndex) index() {
	shared := make(map[podLabel]int, len(x.all))
	for i := range x.all {
		for _, pair := range x.all[i].pairs {
			shared[podLabel{x.all[i].Namespace, pair}]++
		}
	}
	x.byLabel, x.rest = make(map[podLabel][]*budget, len(x.all)), map[string][]*budget{}
	for i := range x.all {
		b := &x.all[i]
		if len(b.pairs) == 0 {
			x.rest[b.Namespace] = append(x.rest[b.Namespace], b)
			continue
		}
		rarest := slices.MinFunc(b.pairs, func(p, q labelPair) int {
			return cmp.Or(cmp.Compare(shared[podLabel{b.Namespace, p}], shared[podLabel{b.Namespace, q}]), cmp.Compare(p.key, q.key))
		})
		label := podLabel{b.Namespace, rarest}
		x.byLabel[label] = append(x.byLabel[label], b)
	}
}

// of returns the budgets that cover a pod.
func (x *budgetIndex) of(pod *corev1.Pod) *coverage {
	if len(x.all) == 0 {
		return &coverage{}
	}
	x.setKey(pod)
	if known := x.found[string(x.key)]; known != nil {
		return known
	}
	found := &coverage{}
	for _, b := range x.candidates(pod) {
		if b.covers(pod) {
			found.budgets = append(found.budgets, b)
		}
	}
	slices.SortFunc(found.budgets, func(a, b *budget) int { return cmp.Compare(a.Name, b.Name) })
	x.found[string(x.key)] = found
	return found
}

// candidates returns the budgets that may cover a pod, in any order.
func (x *budgetIndex) candidates(pod *corev1.Pod) []*budget {
	var may []*budget
	for key, value := range pod.Labels {
		may = append(may, x.byLabel[podLabel{pod.Namespace, labelPair{key, value}}]...)
	}
	return append(may, x.rest[pod.Namespace]...)
}

// setKey sets the key of a pod: its namespace and labels, each with its length.
func (x *budgetIndex) setKey(pod *corev1.Pod) {
	x.names, x.key = x.names[:0], x.key[:0]
	for name := range pod.Labels {
		x.names = append(x.names, name)
	}
	slices.Sort(x.names)
	x.addKey(pod.Namespace)
	for _, name := range x.names {
		x.addKey(name)
		x.addKey(pod.Labels[name])
	}
}

func (x *budgetIndex) addKey(part string) {
	x.key = append(strconv.AppendInt(x.key, int64(len(part)), 10), ':')
	x.key = append(x.key, part...)
}

// labelPair is a label that a pod must have.
type labelPair struct{ key, value string }

// compileSelector appends the labels that all pods of a selector have. It returns nil if they are
// the whole selector. An invalid selector selects no pod.
func compileSelector(s *metav1.LabelSelector, pairs []labelPair) (labels.Selector, []labelPair) {
	if s == nil {
		return labels.Nothing(), pairs
	}
	for key, value := range s.MatchLabels {
		pairs = append(pairs, labelPair{key, value})
	}
	if len(s.MatchExpressions) == 0 {
		return nil, pairs
	}
	for _, e := range s.MatchExpressions {
		if e.Operator == metav1.LabelSelectorOpIn && len(e.Values) == 1 {
			pairs = append(pairs, labelPair{e.Key, e.Values[0]})
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		selector = labels.Nothing()
	}
	return selector, pairs
}

// covers reports whether the budget covers a pod of its namespace.
func (b *budget) covers(pod *corev1.Pod) bool {
	if b.selector != nil {
		return b.selector.Matches(labels.Set(pod.Labels))
	}
	for _, pair := range b.pairs {
		if value, has := pod.Labels[pair.key]; !has || value != pair.value {
			return false
		}
	}
	return true
}

// versions returns the names and resource versions of the budgets.
func (c *coverage) versions() string {
	if c.version == "" && len(c.budgets) > 0 {
		all := make([]string, len(c.budgets))
		for i, b := range c.budgets {
			all[i] = b.version
		}
		c.version = strings.Join(all, ",")
	}
	return c.version
}

// shown returns the budgets for a row.
func (c *coverage) shown() []Budget {
	if c.rows == nil && len(c.budgets) > 0 {
		c.rows = make([]Budget, len(c.budgets))
		for i, b := range c.budgets {
			c.rows[i] = b.shown()
		}
	}
	return c.rows
}

// mostBudgetNames is how many budgets a message names.
const mostBudgetNames = 5

// overlapping returns the message about several budgets that select one pod.
func (c *coverage) overlapping() string {
	if c.message == "" {
		var names []string
		for _, b := range c.budgets[:min(len(c.budgets), mostBudgetNames)] {
			names = append(names, b.Namespace+"/"+b.Name)
		}
		if more := len(c.budgets) - len(names); more > 0 {
			names = append(names, fmt.Sprintf("%d more", more))
		}
		c.message = "budgets " + strings.Join(names, " and ") + " select the pod; the API server evicts no pod with several budgets"
	}
	return c.message
}
