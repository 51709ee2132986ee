// SPDX-License-Identifier: Apache-2.0

package facts

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// RetryAsked reports whether an object has the annotation by which a user asks for the next attempt.
func RetryAsked(o metav1.Object) bool {
	_, asked := o.GetAnnotations()[v1alpha1.RetryNowAnnotation]
	return asked
}

// PassesRetryOn reports whether the retry that a user asks of the owner of a machine is asked of the
// machine: it waits, and is not asked yet.
func PassesRetryOn(m *v1alpha1.Machine) bool {
	c := ConditionOf(m.Status.Conditions, v1alpha1.MachineWaiting)
	return c != nil && c.Status == corev1.ConditionTrue && !RetryAsked(m)
}
