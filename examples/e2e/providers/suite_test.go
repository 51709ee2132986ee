// SPDX-License-Identifier: Apache-2.0

package providers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/programs/manager/apptest"
)

func TestSuite_Provider_NineChecksPass(t *testing.T) {
	w := newWorld(t, nil)
	r := w.suite(w.environment())
	want := map[string]string{"BeforeSuite": "passed", "AfterSuite": "passed"}
	for _, c := range apptest.Checks() {
		want[c.Name] = "passed"
	}
	require.Len(t, want, 9+2)
	require.Equal(t, want, r.states())
	w.nothingLeft()
}
