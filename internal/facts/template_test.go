// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/nodeops"
)

// FuzzNodeTemplate compares what is ignored of a template with what the validation of the API server
// says.
func FuzzNodeTemplate(f *testing.F) {
	for _, text := range []string{
		"", "a", "a.b/c", "A_b", "a/b/c", "/a", "a/", "a..b/c", "a.-b/c", "a-.b/c", "-a", "a-", "a b", "é", "A.B/c", "x/A", "a--b/c", "a__b", "a_b/c",
		strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 64) + "/b", strings.Repeat("a.", 126) + "a/b", strings.Repeat("a.", 127) + "a/b", "a\n",
	} {
		f.Add(text, "v")
		f.Add("k", text)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		label := len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0
		annotation := len(validation.IsQualifiedName(strings.ToLower(key))) == 0
		for _, c := range []struct {
			valid bool
			of    nodeops.Template
		}{
			{label, nodeops.Template{Labels: map[string]string{key: value}}},
			{annotation, nodeops.Template{Annotations: map[string]string{key: value}}},
			{label, nodeops.Template{Taints: []corev1.Taint{{Key: key, Value: value, Effect: corev1.TaintEffectNoExecute}}}},
		} {
			left, errs := facts.Acceptable(c.of)
			require.Equal(t, c.valid, len(errs) == 0)
			require.Equal(t, c.valid, len(left.Labels)+len(left.Annotations)+len(left.Taints) == 1)
		}
	})
}
