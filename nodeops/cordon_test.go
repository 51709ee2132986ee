// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/nodeops"
)

func TestCordonMarksACopyOnce(t *testing.T) {
	node := crowdedNode()
	before := node.DeepCopy()
	got, changed := nodeops.Cordon(node)
	require.True(t, changed)
	require.True(t, got.Spec.Unschedulable)
	require.Empty(t, cmp.Diff(before, node))

	again, changed := nodeops.Cordon(got)
	require.False(t, changed)
	require.Empty(t, cmp.Diff(got, again))
	again.Labels["scribble"] = ""
	require.NotContains(t, got.Labels, "scribble")

	none, changed := nodeops.Cordon(nil)
	require.Nil(t, none)
	require.False(t, changed)
}
