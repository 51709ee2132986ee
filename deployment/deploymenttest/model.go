// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// A Model says how the machines of a [World] behave, and how its controllers
// decide. The zero Model is a world in which everything works. Its functions have
// to be functions of their arguments, or follow a seeded source of random numbers,
// for two runs to be the same. They must not modify what they are given.
type Model struct {
	// Start is when the world begins. Zero: 1 January 2000, UTC.
	Start time.Time
	// Policy and SetPolicy are how the controllers decide.
	Policy    deployment.Policy
	SetPolicy machineset.Policy
	// NoCluster says that there is no cluster which machines join: they are
	// available as soon as they have come up, and there are no Nodes.
	NoCluster bool

	// Create is asked when the provider is to make the VM of a machine. An error is
	// one of the provider (see package codes): the machine is in CrashLoopBackOff,
	// and the provider is asked again after Retry. Nil: it always succeeds.
	Create func(m *v1alpha1.Machine) error
	// Retry is how long it takes until the provider is asked again. Zero and
	// negative: 1 minute.
	Retry time.Duration
	// Join says how long a machine takes from its VM to being available; false: it
	// never is. Nil: 2 minutes.
	Join func(m *v1alpha1.Machine) (time.Duration, bool)
	// CreationTimeout is after how long a machine that has not joined is Failed.
	// Zero: never.
	CreationTimeout time.Duration
	// Leave says how long a machine takes from its deletion to being gone. Nil: 1
	// minute.
	Leave func(m *v1alpha1.Machine) time.Duration
	// Update says how long an update in place takes from the selection of the Node;
	// false: it fails after that time. Nil: 5 minutes.
	Update func(m *v1alpha1.Machine) (time.Duration, bool)
	// HealthTimeout is how long after a failed update in place a machine is Failed.
	// Zero: never.
	HealthTimeout time.Duration

	// Lag is asked, before a controller decides, how many of the writes of a kind its
	// cache does not show yet, at most. The name of a controller is that of the
	// deployment or set. Writes of one kind come in their order. Nil: caches show
	// everything at once.
	Lag func(controller, kind string) int
	// Idle is asked whether a controller misses its turn; its next one is a second
	// later. "machine" stands for machine controllers. Nil: none does.
	Idle func(controller string) bool
	// Call is asked what becomes of a write that a controller is about to make. The
	// verb is "create", "update", "update status" or "delete". Nil: all succeed.
	Call func(controller, verb, kind, name string) Outcome

	// OnWrite is called after every write. What it and the functions below are given
	// is to be read only, and lists and maps are good until the function returns.
	OnWrite func(Change)
	// OnDecision is called with every decision about the deployment, before it is
	// carried out.
	OnDecision func(in deployment.Observation, d deployment.Decision)
	// OnSetDecision is called with every decision about a set, before it is carried
	// out.
	OnSetDecision func(in machineset.Observation, d machineset.Decision)
}

// An Outcome is what becomes of a write of a controller. The zero Outcome is that it goes through
// to the API server, which may still refuse it.
type Outcome int

const (
	// Done lets the call through.
	Done Outcome = iota
	// Refused means that the API server answers with an error and does nothing.
	Refused
	// AnswerLost means that the call has its effect, and the controller is told of
	// a timeout.
	AnswerLost
	// CrashBefore ends the process of the controller instead of the call; it
	// restarts without memory and with a cache that shows everything.
	CrashBefore
	// CrashAfter ends it after the call.
	CrashAfter
)

// A Change is one write that the API server accepted.
type Change struct {
	// At is when.
	At time.Time
	// By is the name of the deployment or set whose controller wrote, "machine" for
	// machine controllers and kubelets, or "user" for the methods of the World.
	By string
	// Kind and Name of the object.
	Kind string
	Name string
	// Before and After are the object: nil before it was created, and after it has
	// gone. They are never modified.
	Before, After metav1.Object
}

// The writers beside the controllers of sets and deployments.
const (
	byMachine = "machine"
	byUser    = "user"
)

const (
	defaultRetry  = time.Minute
	defaultJoin   = 2 * time.Minute
	defaultLeave  = time.Minute
	defaultUpdate = 5 * time.Minute
)

func (m Model) withDefaults() Model {
	if m.Start.IsZero() {
		m.Start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if m.Create == nil {
		m.Create = func(*v1alpha1.Machine) error { return nil }
	}
	if m.Retry <= 0 {
		m.Retry = defaultRetry
	}
	if m.Join == nil {
		m.Join = func(*v1alpha1.Machine) (time.Duration, bool) { return defaultJoin, true }
	}
	if m.Leave == nil {
		m.Leave = func(*v1alpha1.Machine) time.Duration { return defaultLeave }
	}
	if m.Update == nil {
		m.Update = func(*v1alpha1.Machine) (time.Duration, bool) { return defaultUpdate, true }
	}
	return m
}
