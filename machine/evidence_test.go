// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// asOf is how long ago the API server of the Node said what is known of it; ago 0 and
// above.
func asOf(ago time.Duration) change {
	return func(in *machine.Observation) { in.Node.AsOf = now.Add(-ago) }
}

func TestEvidence_OlderThanTheTimeout_FailsNoMachine(t *testing.T) {
	t.Parallel()
	unknown := func(changes ...change) machine.Observation { // its time was over 5 minutes ago
		return living(v1alpha1.MachineUnknown, append([]change{sick, copied, spec(func(m *v1alpha1.Machine) {
			m.Status.CurrentStatus.LastUpdateTime.Time = now.Add(-15 * time.Minute)
		})}, changes...)...)
	}
	pending := func(changes ...change) machine.Observation { // so was its
		return living(v1alpha1.MachinePending, append([]change{intended, looked, spec(func(m *v1alpha1.Machine) {
			m.CreationTimestamp.Time = now.Add(-25 * time.Minute)
		})}, changes...)...)
	}
	ageless := func(in *machine.Observation) { in.Node.AsOf = time.Time{} }
	silent := func(in *machine.Observation) { in.Node.AsOf, in.Node.Unanswered = time.Time{}, true }
	reads := "read node n from the API server"
	for name, tc := range map[string]struct {
		in   machine.Observation
		want string
	}{
		"unknown, and the age is not known":          {unknown(ageless), reads},
		"unknown, and nothing was heard since":       {unknown(asOf(5*time.Minute + time.Second)), reads},
		"unknown, heard just then":                   {unknown(asOf(5 * time.Minute)), `record phase "Failed",  Failed`},
		"one of a deployment, before its permit":     {unknown(ageless, inPool, siblings(true)), reads},
		"and not without room for it":                {unknown(ageless, inPool, siblings(true, v1alpha1.MachineFailed)), ""},
		"unknown, and no answer":                     {unknown(silent), ""},
		"pending, and the age is not known":          {pending(ageless), reads},
		"pending, and nothing was heard since":       {pending(asOf(5*time.Minute + time.Second)), reads},
		"pending, heard just then":                   {pending(asOf(5 * time.Minute)), `record phase "Failed", Create Failed`},
		"pending, and no answer":                     {pending(silent), ""},
		"pending, the label lost":                    {pending(ageless, unlabelled), "read the node with the provider ID from the API server"},
		"one that has recovered meanwhile runs":      {unknown(asOf(0), healthy), `record phase "Running", HealthCheck Successful`},
		"one that recovered in an old cache as well": {unknown(ageless, healthy), `record phase "Running", HealthCheck Successful`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := lawful(t, tc.in, machine.DefaultPolicy())
			if tc.want == "" {
				require.Nil(t, d.Do, d.String())
				require.NotZero(t, d.NextCheck)
				return
			}
			require.NotNil(t, d.Do, d.String())
			require.Equal(t, tc.want, d.Do.String())
		})
	}
	d := lawful(t, unknown(silent), machine.DefaultPolicy())
	require.Equal(t, machine.ReasonTargetUnreachable, d.Reason)
	require.Equal(t, "target-cluster", d.Holds[0].Subject)
}

// unlabelled takes the label node away, and what the provider says of the Node.
var unlabelled change = func(in *machine.Observation) {
	in.Machine.Labels = nil
	in.VM = machine.VMView{Sighting: machine.Present, ProviderID: in.Machine.Spec.ProviderID, SeenAt: now}
	in.Node.Node = (*corev1.Node)(nil)
}
