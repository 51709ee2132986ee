// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset/runner"
)

// A controller makes a pass over each set that has changed. The first passes add the finalizer and list the
// machines of the set from the API server.
func ExampleExecutor() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	labels := map[string]string{"app": "w"}
	set := &v1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "uid-s"},
		Spec:       v1alpha1.MachineSetSpec{Replicas: 2, Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}
	machines := fake.NewClientset(set)
	factory := externalversions.NewSharedInformerFactory(machines, 0)
	informers, err := runner.NewInformers(factory, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	changed := make(chan types.NamespacedName, 1000)
	if err := informers.OnChange(func(set types.NamespacedName, _ time.Duration) { changed <- set }); err != nil {
		fmt.Println(err)
		return
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	executor := &runner.Executor{Reader: informers, Requests: client.New(machines, nil)}
	for set := range changed {
		if _, err := executor.Reconcile(ctx, set); err != nil {
			fmt.Println(err)
			return
		}
		list, err := machines.MachineV1alpha1().Machines("n").List(ctx, metav1.ListOptions{})
		if len(list.Items) == 2 {
			fmt.Println(list.Items[0].Labels, err)
			return
		}
	}
	// Output: map[app:w] <nil>
}
