// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	informers "github.com/machinist-dev/machinist/machine/client/informers/externalversions/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
	"github.com/machinist-dev/machinist/safety"
)

// Part says which controllers run, and what they read.
type Part int

const (
	// All controllers run.
	All Part = iota
	// Machines is the controllers of machines, classes and secrets, and those of the VMs and
	// Nodes without a machine. They read sets and deployments.
	Machines
	// MachinesAlone is [Machines] in a cluster that serves no sets and deployments.
	MachinesAlone
	// Sets is the controllers of sets and deployments. They need no driver and read no secret.
	Sets
)

// machines reports whether the controllers of machines run.
func (p Part) machines() bool { return p != Sets }

// sets reports whether the controllers of sets and deployments run.
func (p Part) sets() bool { return p == All || p == Sets }

// Config is what the controllers work with.
type Config struct {
	// Part says which controllers run. Zero means all.
	Part Part
	// Shard is the value of the label [ShardLabel] of the machines, sets, deployments and classes
	// that are acted upon, and is given to what is created for them. Empty means those without
	// the label. All other objects of the namespace are read, and left alone.
	Shard string
	// Namespace of the control cluster that is looked at; empty means all.
	Namespace string
	// Machines is the client of the machine objects. Required.
	Machines versioned.Interface
	// SetClient is the client of the machine objects for the controllers of sets and
	// deployments, so that their requests do not wait for those of machines. Nil means Machines.
	SetClient versioned.Interface
	// Control is the client of the secrets beside them. Required for machines.
	Control kubernetes.Interface
	// Target is the client of the cluster which the machines join. Nil means
	// that there is none: machines end in phase Available.
	Target kubernetes.Interface
	// Driver of the provider. Required for machines.
	Driver driver.Driver
	// Policy of the machines. The zero Policy waits for ever.
	Policy machine.Policy
	// ReattachTimeout waits in the drain of a machine that is deleted until the volumes of
	// its pods are attached to other Nodes, so long for each; the pods with volumes then go
	// one after the other. Zero means that this is not waited for.
	ReattachTimeout time.Duration
	// Sets is the policy of the machine sets, Deployments that of the machine
	// deployments. The zero Policies have the defaults.
	Sets        machineset.Policy
	Deployments deployment.Policy
	// TokenGroups are the groups that bootstrap tokens put machines into besides
	// system:bootstrappers. Each begins with "system:bootstrappers:".
	TokenGroups []string
	// Orphans is the policy for VMs without a Machine. The zero Policy deletes none,
	// and only reports them to Observe.
	Orphans safety.Policy
	// Overshoot is the policy for sets that create more machines than they were asked
	// for. The zero Policy has the defaults.
	Overshoot safety.OvershootPolicy
	// Guard is the policy for many machines that fail at once. The zero policy is off: each
	// is replaced.
	Guard safety.GuardPolicy
	// Clock of the decisions and of the queues. Nil is the real clock.
	Clock clock.WithTicker
	// Workers for each kind. Zero means 5.
	Workers int
	// Random returns a number from 0 up to 1. Nil is math/rand/v2.
	Random func() float64
	// Resync is how often every object is looked at again although nothing has
	// changed. Zero means never: what has to be looked at again says when.
	Resync time.Duration
	// Observe, if not nil, is told of every decision and of every error. It is
	// called by several goroutines.
	Observe func(Note)
	// Events, if not nil, is told what people may want to know of machines, sets
	// and deployments, after it was written. Its scheme has to know their kinds.
	Events record.EventRecorder
	// Started, if not nil, is called once, when the caches are filled and before
	// anything is decided.
	Started func(Views)
	// Drains, if not nil, is told of the progress of drains. It is called by several goroutines.
	Drains DrainObserver
	// QueueMetrics makes the metrics of the work queues. Nil is none.
	QueueMetrics workqueue.MetricsProvider

	// Freeze says how long an API server may fail to answer until nothing is created, failed
	// or replaced any more. The zero policy has the defaults.
	Freeze safety.FreezePolicy
	// ProbeMachines and ProbeTarget are the clients that probe the API servers of Machines
	// and Target. They need no rate limit: a probe that waits for other requests looks like
	// an outage. Nil means the clients Machines and Target.
	ProbeMachines versioned.Interface
	ProbeTarget   kubernetes.Interface
	// Probed, if not nil, is told what follows from each probe of the API servers. It is
	// called by one goroutine at a time.
	Probed func(safety.FreezeDecision)
	// Collected, if not nil, is told of each deletion of something without a machine: the
	// kind is "VM" or that of a side resource, and the error is that of the driver. It is
	// called by several goroutines.
	Collected func(kind string, err error)

	// newQueue makes the work queue of a kind. Nil is one that works in real time.
	newQueue func(kind string) workqueue.TypedRateLimitingInterface[cache.ObjectName]
	// parallel is how many requests a drain makes at a time. Zero is its default.
	parallel int
	freeze   *freezeView
	holds    *holds
	panics   *atomic.Int64 // counts them
	// uncaught says that panics are not caught: a simulation ends its process by one.
	uncaught bool
}

