// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Policy bounds the waiting and says what counts as unhealthy. The zero Policy
// is the cautious one: it waits for ever, and neither fails nor forces anything.
// [DefaultPolicy] holds what the reference system does.
type Policy struct {
	// CreationTimeout is how long a machine may take to join before it is failed,
	// counted from its creation; see [Observation.FirstSeen]. Zero means for ever.
	CreationTimeout time.Duration
	// HealthTimeout is how long a machine may be Unknown before it is failed,
	// counted from the change to that phase. Zero means for ever.
	HealthTimeout time.Duration
	// DrainTimeout is how long a drain respects budgets and grace, counted from
	// the deletion timestamp. Zero means for ever.
	DrainTimeout time.Duration
	// MaxReplacements is how many machines of one deployment may be failed for
	// bad health and not yet replaced. Zero means none.
	MaxReplacements int
	// InPlaceTimeout is how long an update in place may take, counted from the
	// change to phase InPlaceUpdating. Zero means for ever.
	InPlaceTimeout time.Duration
	// PreserveTimeout is how long a machine is preserved. Zero means for ever.
	PreserveTimeout time.Duration
	// DetachTimeout is how long a volume may take to be detached, before the VM is
	// deleted nevertheless, counted from when nothing on the Node uses it any more.
	// Zero means for ever.
	DetachTimeout time.Duration
	// HealthConditions are types of Node conditions that make a machine unhealthy
	// unless they are False or missing. Ready has to be True always.
	HealthConditions []corev1.NodeConditionType
	// Settle is how long the provider may take to show a VM that it has made. For
	// so long after a deletion was asked for, the answer that there is no VM is
	// not believed. Zero means 30 seconds, negative means not at all.
	Settle time.Duration
	// Backoff is how long to wait after a driver call that failed. The zero value
	// is that of package codes.
	Backoff codes.BackoffPolicy
}

const defaultSettle = 30 * time.Second

// DefaultPolicy returns the timeouts, the limit and the conditions that the
// reference system has by default: 20 minutes to join, 10 minutes to recover, 2
// hours to drain, 20 minutes for an update in place, 4 days of preservation, 2
// minutes to detach volumes, one replacement at a time.
func DefaultPolicy() Policy {
	return Policy{
		CreationTimeout:  20 * time.Minute,
		HealthTimeout:    10 * time.Minute,
		DrainTimeout:     2 * time.Hour,
		InPlaceTimeout:   20 * time.Minute,
		PreserveTimeout:  96 * time.Hour,
		DetachTimeout:    2 * time.Minute,
		MaxReplacements:  1,
		HealthConditions: ParseHealthConditions("KernelDeadlock,ReadonlyFilesystem,DiskPressure,NetworkUnavailable"),
	}
}

// forMachine returns the policy with the overrides of one machine.
func (p Policy) forMachine(m *v1alpha1.Machine) Policy {
	p.Settle = cmp.Or(p.Settle, defaultSettle)
	if c := m.Spec.MachineConfiguration; c != nil {
		for _, timeout := range []struct {
			of  *time.Duration
			own *metav1.Duration
		}{
			{&p.CreationTimeout, c.MachineCreationTimeout},
			{&p.HealthTimeout, c.MachineHealthTimeout},
			{&p.DrainTimeout, c.MachineDrainTimeout},
			{&p.InPlaceTimeout, c.MachineInPlaceUpdateTimeout},
			{&p.PreserveTimeout, c.MachinePreserveTimeout},
		} {
			if timeout.own != nil {
				*timeout.of = timeout.own.Duration
			}
		}
		if c.NodeConditions != nil {
			p.HealthConditions = ParseHealthConditions(*c.NodeConditions)
		}
		if c.DisableHealthTimeout != nil && *c.DisableHealthTimeout {
			p.HealthTimeout = 0
		}
	}
	if text := m.Annotations[v1alpha1.EffectiveCreationTimeout]; text != "" {
		if d, err := time.ParseDuration(text); err == nil {
			p.CreationTimeout = d
		}
	}
	return p
}
