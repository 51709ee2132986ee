// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// initialise sets what the server decides about a new object. The status is dropped, except that of a node, which a
// kubelet may register with its conditions; pods start Pending with the default grace period.
func initialise(k *kind, obj runtime.Object) {
	if k.status != statusInline && k.gvr != nodesResource {
		clearStatus(obj)
	}
	switch typed := obj.(type) {
	case *corev1.Pod:
		typed.Status.Phase = corev1.PodPending
		defaultPod(typed)
	case *corev1.Secret:
		if typed.Type == "" {
			typed.Type = corev1.SecretTypeOpaque
		}
	case *corev1.Namespace:
		typed.Status.Phase = corev1.NamespaceActive
	case *corev1.PersistentVolumeClaim:
		typed.Status.Phase = corev1.ClaimPending
	case *corev1.PersistentVolume:
		typed.Status.Phase = corev1.VolumePending
	}
}

func defaultPod(pod *corev1.Pod) {
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
	}
	if *pod.Spec.TerminationGracePeriodSeconds < 0 {
		*pod.Spec.TerminationGracePeriodSeconds = 1
	}
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
}

// foldText moves the text of a secret into its data, where it wins.
func foldText(secret *corev1.Secret) {
	if len(secret.StringData) == 0 {
		return
	}
	data := maps.Clone(secret.Data)
	if data == nil {
		data = map[string][]byte{}
	}
	for key, text := range secret.StringData {
		data[key] = []byte(text)
	}
	secret.Data, secret.StringData = data, nil
}
