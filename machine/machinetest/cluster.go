// SPDX-License-Identifier: Apache-2.0

// Package machinetest is a control cluster in memory, for tests: [New] returns an API server that
// serves Machines, MachineSets, MachineDeployments and MachineClasses beside the built-in kinds,
// and their clientset.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//
//		apierrors "k8s.io/apimachinery/pkg/api/errors"
//		metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
//
//		"github.com/machinist-dev/machinist/drain/draintest"
//		"github.com/machinist-dev/machinist/machine/machinetest"
//		"github.com/machinist-dev/machinist/machine/v1alpha1"
//	)
//
//	func main() {
//		cluster, clientset := machinetest.New(draintest.Options{})
//		machines := clientset.MachineV1alpha1().Machines("shop")
//		machine := &v1alpha1.Machine{}
//		machine.Name = "worker-1"
//		machine, err := machines.Create(context.Background(), machine, metav1.CreateOptions{})
//		fmt.Println(machine.UID != "", err) // true <nil>
//		cluster.Inject(draintest.Fault{Kind: draintest.Conflict, Verb: "update", Times: 1})
//		_, err = machines.Update(context.Background(), machine, metav1.UpdateOptions{})
//		fmt.Println(apierrors.IsConflict(err)) // true
//	}
//
// The cluster is a [draintest.Cluster]: its Client is for the built-in kinds, and its History has
// every write.
package machinetest

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// New returns an empty cluster that serves the kinds of package v1alpha1 and the built-in kinds,
// and a clientset for them. The clientset is safe for concurrent use. Its discovery has the kinds.
// Attach more clientsets with Attach. New sets Scheme and Kinds of the options.
func New(o draintest.Options) (*draintest.Cluster, *fake.Clientset) {
	o.Scheme, o.Kinds = allKinds(), kinds()
	cluster, machines := draintest.New(o), fake.NewSimpleClientset() // its own tracker stays empty
	cluster.Attach(&machines.Fake)
	return cluster, machines
}

// kinds returns the kinds of package v1alpha1 as their CustomResourceDefinitions declare them: all
// in namespaces, and all except MachineClass with a status subresource.
func kinds() []draintest.Kind {
	served := make([]draintest.Kind, 0, 4)
	for _, kind := range []string{"Machine", "MachineSet", "MachineDeployment"} {
		served = append(served, draintest.Kind{GroupVersionKind: v1alpha1.SchemeGroupVersion.WithKind(kind)})
	}
	return append(served, draintest.Kind{
		GroupVersionKind: v1alpha1.SchemeGroupVersion.WithKind("MachineClass"), NoStatusSubresource: true,
	})
}

// allKinds returns the scheme of all kinds. It is shared and must not be changed.
var allKinds = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(scheme.AddToScheme, v1alpha1.AddToScheme)
	if err := builder.AddToScheme(s); err != nil {
		return nil // cannot happen: no two kinds of these share a name
	}
	return s
})
