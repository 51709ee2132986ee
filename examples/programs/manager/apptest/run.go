// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"context"
	"strings"
	"testing"
)

// Run opens a suite, carries out its checks as subtests, and closes it. A check that fails does not end the test, so that
// the search for orphans comes last in any case. go test needs a -timeout of more than
// ten times the Timeout.
func Run(t *testing.T, o Options) {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the logs of the controllers are in %s", s.o.LogDir)
	t.Cleanup(func() {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	for _, c := range Checks() {
		t.Run(strings.ReplaceAll(c.Name, ",", ""), func(t *testing.T) {
			if err := s.Healthy(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.Check(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		})
	}
}
