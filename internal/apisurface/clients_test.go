// SPDX-License-Identifier: Apache-2.0

package apisurface_test

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/scheme"
	typed "github.com/machinist-dev/machinist/machine/client/clientset/versioned/typed/machine/v1alpha1"
	typedfake "github.com/machinist-dev/machinist/machine/client/clientset/versioned/typed/machine/v1alpha1/fake"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	listers "github.com/machinist-dev/machinist/machine/client/listers/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Clientsets, real and fake.
var (
	_ func(*rest.Config) (*versioned.Clientset, error)                = versioned.NewForConfig
	_ versioned.Interface                                             = (*versioned.Clientset)(nil)
	_ versioned.Interface                                             = (*fake.Clientset)(nil)
	_ func(*versioned.Clientset) typed.MachineV1alpha1Interface       = (*versioned.Clientset).MachineV1alpha1
	_ func(versioned.Interface) typed.MachineV1alpha1Interface        = versioned.Interface.MachineV1alpha1
	_ func(*runtime.Scheme) error                                     = scheme.AddToScheme
	_ func(*runtime.Scheme) error                                     = fake.AddToScheme
	_ func(typed.MachinesGetter, string) typed.MachineInterface       = typed.MachinesGetter.Machines
	_ func(typed.MachineSetsGetter, string) typed.MachineSetInterface = typed.MachineSetsGetter.MachineSets

	_ func(typed.MachineDeploymentsGetter, string) typed.MachineDeploymentInterface = typed.MachineDeploymentsGetter.MachineDeployments
	_ func(typed.MachineClassesGetter, string) typed.MachineClassInterface          = typed.MachineClassesGetter.MachineClasses
)

// Autoscalers put their own object tracker under a fake clientset.
var (
	_                                = fake.Clientset{Fake: testing.Fake{}}
	_ *testing.Fake                  = typedfake.FakeMachineV1alpha1{}.Fake
	_ typed.MachineV1alpha1Interface = &typedfake.FakeMachineV1alpha1{Fake: &testing.Fake{}}
)

// Typed calls.
var _ = func(ctx context.Context, c typed.MachineV1alpha1Interface) {
	var (
		_, _ = result[*v1alpha1.MachineClassList](c.MachineClasses("").List(ctx, metav1.ListOptions{}))
		_, _ = result[*v1alpha1.MachineDeployment](c.MachineDeployments("").Get(ctx, "", metav1.GetOptions{}))
		_, _ = result[*v1alpha1.MachineDeploymentList](c.MachineDeployments("").List(ctx, metav1.ListOptions{}))
		_, _ = result[*v1alpha1.MachineDeployment](c.MachineDeployments("").Update(ctx, nil, metav1.UpdateOptions{}))
		_, _ = result[*v1alpha1.MachineDeployment](c.MachineDeployments("").UpdateStatus(ctx, nil, metav1.UpdateOptions{}))
		_, _ = result[*v1alpha1.MachineList](c.Machines("").List(ctx, metav1.ListOptions{}))
		_, _ = result[*v1alpha1.Machine](c.Machines("").Update(ctx, nil, metav1.UpdateOptions{}))
		_, _ = result[*v1alpha1.Machine](c.Machines("").UpdateStatus(ctx, nil, metav1.UpdateOptions{}))
		_, _ = result[*v1alpha1.MachineSet](c.MachineSets("").UpdateStatus(ctx, nil, metav1.UpdateOptions{}))
	)
}

func result[T any](value T, err error) (T, error) { return value, err }

// Informers and listers.
var _ = func(c versioned.Interface, stop chan struct{}) {
	f := externalversions.NewSharedInformerFactoryWithOptions(c, time.Hour, externalversions.WithNamespace(""))
	group := f.Machine().V1alpha1()
	var (
		_    cache.SharedIndexInformer       = group.Machines().Informer()
		_    cache.SharedIndexInformer       = group.MachineSets().Informer()
		_    cache.SharedIndexInformer       = group.MachineDeployments().Informer()
		_    cache.SharedIndexInformer       = group.MachineClasses().Informer()
		_    listers.MachineLister           = group.Machines().Lister()
		_    listers.MachineSetLister        = group.MachineSets().Lister()
		_    listers.MachineDeploymentLister = group.MachineDeployments().Lister()
		_    listers.MachineClassLister      = group.MachineClasses().Lister()
		_                                    = cache.WaitForCacheSync(stop, group.Machines().Informer().HasSynced)
		_, _                                 = result[*v1alpha1.Machine](group.Machines().Lister().Machines("").Get(""))
		_, _                                 = result[[]*v1alpha1.Machine](group.Machines().Lister().Machines("").List(labels.Everything()))
		_, _                                 = result[*v1alpha1.MachineSet](group.MachineSets().Lister().MachineSets("").Get(""))
		_, _                                 = result[*v1alpha1.MachineDeployment](group.MachineDeployments().Lister().MachineDeployments("").Get(""))
		_, _                                 = result[*v1alpha1.MachineClass](group.MachineClasses().Lister().MachineClasses("").Get(""))
	)
	f.Start(stop)
}
