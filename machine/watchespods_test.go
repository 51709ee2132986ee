// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestOnlyAMachineThatIsBeingDeletedWatchesPods(t *testing.T) {
	require.False(t, machine.WatchesPods(nil))
	m := &v1alpha1.Machine{}
	require.False(t, machine.WatchesPods(m))
	m.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	require.True(t, machine.WatchesPods(m))
}
