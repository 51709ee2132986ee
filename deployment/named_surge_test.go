// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
)

// A set replaces a machine that an autoscaler named before it is gone, if the
// replicas do not get fewer. So there is one machine more than the set asks for
// before the deletion was seen, and not only after it.
func TestAMachineThatIsReplacedBecauseSomebodyNamedItCountsBeforeItLeaves(t *testing.T) {
	for named, want := range map[bool]int32{false: 4, true: 3} {
		d := rolling(4, 0, 1)
		old, s := rollSet(d, "c1", 0, 0, 0), rollSet(d, "c2", 2, 2, 2)
		d.Spec.Template.Spec.Class.Name = "c2"
		in := rollSee(d, old, s)
		if named {
			at := rollNow.Add(-time.Minute).Format(time.RFC3339)
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, scaledKey, at)
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, scaledKey, at)
			metav1.SetMetaDataAnnotation(&in.Machines[0].ObjectMeta, markKey, at)
			metav1.SetMetaDataAnnotation(&in.Machines[0].ObjectMeta, prioKey, "1")
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, namesKey, in.Machines[0].Name+"~"+at)
		}
		dec := deployment.Plan(in, rollPolicy, rollNow)
		target, err := dec.Target(s.UID)
		require.NoError(t, err)
		require.Equal(t, want, target.To, dec.String())
	}
}
