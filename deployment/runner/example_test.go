// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/runner"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A command line tells what a deployment waits for.
func ExampleObserve() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "workers", UID: "1", Finalizers: []string{v1alpha1.MCMFinalizerName}}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	d.Spec.Template = v1alpha1.MachineTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: d.Spec.Selector.MatchLabels}}
	d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}
	d.Spec.Replicas, d.Spec.Paused = 3, true
	d.Spec.Strategy.Type = v1alpha1.RecreateMachineDeploymentStrategyType
	factory := externalversions.NewSharedInformerFactory(fake.NewClientset(d), 0)
	reader, err := runner.NewInformers(factory, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	in, err := runner.Observe(ctx, reader, types.NamespacedName{Namespace: "shop", Name: "workers"})
	in.Proven = true // the lists are new
	for _, hold := range deployment.Decide(in, deployment.Policy{}, time.Now()).Holds {
		fmt.Println(hold, err)
	}
	// Output: machinedeployment/workers: Paused: spec.paused is true: only changes of spec.replicas are carried out <nil>
}
