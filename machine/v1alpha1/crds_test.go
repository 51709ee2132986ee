// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestCRDs_FourKinds_NamesOfMCM(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, plural, short string
		status, scale       bool
		columns             []string // those of kubectl get -o wide alone have a star
	}{
		"machines.machine.sapcloud.io": {
			"Machine", "machines", "mc", true, false, []string{"Status", "Age", "Node", "Waiting", "ProviderID", "Class*", "Operation*", "State*", "Message*"},
		},
		"machineclasses.machine.sapcloud.io": {
			"MachineClass", "machineclasses", "mcc", false, false, []string{"Provider", "Instance Type", "Zone", "Age", "Region*"},
		},
		"machinesets.machine.sapcloud.io": {
			"MachineSet", "machinesets", "mcs", true, true,
			[]string{"Desired", "Current", "Ready", "Available", "Age", "Class*", "Progressing*"},
		},
		"machinedeployments.machine.sapcloud.io": {
			"MachineDeployment", "machinedeployments", "mcd", true, true,
			[]string{"Ready", "Desired", "Up-to-date", "Available", "Age", "Class*", "Strategy*", "Progressing*"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := definitions(t)[tc.kind]
			require.Equal(t, "apiextensions.k8s.io/v1", d.APIVersion)
			require.Equal(t, "CustomResourceDefinition", d.Kind)
			require.Equal(t, name, d.Metadata.Name)
			require.Equal(t, v1alpha1.GroupName, d.Spec.Group)
			require.Equal(t, "Namespaced", d.Spec.Scope)
			require.Equal(t, tc.plural, d.Spec.Names.Plural)
			require.Equal(t, tc.kind+"List", d.Spec.Names.ListKind)
			require.Equal(t, []string{tc.short}, d.Spec.Names.ShortNames)
			require.Len(t, d.Spec.Versions, 1)
			v := d.Spec.Versions[0]
			require.Equal(t, "v1alpha1", v.Name)
			require.True(t, v.Served)
			require.True(t, v.Storage)
			require.Equal(t, tc.status, v.Subresources.Status != nil, "status subresource")
			require.Equal(t, tc.scale, v.Subresources.Scale != nil, "scale subresource")
			if tc.scale {
				require.Equal(t, ".spec.replicas", v.Subresources.Scale.SpecReplicasPath)
				require.Equal(t, ".status.replicas", v.Subresources.Scale.StatusReplicasPath)
			}
			var columns []string
			for _, c := range v.AdditionalPrinterColumns {
				columns = append(columns, c.Name+strings.Repeat("*", c.Priority))
			}
			require.Equal(t, tc.columns, columns)
		})
	}
}
