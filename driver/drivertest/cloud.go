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

// CloudOptions configures a simulated cloud. The zero value is a cloud in real time without
// latency, limits and faults. Negative durations and numbers mean zero.
type CloudOptions struct {
	// Clock of the cloud. Nil means the real clock. A call with a latency waits on this clock,
	// so a fake clock must advance.
	Clock clock.Clock
	// Provider is the required provider of a MachineClass. Empty means "simulated".
	Provider string

	// CreateLatency is the duration of CreateMachine. The VM exists from the start of the call,
	// also if the call is canceled.
	CreateLatency time.Duration
	// DeleteLatency is the duration of DeleteMachine. The deletion starts with the call.
	DeleteLatency time.Duration
	// CallLatency is the duration of all other calls. They return the state at their start.
	CallLatency time.Duration
	// BootTime is the time from the response of CreateMachine until the VM is ready.
	BootTime time.Duration
	// ShutdownTime is how long a VM and its side resources exist after the start of their
	// deletion. They count in the quota.
	ShutdownTime time.Duration
	// Lag is how long GetMachineStatus, ListMachines, ListSideResources and every search by
	// machine name return the state before a change.
	Lag time.Duration

	// Quota is the number of VMs that may exist. Above it CreateMachine returns
	// ResourceExhausted. Zero means no limit.
	Quota int
	// Credential is the required value of the key "credential" in every Secret. For other
	// values calls return Unauthenticated. Empty means that any value is valid.
	Credential string

	// NeedsInitialization makes a new VM Uninitialized until InitializeMachine is called. If
	// false, InitializeMachine is Unimplemented.
	NeedsInitialization bool
	// NodeName returns the name of the Node of a machine. Nil means the name of the machine.
	NodeName func(machine string) string
	// ProviderID returns the provider ID of the VM of a Node, for Nodes that choose their own. If a VM
	// has it, or for nil, the cloud takes another one, such as "simulated:///NAMESPACE/MACHINE/1".
	ProviderID func(nodeName string) string
	// Unimplemented are the operations that return Unimplemented.
	Unimplemented []driver.Operation
	// ForgetfulCreate makes CreateMachine search an existing VM with the Lag, like a driver
	// without an idempotency token. With a Lag it creates duplicates at times, which breaks the
	// contract.
	ForgetfulCreate bool

	// Seed is the seed of faults with a probability.
	Seed uint64
	// Faults are the first faults, see [Cloud.Inject].
	Faults []Fault
}

// A Cloud is a simulated cloud and its [driver.Driver]. It keeps the contract, except for its
// options and injected faults. It is also a [driver.SideResourceDeleter].
//
// A Cloud starts no goroutine and needs no Close. Every call first applies the changes since
// the previous call. With a fake clock the same calls have the same results. Provider IDs
// depend on names only.
//
// A Cloud is safe for use by multiple goroutines. The zero Cloud is ready for use.
type Cloud struct {
	mu          sync.Mutex
	options     CloudOptions
	now         time.Time // when mu was locked
	due         time.Time // of the next change; zero means none
	vms         []*vm
	sides       []*side
	made        map[string]int // objects made so far, by kind and owner
	addresses   int            // addresses assigned so far
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

// owner is the scope and machine of a VM or side resource.
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

// sideKinds returns the kinds of side resources, in the order in which they are made before the
// VM.
func sideKinds() []string { return []string{"disk", "nic"} }

// nodeName returns the name of the Node of a machine.
func (c *Cloud) nodeName(machine string) string {
	if c.options.NodeName == nil {
		return machine
	}
	return c.options.NodeName(machine)
}

// lock locks the cloud and applies all changes up to now.
func (c *Cloud) lock() {
	c.mu.Lock()
	c.now = c.clock().Now()
	c.catchUp()
}

// unlock unlocks the cloud and sends the new events to the subscribers.
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

// wait waits for d on the clock of the cloud. It returns an error if ctx ends before.
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

// SetCredential changes [CloudOptions].Credential.
func (c *Cloud) SetCredential(credential string) {
	c.lock()
	defer c.unlock()
	c.options.Credential = credential
}

// MachineClass returns a valid class for the cloud. Its scope is its namespace, or the scope in
// a ProviderSpec such as {"scope":"x"}.
func (c *Cloud) MachineClass(namespace, name string) *v1alpha1.MachineClass {
	return &v1alpha1.MachineClass{
		ObjectMeta:   metav1.ObjectMeta{Namespace: namespace, Name: name},
		Provider:     c.provider(),
		ProviderSpec: runtime.RawExtension{Raw: []byte(`{}`)},
		SecretRef:    &corev1.SecretReference{Namespace: namespace, Name: name},
	}
}

// Secret returns a valid Secret for the cloud. Its user data has the two placeholders that a
// controller replaces.
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

// Volume returns a persistent volume with an ID at the cloud.
func (c *Cloud) Volume(id string) *corev1.PersistentVolumeSpec {
	return &corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{Driver: c.csiDriver(), VolumeHandle: id},
	}}
}

// csiDriver returns the name of the CSI driver of the cloud.
func (c *Cloud) csiDriver() string { return "csi." + c.provider() }

// Calls returns the number of calls of an operation that returned a code.
func (c *Cloud) Calls(op driver.Operation, code codes.Code) int {
	c.lock()
	defer c.unlock()
	return c.calls[callKey{op, code}]
}

// callKey is the key of the call counter.
type callKey struct {
	op   driver.Operation
	code codes.Code
}

// count counts a finished call.
func (c *Cloud) count(op driver.Operation, err error) {
	c.lock()
	defer c.unlock()
	if c.calls == nil {
		c.calls = map[callKey]int{}
	}
	c.calls[callKey{op, codes.Of(err)}]++
}
