// SPDX-License-Identifier: Apache-2.0

package runners_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine/client"
)

func TestTarget_ByProviderID_OnlyTheNodeThatAloneHasIt(t *testing.T) {
	t.Parallel()
	cluster := draintest.New(draintest.Options{})
	for name, id := range map[string]string{"a": "cloud:///one", "b": "cloud:///two", "c": "cloud:///two", "d": ""} {
		require.NoError(t, cluster.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}))
	}
	for id, want := range map[string]string{"cloud:///one": "a", "cloud:///two": "", "cloud:///none": "", "": ""} {
		view, err := new(runners.Target).Node(t.Context(), client.New(nil, cluster.Client()), id, "", time.Unix(0, 0))
		require.NoError(t, err)
		require.True(t, view.Looked)
		require.Equal(t, want != "", view.Node != nil, id)
		if want != "" {
			require.Equal(t, want, view.Node.Name)
		}
	}
}
