// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	"github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	listers "github.com/gardener/machine-controller-manager/pkg/client/listers/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// Pool is a worker pool.
type Pool struct {
	Name           string
	Replicas       int32
	MaxSurge       int32
	InPlace        bool
	DrainTimeout   time.Duration
	NodeConditions string
}

// deployment returns the MachineDeployment of a pool.
func (p Pool) deployment(namespace string) *machinev1alpha1.MachineDeployment {
	surge, none := intstr.FromInt32(p.MaxSurge), intstr.FromInt32(0)
	update := machinev1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &none}
	strategy := machinev1alpha1.MachineDeploymentStrategy{
		Type:          machinev1alpha1.RollingUpdateMachineDeploymentStrategyType,
		RollingUpdate: &machinev1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: update},
	}
	if p.InPlace {
		strategy = machinev1alpha1.MachineDeploymentStrategy{
			Type: machinev1alpha1.InPlaceUpdateMachineDeploymentStrategyType,
			InPlaceUpdate: &machinev1alpha1.InPlaceUpdateMachineDeployment{
				UpdateConfiguration: update, OrchestrationType: machinev1alpha1.OrchestrationTypeAuto,
			},
		}
	}
	name := map[string]string{"name": p.Name}
	return &machinev1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: namespace, Labels: name},
		Spec: machinev1alpha1.MachineDeploymentSpec{
			Replicas: p.Replicas, Strategy: strategy, Selector: &metav1.LabelSelector{MatchLabels: name},
			Template: machinev1alpha1.MachineTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: name},
				Spec: machinev1alpha1.MachineSpec{
					Class: machinev1alpha1.ClassSpec{Kind: machineutils.MachineClassKind, Name: p.Name},
					MachineConfiguration: &machinev1alpha1.MachineConfiguration{
						MachineDrainTimeout: &metav1.Duration{Duration: p.DrainTimeout}, NodeConditions: &p.NodeConditions,
					},
				},
			},
		},
	}
}

// Deploy creates or updates the deployment of a pool.
func Deploy(ctx context.Context, c versioned.Interface, namespace string, p Pool) error {
	deployments := c.MachineV1alpha1().MachineDeployments(namespace)
	want := p.deployment(namespace)
	have, err := deployments.Get(ctx, p.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = deployments.Create(ctx, want, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	have.Spec = want.Spec
	_, err = deployments.Update(ctx, have, metav1.UpdateOptions{})
	return err
}

// Wait waits until the machines of a pool are available.
func Wait(ctx context.Context, c versioned.Interface, namespace string, p Pool) error {
	factory := externalversions.NewSharedInformerFactoryWithOptions(c, time.Minute, externalversions.WithNamespace(namespace))
	group := factory.Machine().V1alpha1()
	deployments, machines := group.MachineDeployments().Lister(), group.Machines().Lister()
	synced := []cache.InformerSynced{group.MachineDeployments().Informer().HasSynced, group.Machines().Informer().HasSynced}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return ctx.Err()
	}
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		d, err := deployments.MachineDeployments(namespace).Get(p.Name)
		if err != nil {
			return false, err
		}
		failed, err := failedMachines(machines, namespace, p)
		if err == nil && failed != "" {
			err = fmt.Errorf("machine %s has failed", failed)
		}
		return healthy(d) && d.Status.AvailableReplicas == p.Replicas, err
	})
}

func failedMachines(machines listers.MachineLister, namespace string, p Pool) (string, error) {
	all, err := machines.Machines(namespace).List(labels.SelectorFromSet(labels.Set{"name": p.Name}))
	if err != nil {
		return "", err
	}
	for _, m := range all {
		if machineutils.IsMachineFailed(m) && machineutils.GetMachineDeploymentName(m) == p.Name {
			return m.Name, nil
		}
	}
	return "", nil
}

func healthy(d *machinev1alpha1.MachineDeployment) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == machinev1alpha1.MachineDeploymentAvailable {
			return c.Status == machinev1alpha1.ConditionTrue
		}
	}
	return false
}
