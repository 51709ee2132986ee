// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ignored says how much of a template is ignored.
func ignored(change func(*v1alpha1.NodeTemplateSpec)) int {
	m := newMachine("m")
	m.Spec.NodeTemplateSpec = v1alpha1.NodeTemplateSpec{}
	change(&m.Spec.NodeTemplateSpec)
	return len(machine.Ignored(m))
}

// FuzzWhatANodeCanHave compares what is ignored of a template with what the
// validation of the API server says.
func FuzzWhatANodeCanHave(f *testing.F) {
	for _, text := range []string{
		"", "a", "a.b/c", "A_b", "a/b/c", "/a", "a/", "a..b/c", "a.-b/c", "a-.b/c", "-a", "a-", "a b", "é", "A.B/c", "x/A", "a--b/c", "a__b", "a_b/c",
		strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 64) + "/b", strings.Repeat("a.", 126) + "a/b", strings.Repeat("a.", 127) + "a/b", "a\n",
	} {
		f.Add(text, "v")
		f.Add("k", text)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		label := len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0
		require.Equal(t, label, ignored(func(n *v1alpha1.NodeTemplateSpec) { n.Labels = map[string]string{key: value} }) == 0)
		require.Equal(t, label, ignored(func(n *v1alpha1.NodeTemplateSpec) {
			n.Spec.Taints = []corev1.Taint{{Key: key, Value: value, Effect: corev1.TaintEffectNoExecute}}
		}) == 0)
		annotation := len(validation.IsQualifiedName(strings.ToLower(key))) == 0
		require.Equal(t, annotation, ignored(func(n *v1alpha1.NodeTemplateSpec) { n.Annotations = map[string]string{key: value} }) == 0)
	})
}
