// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInPlaceMachinesOfOtherSetsAreNotNamed(t *testing.T) {
	s := newUpdScene(updDeployment(0, "0", "1", true), "c2", 1, 0)
	s.machine("new", "a", "moved")
	s.machine("old", "b", "moved")
	s.early("b")
	p := s.plan()
	names, _ := p.names(s.set("new"))
	require.Equal(t, []string{"a"}, names, p.dec.String())
}
