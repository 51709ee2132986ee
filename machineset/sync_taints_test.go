// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestEveryFieldOfATaintIsFollowed(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*corev1.Taint)
		differs bool
	}{
		"the same taint":                {func(*corev1.Taint) {}, false},
		"another key":                   {func(t *corev1.Taint) { t.Key = "other" }, true},
		"another value":                 {func(t *corev1.Taint) { t.Value = "other" }, true},
		"another effect":                {func(t *corev1.Taint) { t.Effect = corev1.TaintEffectNoExecute }, true},
		"no time":                       {func(t *corev1.Taint) { t.TimeAdded = nil }, true},
		"the same time in another zone": {func(t *corev1.Taint) { t.TimeAdded = &metav1.Time{Time: epoch.In(time.FixedZone("", 60))} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			taint := corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: epoch}}
			set, m := newSet(1), newMachine("m", v1alpha1.MachineRunning)
			set.Spec.Template.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{taint}
			c.change(&taint)
			m.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{taint}
			_, differs := syncOf(set, m)
			require.Equal(t, c.differs, differs)
		})
	}
}
