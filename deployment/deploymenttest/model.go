// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// A Model defines how the machines of a [World] behave, and the policies of its controllers. The
// zero Model is a world without failures. Its functions must not modify their arguments. Two runs
// are equal if the functions depend on their arguments, or on a seeded source of random numbers.
type Model struct {
	// Start is the time at the start. Zero means 1 January 2000, UTC.
	Start time.Time
	// Policy and SetPolicy are the policies of the controllers.
	Policy    deployment.Policy
	SetPolicy machineset.Policy
	// NoCluster means that there is no target cluster and no Node. A machine is available when its
	// VM is up.
	NoCluster bool

	// Create is called to create the VM of a machine. An error is an error of the provider (see
	// package codes): the machine is in CrashLoopBackOff, and Create is called again after Retry.
	// Nil means that it succeeds.
	Create func(m *v1alpha1.Machine) error
	// Retry is the time between two calls of Create. Zero and negative mean 1 minute.
	Retry time.Duration
	// Join returns the time from the VM of a machine to the available machine, and false if it
	// never becomes available. Nil means 2 minutes.
	Join func(m *v1alpha1.Machine) (time.Duration, bool)
	// CreationTimeout is the time after which a machine that has not joined fails. Zero means
	// never.
	CreationTimeout time.Duration
	// Leave returns the time from the deletion of a machine to the end of the object. Nil means 1
	// minute.
	Leave func(m *v1alpha1.Machine) time.Duration
	// Update returns the duration of an in-place update from the selection of the Node, and false
	// if it then fails. Nil means 5 minutes.
	Update func(m *v1alpha1.Machine) (time.Duration, bool)
	// HealthTimeout is the time after a failed in-place update at which a machine fails. Zero means
	// never.
	HealthTimeout time.Duration

	// Lag returns the maximum number of writes of a kind that the cache of a controller does not
	// show yet. It is called before each decision. The name of a controller is the name of the
	// deployment or set. Writes of one kind appear in their order. Nil means that caches are
	// current.
	Lag func(controller, kind string) int
	// Idle reports whether a controller misses its turn. Its next turn is a second later. "machine"
	// stands for the machine controllers. Nil means that none does.
	Idle func(controller string) bool
	// Call returns the outcome of a write of a controller. The verb is "create", "update", "update
	// status" or "delete". Nil means that all succeed.
	Call func(controller, verb, kind, name string) Outcome

	// OnWrite is called after every write. The arguments of OnWrite and of the functions below are
	// read-only, and their lists and maps are valid until the function returns.
	OnWrite func(Change)
	// OnDecision is called with every decision about the deployment, before its actions.
	OnDecision func(in deployment.Observation, d deployment.Decision)
	// OnSetDecision is called with every decision about a set, before its actions.
	OnSetDecision func(in machineset.Observation, d machineset.Decision)
}

// An Outcome is the outcome of a write of a controller. The zero Outcome passes it to the API
// server, which may refuse it.
type Outcome int

const (
	// Done passes the call to the API server.
	Done Outcome = iota
	// Refused means that the API server answers with an error and does nothing.
	Refused
	// AnswerLost means that the call has its effect, and the controller gets a timeout.
	AnswerLost
	// CrashBefore ends the process of the controller before the call. It restarts with an empty
	// memory and a current cache.
	CrashBefore
	// CrashAfter ends the process of the controller after the call.
	CrashAfter
)

// A Change is one write that the API server accepted.
type Change struct {
	// At is the time of the write.
	At time.Time
	// By is the name of the deployment or set of the controller that wrote, "machine" for machine
	// controllers and kubelets, or "user" for the methods of [World].
	By string
	// Kind and Name identify the object.
	Kind string
	Name string
	// Before is nil for a creation, and After for the end of an object. They are never modified.
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