// Views are what the controllers see. They are for several goroutines, and nothing of them may be
// changed.
type Views struct {
	// Part says which controllers run, and so which informers are filled.
	Part Part
	// Shard is that of the objects which the controllers act on; see [InShard].
	Shard string
	// Objects are the caches of the machine objects, those of other shards among them.
	Objects informers.Interface
	// Held returns the holds of all objects now.
	Held func() []Held
}

// DrainObserver is told of the progress of drains, and that a drain goes on no more although it
// has not ended.
type DrainObserver interface {
	runner.Observer
	Forget(node string)
}

// Note is one thing that a controller decided, or that went wrong.
type Note struct {
	// Time of the decision.
	Time time.Time
	// Kind and Key of the object.
	Kind, Key string
	// Text of the decision: what is done, why, and what the rest waits for.
	Text string
	// Reason of the decision, empty for a note that is none.
	Reason machinist.Reason
	// Holds are what the decision does not do yet, and why.
	Holds []machinist.Hold
	// Acts says that something is done, Waits that something is not done yet.
	Acts, Waits bool
	// Err that ended the pass, or nil. It is a [PanicError] if the pass panicked, or
	// if the driver did, whose Kind is "driver" then and whose Key the request.
	Err error
}

// errIncomplete says that a Config lacks something.
var errIncomplete = errors.New("controllers need Machines, and those of machines Control and Driver")

func (c *Config) complete() error {
	if c.Machines == nil || c.Part.machines() && (c.Control == nil || c.Driver == nil) {
		return errIncomplete
	}
	if c.SetClient == nil {
		c.SetClient = c.Machines
	}
	if c.Sets.Order == nil { // who goes is chosen by one order
		c.Sets.Order = c.Deployments.Order
	}
	if c.Deployments.Order == nil {
		c.Deployments.Order = c.Sets.Order
	}
	if err := c.Orphans.Validate(); err != nil {
		return err
	}
	if c.Overshoot == (safety.OvershootPolicy{}) {
		c.Overshoot = safety.DefaultOvershootPolicy()
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Workers <= 0 {
		c.Workers = 5
	}
	if c.Random == nil {
		c.Random = random
	}
	if c.panics == nil {
		c.panics = &atomic.Int64{}
	}
	if c.freeze == nil {
		c.freeze = &freezeView{}
	}
	if c.holds == nil {
		c.holds = &holds{}
	}
	if c.Driver != nil {
		c.Driver = c.safeDriver(c.Driver)
	}
	if c.newQueue == nil {
		c.newQueue = func(kind string) workqueue.TypedRateLimitingInterface[cache.ObjectName] {
			return newQueue(kind, c.Clock, c.QueueMetrics)
		}
	}
	return nil
}

// note tells the observer, if there is one.
func (c *Config) note(n Note) {
	if c.Observe != nil {
		n.Time = c.Clock.Now()
		c.Observe(n)
	}
}

// event records a Kubernetes Event. Without Config.Events it does nothing.
func (c *Config) event(o runtime.Object, e machinist.Event) {
	if c.Events != nil {
		c.Events.Event(o, e.Type, string(e.Reason), e.Message)
	}
}
