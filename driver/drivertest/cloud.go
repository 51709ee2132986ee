// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// CloudOptions says what kind of cloud to simulate. The zero CloudOptions is a
// cloud without latency, limits and faults, in real time.
//
// Durations and numbers below zero count as zero.
type CloudOptions struct {
	// Clock is where the time comes from. Nil means the real clock. A call with
	// a latency waits on this clock, and so does not return while a fake clock
	// stands still.
	Clock clock.Clock
	// Provider is the name that a MachineClass must carry. Empty means
	// "simulated".
	Provider string

	// CreateLatency is how long CreateMachine takes to answer. The VM exists
	// from the beginning of the call: whoever gives up meanwhile has made one.
	CreateLatency time.Duration
	// DeleteLatency is how long DeleteMachine takes to answer. The deletion
	// begins at the beginning of the call.
	DeleteLatency time.Duration
	// CallLatency is how long all other calls take to answer. The answer is that
	// of the beginning of the call.
	CallLatency time.Duration
	// BootTime is how long after the answer of CreateMachine a VM is ready.
	BootTime time.Duration
	// ShutdownTime is how long a VM and its side resources still exist after
	// their deletion began. They count against the quota.
	ShutdownTime time.Duration
	// Lag is how long GetMachineStatus, ListMachines and ListSideResources, and
	// every search by machine name, do not see what was made, and still see what
	// is gone.
	Lag time.Duration

	// Quota is how many VMs may exist at a time. Zero means no limit. Beyond it
	// CreateMachine answers ResourceExhausted.
	Quota int
	// Credential, if not empty, is what the key "credential" of every Secret
	// must hold; otherwise calls answer Unauthenticated.
	Credential string

	// NeedsInitialization makes a VM Uninitialized until InitializeMachine was
	// called. Otherwise InitializeMachine is Unimplemented.
	NeedsInitialization bool
	// NodeName gives the name of the Node by the name of the machine. Nil means
	// that they are the same.
	NodeName func(machine string) string
	// Unimplemented are operations which this cloud does not have.
	Unimplemented []driver.Operation
	// ForgetfulCreate makes CreateMachine search for an existing VM only in what
	// GetMachineStatus would see, as a driver does that uses no idempotency
	// token. With a Lag it makes a second VM for a machine now and then, which is
	// a breach of the contract that a controller has to survive.
	ForgetfulCreate bool

	// Seed is the seed of faults that have a probability.
	Seed uint64
	// Faults are in force from the beginning, as if given to [Cloud.Inject].
	Faults []Fault
}

// A Cloud is a simulated cloud and the [driver.Driver] for it. It keeps the
// contract, as [Run] proves, except where its options or an injected fault say
// otherwise, and it is a [driver.SideResourceDeleter].
//
// A Cloud starts no goroutine and needs no Close. Nothing happens in it by
// itself: what the passing of time has done is worked out at the next call of
// any method. With a fake clock, the same sequence of calls gives the same
// cloud; provider IDs depend on names only, not on the order of calls.
//
// A Cloud is safe for use by multiple goroutines. The zero Cloud is ready for
// use and the same as NewCloud(CloudOptions{}).
type Cloud struct {
	mu          sync.Mutex
	options     CloudOptions
	now         time.Time // of the clock, when mu was taken
	due         time.Time // of the next change by itself; zero means none
	vms         []*vm
	sides       []*side
	made        map[string]int // things ever made, per kind and owner
	addresses   int            // addresses ever given out
	history     History
	undelivered []Event
	subscribers []*func(Event)
	faults      []*fault
	injected    int
	calls       map[callKey]int
}

var (
	_ driver.Driver              = (*Cloud)(nil)
	_ driver.SideResourceDeleter = (*Cloud)(nil)
)

// NewCloud returns an empty cloud.
func NewCloud(o CloudOptions) *Cloud {
	c := &Cloud{options: o}
	for _, f := range o.Faults {
		c.Inject(f)
	}
	return c
}

