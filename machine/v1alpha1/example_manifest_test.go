// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

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

// parse returns the Machine of a manifest. Unknown fields are an error.
func parse(manifest string) (*v1alpha1.Machine, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	object, err := runtime.Decode(codecs.UniversalDeserializer(), []byte(manifest))
	if err != nil {
		return nil, err
	}
	m, ok := object.(*v1alpha1.Machine)
	if !ok {
		return nil, fmt.Errorf("%T is not a Machine", object)
	}
	return m, nil
}

// A program reads a Machine from a manifest.
func Example() {
	m, err := parse(manifest)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("machine", m.Name, "of class", m.Spec.Class.Name)
	fmt.Println("drain timeout", m.Spec.MachineDrainTimeout.Duration)
	// Output:
	// machine web-1 of class small
	// drain timeout 10m0s
}
