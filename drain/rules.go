// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// PodRule is a rule as data, such as a configuration file or an object may hold: what
// a MachineDrainRule of Cluster API says of pods. Which machines it is for is the
// caller's to know.
type PodRule struct {
	// Name of the rule, which also orders it among others.
	Name string
	// Select are the pods that it is for: those that any of the selectors selects.
	// Empty means all pods.
	Select []PodSelector
	// Behavior is any but [BehaviorNote].
	Behavior Behavior
	// Order is the wave of the pods; nil leaves that to the policy. Cluster API means 0
	// by it.
	Order *int32
}

// PodSelector selects pods by their labels and those of their namespace.
type PodSelector struct {
	// Pods selects by the labels of pods. Nil and empty select all.
	Pods *metav1.LabelSelector
	// Namespaces selects by the labels of namespaces. Nil and empty select all.
	Namespaces *metav1.LabelSelector
}

// RuleError says what is wrong with a [PodRule].
type RuleError struct {
	// Rule is its name.
	Rule string
	// Problem in words.
	Problem string
	// Err is what a selector says, or nil.
	Err error
}

// Error returns the name of the rule and what is wrong with it.
func (e *RuleError) Error() string {
	s := "drain: rule " + strconv.Quote(e.Rule) + ": " + e.Problem
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns what a selector says.
func (e *RuleError) Unwrap() error { return e.Err }

// CompileRules makes one [Rule] of rules that are data. They are asked in the order of
// their names, and the first that selects a pod rules. Without any there is no opinion.
//
// If a rule selects by labels of a namespace which is not known, the pod is blocked
// with [ReasonNotEvaluated] rather than guessed at, unless an earlier rule has decided.
// The name of the namespace, which Kubernetes keeps in the label
// kubernetes.io/metadata.name, is always known.
//
// The error joins a *[RuleError] for each problem; then there is no rule.
func CompileRules(rules ...PodRule) (Rule, error) {
	sorted := slices.Clone(rules)
	slices.SortStableFunc(sorted, func(a, b PodRule) int { return cmp.Compare(a.Name, b.Name) })
	compiled := make([]compiledRule, len(sorted))
	var problems []error
	for i, rule := range sorted {
		if i > 0 && rule.Name == sorted[i-1].Name {
			problems = append(problems, &RuleError{Rule: rule.Name, Problem: "another rule has the same name"})
		}
		var err error
		if compiled[i], err = compileRule(rule); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return func(s Subject, _ time.Time) (Opinion, bool) {
		if s.Pod == nil {
			return Opinion{}, false
		}
		for i := range compiled {
			if op, ok := compiled[i].opinion(s); ok {
				return op, true
			}
		}
		return Opinion{}, false
	}, nil
}

// compiledRule is a rule whose selectors have been read.
type compiledRule struct {
	name      string
	selectors []compiledSelector
	behavior  Behavior
	order     *int32
	message   string
}

func compileRule(rule PodRule) (compiledRule, error) {
	c := compiledRule{name: rule.Name, behavior: rule.Behavior, message: "rule " + strconv.Quote(rule.Name)}
	var problems []error
	problem := func(text string, err error) {
		problems = append(problems, &RuleError{Rule: rule.Name, Problem: text, Err: err})
	}
	if rule.Name == "" {
		problem("it has no name", nil)
	}
	switch rule.Behavior {
	case BehaviorDrain, BehaviorWaitCompleted, BehaviorSkip, BehaviorBlock:
	default:
		problem("the behavior "+strconv.Quote(string(rule.Behavior))+" is not known", nil)
	}
	if rule.Order != nil {
		c.order = new(*rule.Order)
	}
	for _, pair := range rule.Select {
		pods, err := compileLabels(pair.Pods)
		if err != nil {
			problem("its selector of pods", err)
		}
		namespaces, err := compileLabels(pair.Namespaces)
		if err != nil {
			problem("its selector of namespaces", err)
		}
		c.selectors = append(c.selectors, newCompiledSelector(pods, namespaces))
	}
	return c, errors.Join(problems...)
}

// compileLabels reads a selector; nil selects everything.
func compileLabels(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	compiled, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing(), err
	}
	return compiled, nil
}

// opinion returns that of the rule, if it selects the pod.
func (c *compiledRule) opinion(s Subject) (Opinion, bool) {
	best := no
	if len(c.selectors) == 0 {
		best = yes
	}
	for i := range c.selectors {
		best = max(best, c.selectors[i].selects(s))
	}
	switch best {
	case yes:
		op := Opinion{Behavior: c.behavior, Message: c.message}
		if c.order != nil {
			op.Order = new(*c.order)
		}
		return op, true
	case unknown:
		message := c.message + " selects by labels of namespace " + s.Pod.Namespace + ", which is not known"
		return Opinion{Behavior: BehaviorBlock, Reason: ReasonNotEvaluated, Message: message}, true
	default:
		return Opinion{}, false
	}
}

// selected says whether a pod is; the greatest counts.
type selected int

const (
	no selected = iota
	unknown
	yes
)

// compiledSelector is a selector of pods that has been read.
type compiledSelector struct {
	pods, namespaces labels.Selector
	// byName is the part of namespaces that only needs their names, onlyName says that
	// there is no other.
	byName   labels.Selector
	onlyName bool
}

func newCompiledSelector(pods, namespaces labels.Selector) compiledSelector {
	c := compiledSelector{pods: pods, namespaces: namespaces, byName: labels.Everything(), onlyName: true}
	requirements, _ := namespaces.Requirements()
	for _, requirement := range requirements {
		if requirement.Key() == corev1.LabelMetadataName {
			c.byName = c.byName.Add(requirement)
		} else {
			c.onlyName = false
		}
	}
	return c
}

func (c *compiledSelector) selects(s Subject) selected {
	if !c.pods.Matches(labels.Set(s.Pod.Labels)) {
		return no
	}
	switch {
	case s.Namespace != nil:
		if c.namespaces.Matches(labels.Set(s.Namespace.Labels)) {
			return yes
		}
		return no
	case !c.byName.Empty() && !c.byName.Matches(labels.Set{corev1.LabelMetadataName: s.Pod.Namespace}):
		return no
	case c.onlyName:
		return yes
	default:
		return unknown
	}
}
