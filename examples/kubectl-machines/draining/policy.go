// SPDX-License-Identifier: Apache-2.0

package draining

import (
	"errors"
	"fmt"
	"time"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/examples/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/nodeops"
)

// defaultOwner is the owner of the cordon with --undo and without --owner.
const defaultOwner = "drain"

// completeCordon sets the default owner and checks the cordon.
func (o *options) completeCordon() error {
	if o.undo && o.owner == "" {
		o.owner = defaultOwner
	}
	if o.taint != "" && o.owner == "" {
		return errors.New("--taint needs --owner, which removes it later")
	}
	if err := o.cordon().Validate(); err != nil {
		return fmt.Errorf("--owner or --taint: %s", cli.OneLine(err))
	}
	return nil
}

func (o *options) cordon() nodeops.Cordon {
	return nodeops.Cordon{Owner: o.owner, Reason: "drain", Taint: o.taint}
}

// policy returns the policy of the flags.
func (o *options) policy() drain.Policy {
	p := drain.Policy{
		Ladder:               o.ladder(),
		Cordon:               o.cordon(),
		EvictUnmanaged:       o.force,
		EvictLocalStorage:    o.deleteEmptyDirData,
		PodSelector:          o.podSelector,
		ClusterAPILabels:     o.clusterAPILabels,
		DoNotDisrupt:         o.honorDoNotDisrupt,
		SkipTerminatingAfter: time.Duration(o.skipWaitForDelete) * time.Second,
		Volumes:              drain.VolumePolicy{Wait: o.waitForVolumes},
	}
	if o.gracePeriod >= 0 {
		p.Grace = new(time.Duration(o.gracePeriod) * time.Second)
	}
	return p
}

// ladder returns how the drain escalates, and when it gives up.
func (o *options) ladder() drain.Ladder {
	var l drain.Ladder
	if o.disableEviction || o.forceAfter > 0 {
		l = append(l, drain.Rung{After: o.forceAfter, Action: drain.IgnoreBudgets})
	}
	if o.forceDeleteAfter > 0 {
		l = append(l, drain.Rung{After: o.forceDeleteAfter, Action: drain.ForceDeletePods})
	}
	if o.timeout > 0 {
		l = append(l, drain.Rung{After: o.timeout, Action: drain.GiveUp})
	}
	return l
}
