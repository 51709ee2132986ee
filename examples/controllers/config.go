// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	informers "github.com/machinist-dev/machinist/machine/client/informers/externalversions/machine/v1alpha1"
	machinerunner "github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
	"github.com/machinist-dev/machinist/safety"
	safetyrunner "github.com/machinist-dev/machinist/safety/runner"
)

// Part selects the controllers that run, and so what they read.
type Part int

const (
	// All runs all controllers.
	All Part = iota
	// Machines runs the controllers of machines, classes and Secrets, and those of orphan VMs
	// and unmanaged Nodes. They also read sets and deployments.
	Machines
	// MachinesAlone is [Machines] for a cluster that serves no MachineSets and MachineDeployments.
	MachinesAlone
	// Sets runs the controllers of sets and deployments. They need no driver and read no
	// Secrets.
	Sets
)

// machines reports whether the controllers of machines run.
func (p Part) machines() bool { return p != Sets }

// sets reports whether the controllers of sets and deployments run.
func (p Part) sets() bool { return p == All || p == Sets }

// Config contains the clients, the driver and the policies of the controllers.
type Config struct {
	// Part selects the controllers that run. Zero means all.
	Part Part
	// Shard is the value of the label machinist.dev/shard of the machines, sets, deployments and
	// classes that the controllers act on. Objects that they create get the same label.
	// Empty means objects without the label. Objects of other shards are only read.
	Shard string
	// Namespace is the namespace of the control cluster. Empty means all namespaces.
	Namespace string
	// Machines is the client for the machine objects. Required.
	Machines versioned.Interface
	// SetClient is the client for the machine objects of the controllers of sets and
	// deployments, so that their requests have a rate limit of their own. Nil means Machines.
	SetClient versioned.Interface
	// Control is the client for the Secrets of the control cluster. Required for machines.
	Control kubernetes.Interface
	// Target is the client for the cluster that the machines join. Nil means that there is
	// none: machines end in phase Available.
	Target kubernetes.Interface
	// Driver is the driver of the provider. Required for machines.
	Driver driver.Driver
	// Policy is the policy of the machines. The zero Policy has no timeouts.
	Policy machine.Policy
	// Sets is the policy of the MachineSets, Deployments that of the MachineDeployments.
	// The zero Policies have the defaults.
	Sets        machineset.Policy
	Deployments deployment.Policy
	// TokenGroups are the groups of bootstrap tokens, in addition to
	// system:bootstrappers. Each begins with "system:bootstrappers:".
	TokenGroups []string
	// Orphans is the policy for VMs without a Machine. The zero Policy deletes none,
	// and only reports them to Observe.
	Orphans safety.Policy
	// Overshoot is the policy for sets that create more machines than their replicas. The
	// zero Policy has the defaults.
	Overshoot safety.OvershootPolicy
	// Guard is the policy for many machines that fail at once. The zero Policy switches the
	// guard off, so that each machine is replaced.
	Guard safety.GuardPolicy
	// Clock is the clock of the decisions and of the queues. Nil means the real clock.
	Clock clock.WithTicker
	// Workers is the number of workers for each kind. Zero means 5.
	Workers int
	// Random returns a number in [0, 1). Several goroutines call it at the same time. Nil means
	// math/rand/v2.
	Random func() float64
	// Resync is the interval after which every object is reconciled without a change. Zero
	// means never: decisions contain the time of their next check.
	Resync time.Duration
	// Observe, if not nil, receives every decision and every error. It is called by
	// several goroutines.
	Observe func(Note)
	// Events, if not nil, records Events of machines, sets and deployments, after the write
	// that they report. Its scheme must contain their kinds.
	Events record.EventRecorder
	// Started, if not nil, is called once, after the caches are synced and before the first
	// decision.
	Started func(Views)
	// Drains, if not nil, receives the progress of drains. It is called by several
	// goroutines.
	Drains machinerunner.DrainObserver
	// QueueMetrics provides the metrics of the work queues. Nil means none.
	QueueMetrics workqueue.MetricsProvider

	// Freeze is the policy for outages of an API server: after how long nothing is created,
	// failed or replaced any more. The zero Policy has the defaults.
	Freeze safety.FreezePolicy
	// ProbeMachines and ProbeTarget are the clients that probe the API servers of Machines
	// and Target. They should have no rate limit, because a probe that waits for other
	// requests looks like an outage. Nil means the clients Machines and Target.
	ProbeMachines versioned.Interface
	ProbeTarget   kubernetes.Interface
	// Probed, if not nil, receives the decision after each probe of the API servers. It is
	// called by one goroutine at a time.
	Probed func(safety.FreezeDecision)
	// Collected, if not nil, is called after each deletion of an orphan. The kind is "VM" or
	// that of a side resource. The error is that of the driver. It is called by several
	// goroutines.
	Collected func(kind string, err error)

	// newQueue returns the work queue of a kind. Nil means a queue in real time.
	newQueue func(kind string) workqueue.TypedRateLimitingInterface[types.NamespacedName]
	// parallel is the number of concurrent requests of a drain, a set or a deployment. Zero means
	// the default of the drain, and mostAtATime.
	parallel int
	probes   *safetyrunner.Prober // nil finds no outage
	wakes    []func()             // called when a freeze begins or ends
	loops    []*loop              // in the order in which they were made
	holds    *holds
	panics   *atomic.Int64 // the number of panics
	// uncaught disables the recovery from panics. Simulations end their process by a panic.
	uncaught bool
}

