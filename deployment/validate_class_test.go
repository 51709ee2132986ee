// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// TestValidate_ClassOfAnyForm_RefusedAsForAMachine asserts that a reference to a class that is refused
// for a machine is refused for its set and its deployment, with the same message.
func TestValidate_ClassOfAnyForm_RefusedAsForAMachine(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"", "MachineClass", "machineclass", "AWSMachineClass"} {
		for _, name := range []string{"", "small"} {
			d, m, set := rolling(1, 1, 0), &v1alpha1.Machine{}, &v1alpha1.MachineSet{}
			d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: kind, Name: name}
			m.Spec.Class, set.Spec.Template, set.Spec.Selector = d.Spec.Template.Spec.Class, d.Spec.Template, d.Spec.Selector
			want := machine.Validate(m)
			require.Equal(t, kind == "MachineClass" && name != "", len(want) == 0, "%q %q", kind, name)
			for i := range want {
				want[i].Field = strings.Replace(want[i].Field, "spec.class", "spec.template.spec.class", 1)
			}
			require.Equal(t, want, machineset.Validate(set), "%q %q", kind, name)
			require.Equal(t, want, deployment.Validate(d), "%q %q", kind, name)
		}
	}
}
