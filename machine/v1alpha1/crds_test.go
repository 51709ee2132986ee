// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCRDs_FourKinds_NamesOfMCM(t *testing.T) {
	got := map[string]string{}
	for kind, d := range definitions(t) {
		require.Len(t, d.Spec.Versions, 1)
		names, v := d.Spec.Names, d.Spec.Versions[0]
		text := []string{d.APIVersion, d.Kind, d.Spec.Group, d.Spec.Scope, names.Plural, names.ListKind, strings.Join(names.ShortNames, ","), fmt.Sprintf("%s served=%t stored=%t", v.Name, v.Served, v.Storage)}
		if v.Subresources.Status != nil {
			text = append(text, "status")
		}
		if s := v.Subresources.Scale; s != nil {
			text = append(text, "scale"+s.SpecReplicasPath+s.StatusReplicasPath)
		}
		var columns []string
		for _, c := range v.AdditionalPrinterColumns {
			columns = append(columns, c.Name+strings.Repeat("*", c.Priority))
		}
		require.Equal(t, names.Plural+".machine.sapcloud.io", d.Metadata.Name)
		got[kind] = strings.Join(text, " ") + ": " + strings.Join(columns, ", ")
	}
	const crd, version, scale = "apiextensions.k8s.io/v1 CustomResourceDefinition machine.sapcloud.io Namespaced ", " v1alpha1 served=true stored=true", " status scale.spec.replicas.status.replicas: "
	require.Equal(t, map[string]string{ // columns of kubectl get -o wide alone have a star
		"Machine":           crd + "machines MachineList mc" + version + " status: Status, Age, Node, Waiting, ProviderID, Class*, Operation*, State*, Message*",
		"MachineClass":      crd + "machineclasses MachineClassList mcc" + version + ": Provider, Instance Type, Zone, Age, Region*",
		"MachineSet":        crd + "machinesets MachineSetList mcs" + version + scale + "Desired, Current, Ready, Available, Age, Class*, Progressing*",
		"MachineDeployment": crd + "machinedeployments MachineDeploymentList mcd" + version + scale + "Ready, Desired, Up-to-date, Available, Age, Class*, Strategy*, Progressing*",
	}, got)
}
