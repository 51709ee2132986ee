// SPDX-License-Identifier: Apache-2.0

package command

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A provider is how machines behave, as the flags say. Before the roll-out begins every one of
// them comes up.
type provider struct {
	options options
	begun   bool
	quota   int64           // noQuota for none
	vms     int64           // that exist
	old     map[string]bool // sets that were there before the roll-out

	// Since the roll-out began: machines that came and went, and decisions.
	created, gone, decisions int
}

// model is the world of this provider.
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
		m.Policy.Gates = []deployment.Gate{deployment.SelectedByLabel}
	}
	m.OnWrite = p.count
	m.OnDecision = func(deployment.Observation, deployment.Decision) {
		if p.begun {
			p.decisions++
		}
	}
	return m
}

// create refuses the VM of a machine if there is no capacity for it.
func (p *provider) create(*v1alpha1.Machine) error {
	if p.quota == noQuota || p.vms < p.quota {
		return nil
	}
	return status.Error(codes.ResourceExhausted, fmt.Sprintf("quota of %d machines is used up", p.quota))
}

func (p *provider) join(m *v1alpha1.Machine) (time.Duration, bool) {
	switch {
	case !p.begun:
		return p.options.join, true
	case p.options.never && !p.old[setOf(m)]:
		return 0, false
	default:
		return p.options.join, !p.fails(m)
	}
}

func (p *provider) update(m *v1alpha1.Machine) (time.Duration, bool) {
	return p.options.update, !p.options.never && !p.fails(m)
}

// fails says whether a machine is one of those that fail: always the same ones for a seed.
func (p *provider) fails(m *v1alpha1.Machine) bool {
	h := sha256.Sum256(fmt.Appendf(nil, "%d/%s", p.options.seed, m.Name))
	return float64(binary.BigEndian.Uint64(h[:]))/math.MaxUint64 < p.options.fail
}

func setOf(m *v1alpha1.Machine) string {
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
		return owner.Name
	}
	return ""
}

// count keeps count of machines and VMs.
func (p *provider) count(c deploymenttest.Change) {
	before, was := c.Before.(*v1alpha1.Machine)
	after, is := c.After.(*v1alpha1.Machine)
	switch {
	case is && !was && p.begun:
		p.created++
	case was && !is && p.begun:
		p.gone++
	}
	if was && before.Spec.ProviderID != "" {
		p.vms--
	}
	if is && after.Spec.ProviderID != "" {
		p.vms++
	}
}
