// SPDX-License-Identifier: Apache-2.0

package deploymenttest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/machinist-dev/machinist/deployment/deploymenttest"
)

func TestASetThatAUserDeletesIsMadeAgainWhenItsMachinesHaveGone(t *testing.T) {
	w := settled(t, ofThree(), deploymenttest.Model{})
	set, machines := w.Sets()[0], w.Machines()
	require.NoError(t, w.DeleteSet(set.Name))
	require.NotNil(t, w.Sets()[0].DeletionTimestamp)
	complete(t, w)
	require.Len(t, w.Sets(), 1)
	require.NotEqual(t, set.UID, w.Sets()[0].UID)
	require.Len(t, w.Machines(), len(machines))
	for _, m := range machines {
		require.Nil(t, w.Machine(m.Name))
	}
	require.True(t, apierrors.IsNotFound(w.DeleteSet("no-such-set")))
}
