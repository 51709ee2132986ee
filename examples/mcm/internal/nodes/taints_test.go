// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gardener/machine-controller-manager/pkg/util/taints"
)

func TestParseTaints_Texts_TaintsOrError(t *testing.T) {
	for text, want := range map[string]string{
		"a=b:NoSchedule":            "+a=b:NoSchedule",
		"example.com/a=:NoExecute":  "+example.com/a:NoExecute",
		"a-":                        "-a:",
		"a:PreferNoSchedule-":       "-a:PreferNoSchedule",
		"a":                         "error",
		"a:NoSchedule":              "error",
		"a=b":                       "error",
		"a=b-":                      "error",
		"a=b:Sometimes":             "error",
		"a:Sometimes-":              "error",
		"a=b:NoSchedule-":           "error",
		"a=b:NoSchedule:NoSchedule": "error",
		"a=b=c:NoSchedule":          "error",
		"=b:NoSchedule":             "error",
		"":                          "error",
		"-":                         "error",
	} {
		add, remove, err := taints.ParseTaints([]string{text})
		got := ""
		for _, o := range add {
			got += "+" + o.ToString()
		}
		for _, o := range remove {
			got += fmt.Sprintf("-%s:%s", o.Key, o.Effect)
		}
		if err != nil {
			got += "error"
		}
		require.Equal(t, want, got, "%q", text)
	}
	_, _, err := taints.ParseTaints([]string{"a=b:NoSchedule", "a=c:NoSchedule"})
	require.ErrorContains(t, err, "a=c:NoSchedule")
	add, remove, err := taints.ParseTaints([]string{"a=b:NoSchedule", "a=c:NoExecute", "a-"})
	require.NoError(t, err)
	require.Len(t, append(add, remove...), 3)
}
