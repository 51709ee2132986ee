// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/safety"
)

func TestDecisions_JSON_HasLowerCamelCaseAndNoEmptyFields(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 10, 0, 0, time.UTC)
	deletion := safety.Decision[machinist.Action]{NextCheck: at, Actions: []machinist.Action{safety.DeleteVM{
		ProviderID: "cloud:///2", MachineName: "web-2", Namespace: "shop", Class: "small", Reason: safety.NoMachine, Message: "why",
	}}}
	require.JSONEq(t, `{"actions":[{"providerID":"cloud:///2","machineName":"web-2","namespace":"shop","class":"small","reason":"NoMachine","message":"why"}],
		"nextCheck":"2026-03-01T12:10:00Z"}`, toJSON(t, deletion))

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	mark := safety.Decision[machinist.Update]{Actions: []machinist.Update{{Before: node, Object: node, Changes: []string{"marked", "why"}}}}
	require.JSONEq(t, `{"actions":[{"type":"Update","subject":"node/n1","text":"update node n1: marked; why"}]}`, toJSON(t, mark))

	require.JSONEq(t, `{}`, toJSON(t, safety.Decision[machinist.Action]{}))
}
