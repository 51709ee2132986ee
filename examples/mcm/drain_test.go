// SPDX-License-Identifier: Apache-2.0

package mcm_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
)

func TestRunDrain_Forced_CordonsAndDeletes(t *testing.T) {
	cluster := draintest.New(draintest.Options{})
	require.NoError(t, cluster.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
	require.NoError(t, cluster.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}}))
	client := cluster.Client()
	o := drain.NewDrainOptions(client, nil, 5*time.Minute, 1, 0, 0, "n", -1, true, true, true, true, os.Stdout, os.Stderr, nil, nil, nil, nil, nil, nil, nil, nil)
	require.NoError(t, o.RunDrain(t.Context()))
	node, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, node.Spec.Unschedulable)
	pods, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, pods.Items)
}
