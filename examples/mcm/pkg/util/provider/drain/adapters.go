// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"io"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gardener/machine-controller-manager/internal/drains"
	"github.com/machinist-dev/machinist/driver"
)

// VolumeAttachmentHandler is the type of an argument of [NewDrainOptions] that has no effect.
type VolumeAttachmentHandler struct{}

// Options are the settings of the drain of one Node.
type Options = drains.Options

// AdditionalPodFilter reports whether a pod is drained. It must not change the pod.
type AdditionalPodFilter = drains.PodFilter

// NewDrainOptions returns the drain of a Node. [Options] has what the arguments mean. The listers, which may be nil,
// and the arguments without a name have no effect.
func NewDrainOptions(
	client kubernetes.Interface, _ *semver.Version,
	timeout time.Duration, maxEvictRetries int32, pvDetachTimeout, pvReattachTimeout time.Duration,
	nodeName string, gracePeriodSeconds int,
	forceDeletePods, ignorePodsWithoutControllers, ignoreDaemonsets, deleteLocalData bool,
	out, errOut io.Writer, d driver.Driver,
	_ corelisters.PersistentVolumeClaimLister, _ corelisters.PersistentVolumeLister,
	_ policylisters.PodDisruptionBudgetLister, _ corelisters.NodeLister, _ corelisters.PodLister,
	_ *VolumeAttachmentHandler, _ cache.InformerSynced,
) *Options {
	return drains.New(client, nodeName, Options{
		ForceDeletePods: forceDeletePods, IgnorePodsWithoutControllers: ignorePodsWithoutControllers,
		IgnoreDaemonsets: ignoreDaemonsets, DeleteLocalData: deleteLocalData,
		Timeout: timeout, GracePeriodSeconds: gracePeriodSeconds, MaxEvictRetries: maxEvictRetries,
		PvDetachTimeout: pvDetachTimeout, PvReattachTimeout: pvReattachTimeout,
		Out: out, ErrOut: errOut, Driver: d,
	})
}
