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

// Options configure a cluster. The zero value is a cluster with the built-in kinds on the real clock.
type Options struct {
	// Clock is the clock of the cluster: of writes, and of the end of terminating pods. Nil means the real clock.
	Clock clock.Clock
	// Seed makes UIDs, generated names and faults with a probability repeatable. Zero is a seed too.
	Seed int64
	// Scheme has the Go types of all kinds, also of the built-in ones. Nil means client-go's scheme.
	Scheme *runtime.Scheme
	// Kinds are the custom kinds that the cluster also serves. A kind without version or kind is ignored.
	Kinds []Kind
	// ManualBudgets leaves the status of PodDisruptionBudgets to the test. Evictions still change it.
	ManualBudgets bool
	// StopTime returns how long the containers of a deleted pod need to stop, between zero and the grace period. Nil means
	// the whole grace period. It must not call the cluster.
	StopTime func(pod *corev1.Pod) time.Duration
	// Latency returns how long a request of a client takes before it is served, by the cluster's clock. Requests do not
	// wait for each other. Nil, zero and less mean no time. It must not call the cluster, and is called concurrently.
	Latency func(call Call) time.Duration
	// DetachTime is the time from the end of a pod to the removal of its volume attachments. An attachment that another pod
	// uses stays. Zero or less removes no attachments. For a silent node it takes six minutes more, unless the node is out
	// of service.
	DetachTime time.Duration
	// AttachTime is the time from the binding of a pod until its volumes are attached to its node. The attachment is created
	// at once. A volume that is not shared is first detached from the other node. Zero or less attaches nothing.
	AttachTime time.Duration
	// NodeVolumes keeps volumesAttached and volumesInUse in the status of nodes, for CSI volumes.
	NodeVolumes bool
}

// Cluster is an API server in memory, with the controllers on which a drain depends. [New] returns one.
//
// A Cluster is safe for concurrent use. It starts one goroutine for each open watch, which ends with the watch.
type Cluster struct {
	clock   clock.Clock
	options Options
	types   *runtime.Scheme
	kinds   map[schema.GroupVersionResource]*kind
	faults  faults
	kick    chan struct{}

	mu      sync.Mutex
	tracker clienttesting.ObjectTracker // client-go's store
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
	// volumesChanged means that the attach controller has to reconcile.
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

// Client returns a new client-go fake clientset of this cluster. Its Actions are the requests of this clientset; a program
// that runs for long has to call ClearActions. Its Tracker is not the store of this cluster and stays empty. Contexts are
// ignored, as in every fake of client-go.
func (c *Cluster) Client() kubernetes.Interface {
	return c.Clientset()
}

// Clientset returns [Cluster.Client] with its concrete type, to which callers can add reactors.
func (c *Cluster) Clientset() *fake.Clientset {
	clientset := fake.NewSimpleClientset()
	c.Attach(&clientset.Fake)
	return clientset
}

// Attach connects another generated fake clientset, such as one of custom kinds, to this cluster. f is the address of its
// embedded Fake. Its reactors are not called anymore. Reactors that are prepended later come first. A nil Fake is ignored.
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

// now returns the time of a write in whole seconds, like the wire format.
func (c *Cluster) now() time.Time { return c.clock.Now().Truncate(time.Second) }
