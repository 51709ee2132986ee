// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	// ClassName is the name of the class of the first machines.
	ClassName = "test-mc-v1"
	// NextClassName is the name of the class to which machines are updated.
	NextClassName = "test-mc-v2"

	machineName    = "test-machine"
	deploymentName = "test-machine-deployment"
	machineLabel   = "test-label" // and its value
)

func (s *Suite) machineSpec() v1alpha1.MachineSpec {
	return v1alpha1.MachineSpec{
		Class:            v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: ClassName},
		NodeTemplateSpec: v1alpha1.NodeTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: s.o.NodeLabels}},
	}
}

// machine returns the machine of the checks.
func (s *Suite) machine() *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: s.o.Namespace, Name: machineName}, Spec: s.machineSpec()}
}

// deployment returns the deployment of the checks, without machines.
func (s *Suite) deployment() *v1alpha1.MachineDeployment {
	labels := map[string]string{machineLabel: machineLabel}
	return &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.o.Namespace, Name: deploymentName},
		Spec: v1alpha1.MachineDeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: v1alpha1.MachineDeploymentStrategy{
				Type: v1alpha1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: v1alpha1.UpdateConfiguration{
					MaxSurge: ptr.To(intstr.FromInt32(2)), MaxUnavailable: ptr.To(intstr.FromInt32(1)),
				}},
			},
			Template: v1alpha1.MachineTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: s.machineSpec()},
		},
	}
}

func (s *Suite) patchDeployment(ctx context.Context, patch string) error {
	_, err := s.machines.MachineV1alpha1().MachineDeployments(s.o.Namespace).Patch(ctx, deploymentName, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// sets returns the sets of the deployment.
func (s *Suite) sets(ctx context.Context) ([]v1alpha1.MachineSet, error) {
	list, err := s.machines.MachineV1alpha1().MachineSets(s.o.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(set v1alpha1.MachineSet) bool {
		owner := metav1.GetControllerOf(&set)
		return owner == nil || owner.Kind != "MachineDeployment" || owner.Name != deploymentName
	}), nil
}

// noMachines holds when the machine, the deployment, its sets and its machines are deleted.
func (s *Suite) noMachines(ctx context.Context) (string, error) {
	api := s.machines.MachineV1alpha1()
	machines, err := api.Machines(s.o.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for _, m := range machines.Items {
		if m.Name == machineName || m.Labels[machineLabel] == machineLabel {
			return fmt.Sprintf("machine %s exists", m.Name), nil
		}
	}
	sets, err := s.sets(ctx)
	if err != nil {
		return "", err
	}
	if len(sets) > 0 {
		return fmt.Sprintf("set %s exists", sets[0].Name), nil
	}
	_, err = api.MachineDeployments(s.o.Namespace).Get(ctx, deploymentName, metav1.GetOptions{})
	if err == nil {
		return fmt.Sprintf("deployment %s exists", deploymentName), nil
	}
	return "", ignoreNotFound(err)
}

// noClasses holds when the classes are deleted.
func (s *Suite) noClasses(ctx context.Context) (string, error) {
	var errs []error
	for _, name := range []string{ClassName, NextClassName} {
		_, err := s.machines.MachineV1alpha1().MachineClasses(s.o.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			return fmt.Sprintf("class %s exists", name), nil
		}
		errs = append(errs, ignoreNotFound(err))
	}
	return "", errors.Join(errs...)
}

func nodeNames(nodes []corev1.Node) map[string]bool {
	names := map[string]bool{}
	for _, n := range nodes {
		names[n.Name] = true
	}
	return names
}
