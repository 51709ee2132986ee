// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// invalidEdits are patches that make a valid deployment invalid.
var invalidEdits = map[string]struct{ patch, reason string }{
	"unknown strategy":               {`{"spec":{"strategy":{"type":"Sometimes"}}}`, "InvalidSpec"},
	"surge that is text":             {`{"spec":{"strategy":{"rollingUpdate":{"maxSurge":"0","maxUnavailable":0}}}}`, "InvalidSpec"},
	"negative bounds":                {`{"spec":{"strategy":{"rollingUpdate":{"maxSurge":-5,"maxUnavailable":-1}}}}`, "InvalidSpec"},
	"selector that does not match":   {`{"spec":{"selector":{"matchLabels":{"app":"other"}}}}`, "InvalidSpec"},
	"nil selector":                   {`{"spec":{"selector":null}}`, "InvalidSpec"},
	"empty selector":                 {`{"spec":{"selector":{"matchLabels":null}}}`, "SelectingAll"},
	"template without labels":        {`{"spec":{"template":{"metadata":{"labels":null}}}}`, "InvalidSpec"},
	"fewer replicas, also a bad one": {`{"spec":{"replicas":0,"strategy":{"type":"Sometimes"}}}`, "InvalidSpec"},
}

// eventLog records the events of deployments.
type eventLog struct {
	record.EventRecorder
	w *world
}

func (l eventLog) Event(o runtime.Object, kind, reason, message string) {
	if _, ok := o.(*v1alpha1.MachineDeployment); ok {
		l.w.events = append(l.w.events, fmt.Sprintf("%s %s %s", kind, reason, message))
	}
}

// patchDeployment patches the deployment as a user.
func (w *world) patchDeployment(patch string) {
	_, err := w.machines.MachineV1alpha1().MachineDeployments(ns).Patch(ofOthers, "d", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(err)
	w.collect(others)
}

// TestMachineDeployment_InvalidSpec_OneEventAndNothingElseChanges injects faults into the status
// write and restarts the process. There is one Event, and only the status is written.
func TestMachineDeployment_InvalidSpec_OneEventAndNothingElseChanges(t *testing.T) {
	t.Parallel()
	for name, test := range invalidEdits {
		for _, bad := range []fault{{}, {kind: conflict}, {kind: refused}, {kind: outage, wait: 40 * time.Second}} {
			t.Run(fmt.Sprintf("%s, %s", name, bad), func(t *testing.T) {
				t.Parallel()
				damaged := false
				var writes []string
				once := func(a simCall) (none fault) {
					if !damaged || !a.write {
						return none
					}
					if writes = append(writes, fmt.Sprintf("%s %s/%s", a.verb, a.resource, a.sub)); len(writes) > 1 {
						return none
					}
					return bad
				}
				s := scenario{name: name, joins: true, deployment: true, rollout: rolling(2, 1, 0)}
				w := newWorld(s, nil, once, false)
				w.run()
				require.NoError(t, w.result())
				d := w.deployment()
				require.True(t, deployment.Complete(d, d.Status))
				valid := d.Spec.DeepCopy()
				sets := all[*v1alpha1.MachineSet](w.control, "machinesets")
				w.events, damaged = nil, true

				w.patchDeployment(test.patch)
				w.run()
				w.end()
				w.beginAt = w.clock.Now()
				w.run()
				d = w.deployment()
				for _, write := range writes {
					require.Equal(t, "update machinedeployments/status", write)
				}
				require.NotEmpty(t, writes)
				require.Len(t, w.events, 1, "%v", w.events)
				require.Contains(t, w.events[0], "Warning "+test.reason)
				i := slices.IndexFunc(d.Status.Conditions, func(c v1alpha1.MachineDeploymentCondition) bool {
					return c.Type == v1alpha1.MachineDeploymentProgressing
				})
				require.GreaterOrEqual(t, i, 0)
				cond := d.Status.Conditions[i]
				require.Equal(t, v1alpha1.ConditionFalse, cond.Status)
				require.NotContains(t, cond.Message, "successfully")
				require.Equal(t, sets, all[*v1alpha1.MachineSet](w.control, "machinesets"))

				d = d.DeepCopy()
				d.Spec = *valid
				_, err := w.machines.MachineV1alpha1().MachineDeployments(ns).Update(ofOthers, d, metav1.UpdateOptions{})
				require.NoError(t, err)
				w.collect(others)
				w.run()
				w.checkRest()
				require.NoError(t, w.result())
				require.Len(t, w.events, 1, "%v", w.events)
			})
		}
	}
}
