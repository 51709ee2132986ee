// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// The tests of a provider share the control plane that TestMain started:
//
//	var cp *controlplane.ControlPlane
//
//	func TestMain(m *testing.M) {
//		os.Exit(controlplane.Run(m, controlplane.Options{}, func(c *controlplane.ControlPlane) { cp = c }))
//	}
func Example() {
	client, err := kubernetes.NewForConfig(cp.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("it has the version that was built:", version.GitVersion == cp.Version())
	namespace, err := client.CoreV1().Namespaces().Get(context.Background(), "default", metav1.GetOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("namespace", namespace.Name, "is", namespace.Status.Phase)
	// Output:
	// it has the version that was built: true
	// namespace default is Active
}
