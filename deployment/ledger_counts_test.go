// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// The machine is of the old set, so that no hold tells when.
func TestADecisionIsMadeAgainWhenAMachineHasBeenAvailableForLongEnough(t *testing.T) {
	for since, check := range map[time.Duration]time.Time{20 * time.Second: rollNow.Add(40 * time.Second), time.Hour: {}} {
		d := rolling(3, 1, 0)
		d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "2"}
		d.Spec.MinReadySeconds = 60
		in := rollSee(d, rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 1, 1, 0))
		in.Machines[0].Status.CurrentStatus.LastUpdateTime = metav1.NewTime(rollNow.Add(-since))
		dec := deployment.Decide(in, rollPolicy, rollNow)
		require.Empty(t, dec.Actions, dec.String())
		require.Equal(t, check, dec.NextCheck, dec.String())
	}
}