// owner is the mark that everything carries.
type owner struct{ scope, machine string }

// clock returns the clock of the cloud.
func (c *Cloud) clock() clock.Clock {
	if c.options.Clock == nil {
		return clock.RealClock{}
	}
	return c.options.Clock
}

// provider returns the name of the provider.
func (c *Cloud) provider() string {
	if c.options.Provider == "" {
		return "simulated"
	}
	return c.options.Provider
}

// sideKinds returns the kinds of things made beside every VM, before it and in
// this order.
func sideKinds() []string { return []string{"disk", "nic"} }

// nodeName returns the name of the Node of a machine.
func (c *Cloud) nodeName(machine string) string {
	if c.options.NodeName == nil {
		return machine
	}
	return c.options.NodeName(machine)
}

// lock takes the lock and brings the cloud up to the present.
func (c *Cloud) lock() {
	c.mu.Lock()
	c.now = c.clock().Now()
	c.catchUp()
}

// unlock gives the lock back and tells the subscribers what happened.
func (c *Cloud) unlock() {
	events, subscribers := c.undelivered, c.subscribers
	c.undelivered = nil
	c.mu.Unlock()
	for _, e := range events {
		for _, f := range subscribers {
			(*f)(e)
		}
	}
}

// wait lets d pass on the clock of the cloud. It returns early with an error if
// ctx ends.
func (c *Cloud) wait(ctx context.Context, d time.Duration) error {
	if ctx.Err() == nil && d > 0 {
		timer := c.clock().NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C():
			return nil
		}
	}
	return contextError(ctx)
}

// SetCredential changes what Secrets must hold from now on, as
// [CloudOptions].Credential does.
func (c *Cloud) SetCredential(credential string) {
	c.lock()
	defer c.unlock()
	c.options.Credential = credential
}

// MachineClass returns a class that is valid for the cloud. Its scope is its
// namespace; a ProviderSpec of {"scope":"x"} would change that.
func (c *Cloud) MachineClass(namespace, name string) *v1alpha1.MachineClass {
	return &v1alpha1.MachineClass{
		ObjectMeta:   metav1.ObjectMeta{Namespace: namespace, Name: name},
		Provider:     c.provider(),
		ProviderSpec: runtime.RawExtension{Raw: []byte(`{}`)},
		SecretRef:    &corev1.SecretReference{Namespace: namespace, Name: name},
	}
}

// Secret returns a Secret that is valid for the cloud, with user data that holds
// the two placeholders which a controller replaces.
func (c *Cloud) Secret(namespace, name string) *corev1.Secret {
	c.lock()
	defer c.unlock()
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data: map[string][]byte{
			"userData":   []byte("join <<MACHINE_NAME>> with <<BOOTSTRAP_TOKEN>>"),
			"credential": []byte(c.options.Credential),
		},
	}
}

// Volume returns a persistent volume which the cloud knows under an ID.
func (c *Cloud) Volume(id string) *corev1.PersistentVolumeSpec {
	return &corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{Driver: c.csiDriver(), VolumeHandle: id},
	}}
}

// csiDriver returns the name of the CSI driver whose volumes are the cloud's.
func (c *Cloud) csiDriver() string { return "csi." + c.provider() }

// Calls returns how many calls of an operation have ended with a code.
func (c *Cloud) Calls(op driver.Operation, code codes.Code) int {
	c.lock()
	defer c.unlock()
	return c.calls[callKey{op, code}]
}

// callKey is what calls are counted by.
type callKey struct {
	op   driver.Operation
	code codes.Code
}

// count counts a call that has ended.
func (c *Cloud) count(op driver.Operation, err error) {
	c.lock()
	defer c.unlock()
	if c.calls == nil {
		c.calls = map[callKey]int{}
	}
	c.calls[callKey{op, codes.Of(err)}]++
}
