// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machineset/runner"
)

func TestExecutor_NothingSet_Error(t *testing.T) {
	_, err := new(runner.Executor).Reconcile(t.Context(), types.NamespacedName{})
	require.ErrorContains(t, err, "no Reader")
	_, err = runner.Observe(t.Context(), nil, types.NamespacedName{})
	require.ErrorContains(t, err, "no Reader")
	_, err = runner.NewInformers(nil, nil)
	require.ErrorContains(t, err, "no factory")
	require.Empty(t, runner.Affected(t.Context(), nil, nil, nil))
}