// Views give read access to the state of the controllers. They are safe for several
// goroutines. Objects must not be modified.
type Views struct {
	// Part selects the controllers that run, and so the informers that are synced.
	Part Part
	// Shard is the shard of the objects that the controllers act on; see [InShard].
	Shard string
	// Objects are the caches of the machine objects of all shards.
	Objects informers.Interface
	// MachinesOfNode returns the machines of all shards whose label names a Node. It returns no error.
	MachinesOfNode func(ctx context.Context, node string) ([]*v1alpha1.Machine, error)
	// Held returns the current holds of all objects.
	Held func() []Held
}

// InShard reports whether the label machinist.dev/shard of an object names the shard. An object without
// the label is in the empty shard.
func InShard(o metav1.Object, shard string) bool {
	return o.GetLabels()[v1alpha1.ShardLabelKey] == shard
}

// Note is a decision or an error of a controller.
type Note struct {
	// Time is the time of the decision.
	Time time.Time
	// Kind and Key name the object.
	Kind, Key string
	// Text is the text form of the decision: actions, reason and holds.
	Text string
	// Reason is the reason of the decision. It is empty for an error.
	Reason machinist.Reason
	// Holds are the holds of the decision.
	Holds []machinist.Hold
	// Acts reports whether the decision has actions, Waits whether it has holds.
	Acts, Waits bool
	// Err is the error that ended the pass, or nil. It is a [PanicError] if the pass or the
	// driver panicked. For the driver, Kind is "driver" and Key is the request.
	Err error
}

// errIncomplete is the error of a Config without a required field.
var errIncomplete = errors.New("controllers.Config needs Machines, and, for the controllers of machines, Control and Driver")

func (c *Config) complete() error {
	if c.Machines == nil || c.Part.machines() && (c.Control == nil || c.Driver == nil) {
		return errIncomplete
	}
	c.SetClient, c.Clock = cmp.Or(c.SetClient, c.Machines), cmp.Or[clock.WithTicker](c.Clock, clock.RealClock{})
	if c.Sets.Order == nil { // sets and deployments choose machines by the same order
		c.Sets.Order = c.Deployments.Order
	}
	if c.Deployments.Order == nil {
		c.Deployments.Order = c.Sets.Order
	}
	if err := c.Orphans.Validate(); err != nil {
		return err
	}
	c.Overshoot = cmp.Or(c.Overshoot, safety.DefaultOvershootPolicy())
	if c.Workers <= 0 {
		c.Workers = 5
	}
	c.Random = runners.Random(c.Random)
	c.panics, c.holds = cmp.Or(c.panics, &atomic.Int64{}), cmp.Or(c.holds, &holds{})
	if c.Driver != nil {
		c.Driver = c.safeDriver(c.Driver)
	}
	if c.newQueue == nil {
		c.newQueue = func(kind string) workqueue.TypedRateLimitingInterface[types.NamespacedName] {
			return newQueue(kind, c.Clock, c.QueueMetrics)
		}
	}
	return nil
}

// note passes a note to Config.Observe, with the time of the clock.
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
