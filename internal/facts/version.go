// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CompareVersions compares the resourceVersions of two states of one object as [strings.Compare] does, and
// reports whether they can be compared: both are numbers as the API server writes them since Kubernetes 1.35,
// of any length, without leading zeros. (apimachinery has the comparison since v0.35.)
func CompareVersions(a, b metav1.Object) (order int, ok bool) {
	x, y := a.GetResourceVersion(), b.GetResourceVersion()
	if !isVersion(x) || !isVersion(y) {
		return 0, false
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)), true
}

func isVersion(s string) bool {
	return s != "" && s[0] != '0' && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}
