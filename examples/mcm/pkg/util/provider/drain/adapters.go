// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/driver"
)

// VolumeAttachmentHandler is the type of an argument of [NewDrainOptions] that has no effect.
type VolumeAttachmentHandler struct{}

// Options is the drain of one Node.
type Options struct {
	executor runner.Executor
	nodeName string
	policy   drain.Policy
}

// forced has the first rungs of a forced drain: pods are deleted instead of evicted.
var forced = map[bool]drain.Ladder{true: {{Action: drain.IgnoreBudgets}}}

// NewDrainOptions returns the drain of a Node. A forced drain deletes pods instead of evicting them.
// The drain ends after the timeout; zero means two hours. A grace period of zero or less means that
// of the pod. Pods with local data are evicted if deleteLocalData and ignoreDaemonsets are true. The
// drain waits for volumes if it is not forced and has a driver. The listers, which may be nil, and
// all other arguments have no effect.
func NewDrainOptions(
	client kubernetes.Interface, _ *semver.Version,
	timeout time.Duration, _ int32, pvDetachTimeout, pvReattachTimeout time.Duration,
	nodeName string, gracePeriodSeconds int,
	forceDeletePods, ignorePodsWithoutControllers, deleteLocalData, ignoreDaemonsets bool,
	_, _ io.Writer, d driver.Driver,
	_ corelisters.PersistentVolumeClaimLister, _ corelisters.PersistentVolumeLister,
	_ policylisters.PodDisruptionBudgetLister, _ corelisters.NodeLister, _ corelisters.PodLister,
	_ *VolumeAttachmentHandler, _ cache.InformerSynced,
) *Options {
	return &Options{runner.Executor{Client: runner.NewClient(client)}, nodeName, drain.Policy{
		Ladder:            slices.Concat(forced[forceDeletePods], drain.Ladder{{After: cmp.Or(timeout, drain.DefaultMachineDrainTimeout), Action: drain.GiveUp}}),
		Grace:             map[bool]*time.Duration{true: ptr.To(time.Duration(gracePeriodSeconds) * time.Second)}[gracePeriodSeconds > 0],
		AllAtOnce:         true,
		Reassert:          true,
		EvictUnmanaged:    ignorePodsWithoutControllers,
		EvictLocalStorage: deleteLocalData && ignoreDaemonsets,
		Volumes:           drain.VolumePolicy{Wait: d != nil && !forceDeletePods, DetachTimeout: pvDetachTimeout, ReattachTimeout: pvReattachTimeout},
	}}
}

// RunDrain drains the Node: see [runner.Executor.Run].
func (o *Options) RunDrain(ctx context.Context) error {
	_, err := o.executor.Run(ctx, o.nodeName, o.policy)
	return err
}
