// SPDX-License-Identifier: Apache-2.0

package alerts_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// booting is a cloud whose VMs take two minutes.
func booting() drivertest.CloudOptions { return drivertest.CloudOptions{BootTime: 2 * time.Minute} }

// stories are what happens to a fleet: which alerts have to fire, and which others may.
var stories = []struct {
	name       string
	fires, may []string
	cloud      drivertest.CloudOptions
	workers    int
	tell       func(*fleet)
}{
	{name: "a normal life", cloud: booting(), tell: life},
	{name: "no leader", fires: []string{"MachinistNoLeader"}, tell: func(f *fleet) {
		f.leads = false
		f.pass(5 * time.Minute)
		f.leads = true
		f.pass(5 * time.Minute)
	}},
	{name: "an API server is away", fires: []string{"MachinistFrozen"}, tell: func(f *fleet) {
		back := f.target.Inject(draintest.Fault{Kind: draintest.Unavailable, Verb: "get", Resource: "nodes", Name: "machinist-probe"})
		f.pass(15 * time.Minute)
		back()
		f.pass(5 * time.Minute)
	}},
	{name: "the driver panics", fires: []string{"MachinistPanics"}, may: []string{"MachinistDriverFailing"}, tell: func(f *fleet) {
		f.create("cursed")
		f.pass(5 * time.Minute)
		f.remove("cursed")
		f.pass(30 * time.Minute)
	}},
	{name: "no quota", fires: []string{"MachinistDriverFailing"}, may: []string{"MachinistMachinesStuck", "MachinistRolloutStuck"}, tell: func(f *fleet) {
		over := f.cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Code: codes.ResourceExhausted})
		f.deploy(2)
		f.pass(90 * time.Minute)
		over()
		f.pass(90 * time.Minute)
		f.running(2)
	}},
	{name: "a class that is missing", fires: []string{"MachinistMachinesStuck"}, may: []string{"MachinistRolloutStuck"}, tell: func(f *fleet) {
		f.deploy(1)
		f.change(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "missing" })
		f.pass(time.Hour)
		f.change(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "large" })
		f.pass(30 * time.Minute)
	}},
	{name: "a rollout that does not progress", fires: []string{"MachinistRolloutStuck"}, may: []string{"MachinistMachinesStuck", "MachinistDriverFailing"}, tell: func(f *fleet) {
		f.deploy(1)
		f.pass(10 * time.Minute)
		over := f.cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine})
		f.change(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "large" })
		f.pass(time.Hour)
		over()
		f.pass(90 * time.Minute)
	}},
	{name: "many machines fail", fires: []string{"MachinistReplacementsHeld"}, tell: func(f *fleet) {
		f.deploy(10)
		f.pass(10 * time.Minute)
		f.running(10)
		var nodes []string
		for _, m := range f.all()[:8] {
			nodes = append(nodes, m.Labels[v1alpha1.NodeLabelKey])
		}
		for _, n := range nodes {
			f.nodes.Silence(n, true)
		}
		f.pass(40 * time.Minute)
		for _, n := range nodes {
			f.nodes.Silence(n, false)
		}
		f.pass(30 * time.Minute)
		f.running(10)
	}},
	{name: "a budget keeps pods", fires: []string{"MachinistDrainBlocked", "MachinistDeletionSlow"}, tell: blocked},
	{name: "an orphan that cannot be deleted", fires: []string{"MachinistOrphansRefused"}, may: []string{"MachinistDriverFailing"}, tell: func(f *fleet) {
		f.deploy(3)
		f.pass(10 * time.Minute)
		f.cloud.AddVM(drivertest.VM{Namespace: namespace, Machine: "lost", Class: "small"})
		over := f.cloud.Inject(drivertest.Fault{Operation: driver.OpDeleteMachine, Code: codes.PermissionDenied})
		f.pass(3 * time.Hour)
		over()
		f.pass(3 * time.Hour)
	}},
	{name: "one worker for many machines", fires: []string{"MachinistQueueBacklog"}, may: []string{"MachinistMachinesStuck", "MachinistReplacementsHeld"}, cloud: drivertest.CloudOptions{CreateLatency: time.Minute}, workers: 1, tell: func(f *fleet) {
		for i := range 40 {
			f.create(fmt.Sprint("m-", i))
		}
		f.pass(45 * time.Minute)
		for _, m := range f.all() { // some were created too late to join in time
			f.remove(m.Name)
		}
		f.pass(2 * time.Hour)
	}},
}

func TestRules_Stories_EachAlertFiresAndEnds(t *testing.T) {
	told := map[string]bool{}
	for _, s := range stories {
		for _, name := range s.fires {
			told[name] = true
		}
		t.Run(s.name, func(t *testing.T) {
			requireFired(t, evaluate(t, play(t, s.cloud, s.workers, s.tell)), s.fires, s.may)
		})
	}
	for _, r := range parsed(t) {
		require.True(t, told[r.Alert], "no story for %s", r.Alert)
	}
}

// life is a deployment that comes, rolls, loses a machine, and goes.
func life(f *fleet) {
	f.deploy(4)
	f.pass(15 * time.Minute)
	f.running(4)
	f.change(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "large" })
	f.pass(45 * time.Minute)
	f.running(4)
	f.nodes.Silence(f.all()[0].Labels[v1alpha1.NodeLabelKey], true)
	f.pass(40 * time.Minute)
	f.running(4)
	f.change(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = 1 })
	f.pass(20 * time.Minute)
}

// blocked deletes a machine with a pod that its budget keeps for an hour.
func blocked(f *fleet) {
	f.create("m")
	f.pass(10 * time.Minute)
	f.running(1)
	labels, one := map[string]string{"app": "db"}, intstr.FromInt32(1)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db", Labels: labels, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "db", UID: "db", Controller: new(true)},
	}}}
	pod.Spec.NodeName = f.all()[0].Labels[v1alpha1.NodeLabelKey]
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}}
	budget.Spec = policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}}
	require.NoError(f, f.target.Add(pod, budget))
	f.remove("m")
	f.pass(time.Hour)
	require.NoError(f, f.target.Client().PolicyV1().PodDisruptionBudgets(namespace).Delete(f.Context(), "db", metav1.DeleteOptions{}))
	f.pass(90 * time.Minute)
}
