// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/e2e/env"
)

// told returns the reasons of the events about an object, oldest first.
func told(ctx context.Context, s *env.Env, kind, name string) ([]string, error) {
	list, err := s.Client.CoreV1().Events(s.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.name=" + name,
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int { return strings.Compare(a.Name, b.Name) }) // which ends with the time
	var reasons []string
	for _, e := range list.Items {
		reasons = append(reasons, e.Reason)
	}
	return reasons, nil
}

// tells holds when the events about an object are these.
func tells(s *env.Env, kind, name string, want ...string) env.Condition {
	return func(ctx context.Context) (string, error) {
		have, err := told(ctx, s, kind, name)
		if err != nil || !slices.Equal(have, want) {
			return fmt.Sprintf("of %s %s is told %v, not %v", kind, name, have, want), err
		}
		return "", nil
	}
}

// TestEvents_LifeWithoutFailures_OnlyOfTheSet asserts that a machine without failures has no Events: its
// status shows how it goes on, and its set says that it has created and deleted it, as in MCM.
func TestEvents_LifeWithoutFailures_OnlyOfTheSet(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "events", fastOptions())
	// A listing just before the deletion of the only VM has one that is in no machine then, which is suspicious.
	s.StartManager(t, "manager", "--machine-safety-orphan-vms-period=1h")
	deploy(t, s, s.Deployment("workers", "small", 1, 1, 0))
	m := machines(t, s)[0]
	set := m.OwnerReferences[0].Name
	s.Wait(t, patience, "who made it", tells(s, "MachineSet", set, "SuccessfulCreate"))

	change(t, s, "workers", `{"spec":{"replicas":0}}`)
	s.Wait(t, patience, "the machine is gone", gone(s, m.Name))
	s.Wait(t, patience, "who deleted it", tells(s, "MachineSet", set, "SuccessfulCreate", "SuccessfulDelete"))
	events, err := s.Client.CoreV1().Events(s.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, e := range events.Items {
		require.NotEmpty(t, e.Message)
		require.Equal(t, corev1.EventTypeNormal, e.Type, "%s of %s: %s", e.Reason, e.InvolvedObject.Kind, e.Message)
		require.NotEqual(t, "Machine", e.InvolvedObject.Kind, e.Message)
		t.Logf("%-17s %-17s %s", e.InvolvedObject.Kind, e.Reason, e.Message)
	}
	removeAll(t, s)
}
