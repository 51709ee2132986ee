// SPDX-License-Identifier: Apache-2.0

// Package machinetest makes a control cluster in memory: an API server that
// serves Machines, MachineSets, MachineDeployments and MachineClasses beside the
// built-in kinds, with the typed fake clientset over it.
//
// The rules of the API server, its faults on demand and its history are those of
// [draintest.Cluster]; this package only knows the kinds:
//
//	cluster, machines := machinetest.New(draintest.Options{Clock: clock})
//	secrets := cluster.Client()
//	cluster.Inject(draintest.Fault{Kind: draintest.Conflict, Verb: "update", Times: 1})
//	… // machines is a versioned.Interface, for controllers and informers
//
// It is for tests and demonstrations; nothing of it is kept on disk.
package machinetest

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// New returns an empty cluster that serves the kinds of package v1alpha1 beside
// the built-in ones, and a clientset for them. The clientset may be used by
// several goroutines, and its discovery knows the kinds; more of them may be
// attached to the cluster. New sets Scheme and Kinds of the options.
func New(o draintest.Options) (*draintest.Cluster, *fake.Clientset) {
	o.Scheme, o.Kinds = allKinds(), kinds()
	cluster, machines := draintest.New(o), fake.NewSimpleClientset() // its own tracker stays empty
	cluster.Attach(&machines.Fake)
	return cluster, machines
}

// kinds returns the kinds of package v1alpha1 as their definitions declare them:
// all in namespaces, all with a status subresource except MachineClasses, which
// have no status.
func kinds() []draintest.Kind {
	served := make([]draintest.Kind, 0, 4)
	for _, kind := range []string{"Machine", "MachineSet", "MachineDeployment"} {
		served = append(served, draintest.Kind{GroupVersionKind: v1alpha1.SchemeGroupVersion.WithKind(kind)})
	}
	return append(served, draintest.Kind{
		GroupVersionKind: v1alpha1.SchemeGroupVersion.WithKind("MachineClass"), NoStatusSubresource: true,
	})
}

// allKinds returns the scheme of all kinds. It is shared and not changed.
var allKinds = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(scheme.AddToScheme, v1alpha1.AddToScheme)
	if err := builder.AddToScheme(s); err != nil {
		return nil // cannot happen: no two kinds of these share a name
	}
	return s
})
