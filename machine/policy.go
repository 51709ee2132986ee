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

// Policy has the timeouts and what counts as unhealthy. With the zero Policy no timeout ends, and
// no machine is failed or forced. [DefaultPolicy] has the defaults of MCM.
type Policy struct {
	// CreationTimeout is how long the Node of a machine may take to join before the machine is
	// failed, counted from its creation: see [Observation.FirstSeen]. Zero means no limit.
	CreationTimeout time.Duration
	// HealthTimeout is how long a machine may be Unknown before it is failed, counted from the
	// change to that phase. Zero means no limit.
	HealthTimeout time.Duration
	// DrainTimeout is how long a drain respects PodDisruptionBudgets and grace periods, counted
	// from the deletion timestamp. Zero means no limit.
	DrainTimeout time.Duration
	// MaxReplacements is how many machines of one deployment may be failed because of their health
	// and not be replaced yet. Zero means none.
	MaxReplacements int
	// InPlaceTimeout is how long an in-place update may take, counted from the change to phase
	// InPlaceUpdating. Zero means no limit.
	InPlaceTimeout time.Duration
	// PreserveTimeout is how long a machine is preserved. Zero means no limit.
	PreserveTimeout time.Duration
	// DetachTimeout is how long a volume may take to be detached before the VM is deleted, counted
	// from when no pod on the Node uses it. Zero means no limit.
	DetachTimeout time.Duration
	// ReattachTimeout is how long the drain of a machine that is deleted waits, for each volume of
	// an evicted pod, until it is attached to another Node. Pods with volumes are then evicted one
	// after the other. Zero means no wait.
	ReattachTimeout time.Duration
	// HealthConditions are types of Node conditions that make a machine unhealthy unless they are
	// False or missing. Ready always has to be True.
	HealthConditions []corev1.NodeConditionType
	// Settle is how long the provider may take to show a VM that it has created. For this time
	// after the deletion of a machine, the response that there is no VM is not believed. Zero means
	// 30 seconds, negative means none.
	Settle time.Duration
	// Backoff is how long to wait after a failed driver call. The zero value has the defaults of
	// package codes.
	Backoff codes.BackoffPolicy
}

const defaultSettle = 30 * time.Second

// DefaultPolicy returns the defaults of MCM: 20 minutes to join, 10 minutes to become healthy, 2
// hours to drain, 20 minutes for an in-place update, 4 days of preservation, 2 minutes to detach
// volumes, and one replacement at a time.
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
	if text := m.Annotations[v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout]; text != "" {
		if d, err := time.ParseDuration(text); err == nil {
			p.CreationTimeout = d
		}
	}
	return p
}
