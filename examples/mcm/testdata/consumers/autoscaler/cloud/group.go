// SPDX-License-Identifier: Apache-2.0

// Package cloud scales MachineDeployments as node groups.
package cloud

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machineapi "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	machinelisters "github.com/gardener/machine-controller-manager/pkg/client/listers/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/retry"
)

// ErrRolling means that a rollout is going on.
var ErrRolling = errors.New("a rollout is going on")

// Group is a node group.
type Group struct {
	Namespace, Name string
	Machines        machinelisters.MachineLister
	Deployments     machinelisters.MachineDeploymentLister
	Client          machineapi.MachineV1alpha1Interface
}

// Delete scales down by the named machines, in one update.
func (g Group) Delete(ctx context.Context, now time.Time, names ...string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		d, err := g.Deployments.MachineDeployments(g.Namespace).Get(g.Name)
		if err != nil {
			return err
		}
		if rolling(d) {
			return ErrRolling
		}
		d = d.DeepCopy()
		if d.Annotations == nil {
			d.Annotations = map[string]string{}
		}
		var marked []string
		if before := d.Annotations[machineutils.TriggerDeletionByMCM]; before != "" {
			marked = strings.Split(before, ",")
		}
		for _, name := range names {
			marked = append(marked, fmt.Sprintf("%s~%s", name, now.Format(time.RFC3339)))
		}
		d.Annotations[machineutils.TriggerDeletionByMCM] = strings.Join(marked, ",")
		d.Annotations[machineutils.LastDeploymentReplicaChangeByScalerTime] = now.Format(time.RFC3339)
		d.Spec.Replicas -= int32(len(names))
		_, err = g.Client.MachineDeployments(g.Namespace).Update(ctx, d, metav1.UpdateOptions{})
		return err
	})
}

// Exhausted returns the machines for which the provider has no capacity.
func (g Group) Exhausted() ([]string, error) {
	machines, err := g.Machines.Machines(g.Namespace).List(labels.SelectorFromSet(labels.Set{"name": g.Name}))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range machines {
		last := m.Status.LastOperation
		if last.Type == v1alpha1.MachineOperationCreate && last.State == v1alpha1.MachineStateFailed &&
			last.ErrorCode == codes.ResourceExhausted.String() && !machineutils.IsMachineTriggeredForDeletion(m) {
			names = append(names, m.Name)
		}
	}
	return names, nil
}

func rolling(d *v1alpha1.MachineDeployment) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == v1alpha1.MachineDeploymentProgressing {
			return c.Status != v1alpha1.ConditionTrue || c.Reason != "NewMachineSetAvailable"
		}
	}
	return false
}
