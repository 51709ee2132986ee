// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type conditions = []corev1.NodeCondition

func condition(kind, status string) corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: corev1.ConditionStatus(status)}
}

func TestJudgeHealth_Conditions_BadOnes(t *testing.T) {
	for name, tc := range map[string]struct {
		conditions conditions
		want       bool
		bad        string
	}{
		"no conditions: unhealthy":                {nil, false, "[no Ready condition]"},
		"Ready: healthy":                          {conditions{condition("Ready", "True")}, true, "[no Ready condition]"},
		"Ready Unknown: unhealthy":                {conditions{condition("Ready", "Unknown")}, false, "[Ready=Unknown]"},
		"Ready missing: unhealthy (DM-30)":        {conditions{condition("KernelDeadlock", "False")}, false, "[no Ready condition]"},
		"listed condition True: unhealthy":        {conditions{condition("Ready", "True"), condition("KernelDeadlock", "True")}, false, "[KernelDeadlock=True]"},
		"listed condition Unknown: unhealthy":     {conditions{condition("KernelDeadlock", "Unknown"), condition("Ready", "True")}, false, "[KernelDeadlock=Unknown]"},
		"other condition True: healthy":           {conditions{condition("Ready", "True"), condition("A", "True")}, true, "[no Ready condition]"},
		"two bad conditions: both in the message": {conditions{condition("KernelDeadlock", "True"), condition("Ready", "False")}, false, "[KernelDeadlock=True, Ready=False]"},
	} {
		healthy, bad := facts.JudgeHealth(tc.conditions, []corev1.NodeConditionType{"KernelDeadlock"})
		require.Equal(t, tc.want, healthy, name)
		require.Equal(t, tc.bad, facts.ConditionList(bad), name)
	}
}

func TestConditionsChanged_TypeStatusOrStep_IsTrue(t *testing.T) {
	a, b, valid := condition("A", "True"), condition("B", "False"), condition(string(v1alpha1.MachineValid), "False")
	heartbeat := a
	heartbeat.LastHeartbeatTime, heartbeat.Message, heartbeat.Reason = metav1.NewTime(now), "m", "r"
	update := condition(string(v1alpha1.NodeInPlaceUpdate), "True")
	progress := update
	progress.Reason = v1alpha1.ReadyForUpdate
	for name, tc := range map[string]struct {
		recorded, observed conditions
		want               bool
	}{
		"another order: no change":        {conditions{a, b}, conditions{b, a}, false},
		"heartbeat and texts: no change":  {conditions{a}, conditions{heartbeat}, false},
		"own condition: no change":        {conditions{a, valid}, conditions{a}, false},
		"status: change":                  {conditions{a}, conditions{condition("A", "False")}, true},
		"new type: change":                {conditions{a}, conditions{a, b}, true},
		"reason of InPlaceUpdate: change": {conditions{update}, conditions{progress}, true},
		"duplicate type: no change":       {conditions{a, condition("A", "False")}, conditions{a, condition("A", "False")}, false},
		"another number: change":          {conditions{a}, conditions{a, a}, true},
	} {
		require.Equal(t, tc.want, facts.ConditionsChanged(tc.recorded, tc.observed), name)
	}
}

func TestValidateClass_NodeTemplate_Errors(t *testing.T) {
	one := resource.MustParse("1")
	complete := v1alpha1.NodeTemplate{Capacity: corev1.ResourceList{"cpu": one, "gpu": one, "memory": {}}, InstanceType: "t", Region: "r", Zone: "z"}
	noZone := complete
	noZone.Zone = ""
	const (
		need  = "Required value: Capacity is required, "
		it    = "Required value: is required in a node template"
		empty = "[nodeTemplate.capacity[cpu]: " + need + "nodeTemplate.capacity[gpu]: " + need + "nodeTemplate.capacity[memory]: " + need +
			"nodeTemplate.instanceType: " + it + ", nodeTemplate.region: " + it + ", nodeTemplate.zone: " + it + "]"
	)
	for want, n := range map[string]*v1alpha1.NodeTemplate{"": &complete, empty: {}, "nodeTemplate.zone: " + it: &noZone} {
		errs := facts.ValidateClass(&v1alpha1.MachineClass{NodeTemplate: n})
		if want == "" {
			require.Empty(t, errs)
			continue
		}
		require.EqualError(t, errs.ToAggregate(), want)
	}
	require.Empty(t, facts.ValidateClass(&v1alpha1.MachineClass{}))
}
