// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// initialize sets the defaults of a new object. It drops the status, except that of a node. Pods are Pending and have the
// default grace period.
func initialize(k *kind, obj runtime.Object) {
	if k.status != statusInline && k.gvr != nodesResource {
		clearStatus(obj)
	}
	if pod := orNil[corev1.Pod](obj); pod != nil {
		pod.Status.Phase = corev1.PodPending
		defaultPod(pod)
	}
}

func defaultPod(pod *corev1.Pod) {
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(corev1.DefaultTerminationGracePeriodSeconds))
	}
	if *pod.Spec.TerminationGracePeriodSeconds < 0 {
		*pod.Spec.TerminationGracePeriodSeconds = 1
	}
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
}
