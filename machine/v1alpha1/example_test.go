// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A manifest becomes a typed object by way of the scheme.
func Example() {
	const manifest = `
apiVersion: machine.sapcloud.io/v1alpha1
kind: Machine
metadata:
  name: web-1
spec:
  class:
    kind: MachineClass
    name: small
  drainTimeout: 10m
`
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	obj, err := runtime.Decode(codecs.UniversalDeserializer(), []byte(manifest))
	if err != nil {
		panic(err)
	}
	m := obj.(*v1alpha1.Machine)
	fmt.Println(m.Name, "is of class", m.Spec.Class.Name)
	fmt.Println("its drain may take", m.Spec.MachineDrainTimeout.Duration)
	// Output:
	// web-1 is of class small
	// its drain may take 10m0s
}

// The definitions are part of the package; apply them with any client.
func ExampleCRDs() {
	for _, crd := range v1alpha1.CRDs() {
		fmt.Println(crd.Name, len(crd.YAML) > 0)
	}
	// Output:
	// machineclasses.machine.sapcloud.io true
	// machinedeployments.machine.sapcloud.io true
	// machines.machine.sapcloud.io true
	// machinesets.machine.sapcloud.io true
}
