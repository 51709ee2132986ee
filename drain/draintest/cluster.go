// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
)

// Options shape a cluster. The zero value is a cluster with the built-in kinds on the real clock.
type Options struct {
	// Clock gives the time of every write and decides when a terminating pod is due; nil is the real clock.
	Clock clock.Clock
	// Seed makes uids, generated names and faults with a probability repeatable. Zero is a seed like any other.
	Seed int64
	// Scheme knows the Go types of all kinds, the built-in ones too. Nil is client-go's scheme.
	Scheme *runtime.Scheme
	// Kinds are the custom kinds to serve besides the built-in ones. A kind of no use (no version or no kind) is ignored.
	Kinds []Kind
	// ManualBudgets leaves the status of disruption budgets to the test. Evictions still charge it.
	ManualBudgets bool
	// StopTime says how long the containers of a pod need to stop after they were asked to, between zero and the
	// grace period. Nil means the whole grace period, which is the worst case. It must not call the cluster.
	StopTime func(pod *corev1.Pod) time.Duration
	// Latency says how long a request of a client takes before it is served, by the cluster's clock; requests do not wait
	// for each other. Nil, zero and less mean no time. It must not call the cluster, and may be called by several
	// goroutines.
	Latency func(call Call) time.Duration
	// DetachTime is how long it takes after a pod has gone until the volume attachments which only that pod needed
	// are removed from its node. Zero or less leaves volume attachments alone. A silent node takes six minutes more, unless
	// it is out of service.
	DetachTime time.Duration
	// AttachTime is how long it takes until a volume which a pod on a node needs is attached there. The attachment is made
	// when the pod is bound and says that it is attached when the time is over. A volume that is not for many nodes is
	// detached from another one first. Zero or less attaches nothing.
	AttachTime time.Duration
	// NodeVolumes keeps volumesAttached and volumesInUse in the status of nodes, for CSI volumes.
	NodeVolumes bool
}

// Cluster is one API server in memory, with the few controllers that a drain depends on. Make one with [New].
//
// A Cluster is safe for use by multiple goroutines. It starts no goroutine of its own, except one for each open watch,
// which ends when the watch is stopped or dropped.
type Cluster struct {
	clock   clock.Clock
	options Options
	types   *runtime.Scheme
	kinds   map[schema.GroupVersionResource]*kind
	faults  faults
	kick    chan struct{}

	mu      sync.Mutex
	tracker clienttesting.ObjectTracker // client-go's store; every object in it obeys the rules of this package
	version uint64                      // the resource version of the last accepted write
	rand    *rand.Rand
	index   index
	log     eventLog
	watches map[*watcher]struct{}
	held    bool
	history []Write
	silent  map[string]bool
	detach  map[objectKey]time.Time
	attach  map[objectKey]time.Time
	// volumesChanged says that the attach controller has something to look at.
	volumesChanged bool
}

// New returns an empty cluster.
func New(opts Options) *Cluster {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Scheme == nil {
		opts.Scheme = scheme.Scheme
	}
	seed := uint64(opts.Seed) //nolint:gosec // any bit pattern is a good seed
	return &Cluster{
		clock:   opts.Clock,
		options: opts,
		types:   opts.Scheme,
		kinds:   servedKinds(opts.Kinds),
		faults:  faults{rand: rand.New(rand.NewPCG(seed, 2))}, //nolint:gosec // repeatable on purpose
		kick:    make(chan struct{}, 1),
		tracker: clienttesting.NewObjectTracker(opts.Scheme, serializer.NewCodecFactory(opts.Scheme).UniversalDecoder()),
		version: 1,
		rand:    rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // repeatable on purpose
		index:   newIndex(),
		log:     eventLog{dropped: 1},
		watches: map[*watcher]struct{}{},
		silent:  map[string]bool{},
		detach:  map[objectKey]time.Time{},
		attach:  map[objectKey]time.Time{},
	}
}

// Client returns a new client-go fake clientset over this cluster. Its Actions method tells what was asked through
// this clientset; they add up, so a program that runs for long should call ClearActions now and then. Its Tracker is
// not this cluster's store and stays empty. As in every fake of client-go, contexts are not looked at.
func (c *Cluster) Client() kubernetes.Interface {
	return c.Clientset()
}

// Clientset is [Cluster.Client] with its concrete type, for callers which add reactors of their own.
func (c *Cluster) Clientset() *fake.Clientset {
	clientset := fake.NewSimpleClientset()
	c.Attach(&clientset.Fake)
	return clientset
}

// Attach makes another generated fake clientset (of custom kinds) talk to this cluster: pass the
// address of its embedded Fake. Reactors that the clientset has are no longer reached; reactors which are prepended
// later come first, as usual. A nil Fake is ignored.
func (c *Cluster) Attach(f *clienttesting.Fake) {
	if f == nil {
		return
	}
	f.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return c.react(f, action)
	})
	f.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		return c.reactWatch(f, action)
	})
	if f.Resources == nil {
		f.Resources = discovery(c.options.Kinds)
	}
}

// Clock returns the clock of the cluster.
func (c *Cluster) Clock() clock.Clock { return c.clock }

// ResourceVersion returns the version of the latest accepted write.
func (c *Cluster) ResourceVersion() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return formatVersion(c.version)
}

// now is the time of a write, as precise as the wire format.
func (c *Cluster) now() time.Time { return c.clock.Now().Truncate(time.Second) }
