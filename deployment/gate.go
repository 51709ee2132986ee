// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A Gate is asked about a machine that was chosen to be replaced or updated. It
// has to be a pure function of the choice, as it may be asked any number of
// times; it must not change what it is given.
type Gate func(Choice) Answer

// A Choice is what a [Gate] is asked about.
type Choice struct {
	// Deployment whose roll-out it is, and the set that has the machine.
	Deployment *v1alpha1.MachineDeployment
	Set        *v1alpha1.MachineSet
	// Machine that was chosen.
	Machine *v1alpha1.Machine
	// Node of the machine; nil if it has none or nobody has looked at it.
	Node *corev1.Node
	// InPlace says that the machine is to be updated, not replaced.
	InPlace bool
	// Now is the time of the decision.
	Now time.Time
}

// An Answer is what a [Gate] says. The zero Answer is to wait.
type Answer struct {
	// Verdict says whether the machine may be worked on.
	Verdict Verdict
	// Reason and Message tell why not; the message is for people.
	Reason  string
	Message string
	// Until is when to ask again; zero if a change will tell. It is not used with
	// Allow and Deny.
	Until time.Time
}

// A Verdict is the answer of a [Gate] in a word. Anything but Allow is no.
type Verdict string

const (
	// Allow lets the machine be replaced or updated.
	Allow Verdict = "Allow"
	// Deny keeps the machine; another may be chosen. The gate is asked again when
	// something changes; one whose answer time alone can change says Wait.
	Deny Verdict = "Deny"
	// Wait keeps the machine for now; another may be chosen. The empty Verdict is
	// the same.
	Wait Verdict = "Wait"
)

// SelectedByLabel is the gate of the reference system's updates in place, for any
// strategy: it allows a machine whose Node somebody has labelled as selected for
// an update, and waits for all others.
func SelectedByLabel(c Choice) Answer {
	switch {
	case c.Node == nil:
		return Answer{Verdict: Wait, Reason: "NodeUnknown", Message: "its Node is not known"}
	case c.Node.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] == "true":
		return Answer{Verdict: Allow}
	default:
		return Answer{Verdict: Wait, Reason: "NotSelected", Message: "its Node is not labelled " + v1alpha1.LabelKeyNodeSelectedForUpdate}
	}
}

// ask asks all gates about a machine, and holds it if one says no. Each machine is
// asked about once in a pass.
func (c *pass) ask(a *account, m *v1alpha1.Machine, inPlace bool) bool {
	gates := c.gates()
	if len(gates) == 0 {
		return true
	}
	if allowed, asked := c.asked[m.UID]; asked {
		return allowed
	}
	if c.asked == nil {
		c.asked = map[types.UID]bool{}
	}
	node, _ := c.nodeOf(m)
	choice := Choice{Deployment: c.d, Set: a.set, Machine: m, Node: node, InPlace: inPlace, Now: c.now}
	for _, gate := range gates {
		if answer := gate(choice); answer.Verdict != Allow {
			c.refused(m, answer)
			c.asked[m.UID] = false
			return false
		}
	}
	c.asked[m.UID] = true
	return true
}

// maxRefusals is how many refusals of gates are told one by one.
const maxRefusals = 20

// refused holds a machine that a gate keeps. What is beyond a number that a person
// would read is counted in one hold.
func (c *pass) refused(m *v1alpha1.Machine, answer Answer) {
	h := machinist.Hold{Subject: m.Name, Reason: ReasonGate, Message: answer.Reason + ": " + answer.Message}
	if answer.Verdict != Deny {
		h.Until = answer.Until
	}
	if !h.Until.IsZero() && !h.Until.After(c.now) {
		h.Until = c.now.Add(c.policy.recheck())
	}
	c.refusals++
	more := c.refusals - maxRefusals
	if more == 1 {
		c.refusedMore = len(c.out.Holds)
	}
	if more <= 1 {
		c.out.Holds = append(c.out.Holds, h)
	}
	if more >= 1 {
		last := &c.out.Holds[c.refusedMore]
		last.Subject, last.Message = c.d.Name, fmt.Sprintf("gates keep %d more machines", more)
		if !h.Until.IsZero() && (last.Until.IsZero() || h.Until.Before(last.Until)) {
			last.Until = h.Until
		}
	}
}

func (c *pass) gates() []Gate {
	var gates []Gate
	for _, g := range c.policy.Gates {
		if g != nil {
			gates = append(gates, g)
		}
	}
	if c.policy.ByLabel {
		gates = append(gates, SelectedByLabel)
	}
	return gates
}
