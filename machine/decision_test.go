// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestDecision_JSON_NamesObjectsWithoutZeroTimes(t *testing.T) {
	data, err := json.MarshalIndent(machine.Decision{
		Action: machine.DrainNode{NodeName: "worker-1", Started: now, Policy: drain.ForMachine(now.Add(2 * time.Hour))},
		Reason: machine.ReasonDraining, Message: "the machine is being deleted",
		Holds: []machinist.Hold{
			{Subject: "pod/shop/web-1", Reason: "BudgetExhausted", Message: "0 disruptions allowed", Since: now.Add(-time.Minute)},
			machine.Freeze{Frozen: true, Since: now.Add(-time.Hour), Message: "the target API server does not answer"}.Hold(now),
		},
		NextCheck: now.Add(5 * time.Second),
	}, "", "  ")
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/decision.json")
	require.NoError(t, err)
	require.Equal(t, string(want), string(data)+"\n")

	data, err = json.Marshal(&machine.Decision{})
	require.NoError(t, err)
	require.Equal(t, `{}`, string(data))
}

func TestDecision_JSON_EachAction_TypeSubjectText(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "a"}
	m, node := &v1alpha1.Machine{ObjectMeta: meta}, &corev1.Node{ObjectMeta: meta}
	secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"token-secret": []byte("hidden")}}
	for want, actions := range map[string][]machinist.Action{
		"":               {machine.CallDriver{Operation: driver.OpGetMachineStatus}, machine.CallDriver{Operation: driver.OpCreateMachine}, machine.CallDriver{Operation: driver.OpInitializeMachine}, machine.CallDriver{Operation: driver.OpDeleteMachine, ByName: true}, machine.CreateToken{}, machine.TakePermit{}, machine.ReturnPermit{}, machine.DeleteAttachments{}, machinist.Refresh{Kind: "Node"}, machinist.Update{}, machinist.Update{Object: (*corev1.Node)(nil)}, machinist.Delete{}},
		"machine/a":      {machinist.Update{Before: m, Object: m, Changes: []string{"finalizer"}}, machinist.Delete{Object: m}},
		"node/a":         {machinist.Refresh{Kind: "Node", Name: "a"}, machinist.Update{Object: node, Subresource: "status"}, machine.DrainNode{NodeName: "a"}, machinist.Delete{Object: node}},
		"machineclass/a": {machinist.Update{Object: &v1alpha1.MachineClass{ObjectMeta: meta}}},
		"secret/shop/a":  {machinist.Update{Before: secret, Object: secret, Changes: []string{"finalizer"}}, machinist.Delete{Object: secret}},
	} {
		for _, a := range actions {
			data, err := json.Marshal(machine.Decision{Action: a})
			require.NoError(t, err)
			require.NotContains(t, string(data), "hidden")
			var got struct {
				Action map[string]string `json:"action"`
			}
			require.NoError(t, json.Unmarshal(data, &got))
			require.Equal(t, reflect.TypeOf(a).Name(), got.Action["type"])
			require.Equal(t, want, got.Action["subject"], a)
			require.Equal(t, a.String(), got.Action["text"])
		}
	}
}

func TestFreeze_JSON_NoZeroTimes(t *testing.T) {
	out, err := json.Marshal([]machine.Freeze{{}, {Frozen: true, Message: "control", Since: time.Unix(0, 0).UTC()}})
	require.NoError(t, err)
	require.Equal(t, `[{},{"frozen":true,"since":"1970-01-01T00:00:00Z","message":"control"}]`, string(out))
}
