// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8sscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A generated fake clientset of custom kinds uses the objects of the cluster: Attach takes the
// address of its Fake. As with a real API server, a create request does not set the status.
func ExampleCluster_Attach() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{k8sscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			fmt.Println(err)
			return
		}
	}
	cluster := draintest.New(draintest.Options{
		Scheme: scheme, Kinds: []draintest.Kind{{GroupVersionKind: v1alpha1.SchemeGroupVersion.WithKind("Machine")}},
	})
	clientset := fake.NewSimpleClientset()
	cluster.Attach(&clientset.Fake)

	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}
	m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning
	created, err := clientset.MachineV1alpha1().Machines("shop").Create(context.Background(), m, metav1.CreateOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(created.Namespace, created.Generation, created.UID != "")
	fmt.Printf("phase %q\n", created.Status.CurrentStatus.Phase)
	fmt.Println(len(cluster.History()), "write")
	// Output:
	// shop 1 true
	// phase ""
	// 1 write
}
