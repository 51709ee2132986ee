// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// provider is how machines behave, according to the flags. Before the rollout, each machine becomes
// available.
type provider struct {
	options options
	world   *deploymenttest.World // since the rollout has begun
	quota   int64                 // noQuota for none
	oldSets map[string]bool       // sets that existed before the rollout
	failed  map[string]bool       // machines that have failed

	// created, gone and decisions count since the rollout began.
	created, gone, decisions int
}

// model returns the model of this provider.
func (p *provider) model() deploymenttest.Model {
	o := p.options
	m := deploymenttest.Model{
		Policy: deployment.Policy{
			FreeCapacity: o.freeCapacity,
			Discourage:   deployment.Discourage(o.discourage), HoldAutoscaler: o.holdAutoscaler,
		},
		NoCluster: o.noCluster, CreationTimeout: o.creationTimeout, HealthTimeout: o.healthTimeout,
		Create: p.create, Join: p.join, Update: p.update,
		Leave: func(*v1alpha1.Machine) time.Duration { return o.leave },
	}
	if o.byLabel {
		m.Policy.Gates = []func(deployment.Choice) (bool, machinist.Hold){deployment.SelectedByLabel}
	}
	m.OnWrite = p.count
	m.OnDecision = func(deployment.Observation, deployment.Decision) {
		if p.world != nil {
			p.decisions++
		}
	}
	return m
}

// start begins the rollout: machines behave according to the flags from now on.
func (p *provider) start(w *deploymenttest.World) {
	p.world, p.quota, p.oldSets = w, p.options.quota, map[string]bool{}
	for _, s := range w.Sets() {
		p.oldSets[s.Name] = true
	}
}

// create returns an error if there is no capacity for the VM of a machine.
func (p *provider) create(*v1alpha1.Machine) error {
	if p.quota == noQuota {
		return nil
	}
	vms := 0
	for _, m := range p.world.Machines() {
		if m.Spec.ProviderID != "" {
			vms++
		}
	}
	if int64(vms) < p.quota {
		return nil
	}
	return status.Error(codes.ResourceExhausted, fmt.Sprintf("the quota of %s is used up", machines(int(p.quota))))
}

func (p *provider) join(m *v1alpha1.Machine) (time.Duration, bool) {
	switch owner := metav1.GetControllerOfNoCopy(m); {
	case p.world == nil:
		return p.options.join, true
	case p.options.never && (owner == nil || !p.oldSets[owner.Name]):
		return 0, false
	default:
		return p.options.join, !p.fails(m)
	}
}

func (p *provider) update(m *v1alpha1.Machine) (time.Duration, bool) {
	return p.options.update, !p.options.never && !p.fails(m)
}

// fails reports whether a machine is one of those that fail. The result is the same for the same
// seed and name.
func (p *provider) fails(m *v1alpha1.Machine) bool {
	h := sha256.Sum256(fmt.Appendf(nil, "%d/%s", p.options.seed, m.Name))
	return float64(binary.BigEndian.Uint64(h[:]))/math.MaxUint64 < p.options.fail
}

// count counts machines.
func (p *provider) count(c deploymenttest.Change) {
	_, was := c.Before.(*v1alpha1.Machine)
	after, is := c.After.(*v1alpha1.Machine)
	switch {
	case p.world == nil:
	case is && !was:
		p.created++
	case was && !is:
		p.gone++
	}
	switch {
	case was && !is:
		delete(p.failed, c.Name)
	case is && after.Status.CurrentStatus.Phase == v1alpha1.MachineFailed:
		p.failed[c.Name] = true
	}
}
