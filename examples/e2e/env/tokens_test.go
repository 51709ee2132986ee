// SPDX-License-Identifier: Apache-2.0

package env

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestUserData_Logs_HaveNoSecret(t *testing.T) {
	t.Parallel()
	s := &Env{Namespace: "n"}
	require.False(t, s.leaked("anything"), "there is no secret yet")
	require.NoError(t, s.openCloud(t.Context()))
	t.Cleanup(func() { _ = s.server.Close(); s.playing.Wait() })
	require.True(t, s.leaked("it is "+s.Credential()))
	require.Empty(t, s.TokenOf("a"))

	secret := s.Cloud.Secret("n", "c")
	secret.Data["userData"] = []byte("join a with abcdef.0123456789abcdef now")
	_, err := s.Cloud.CreateMachine(t.Context(), &driver.CreateMachineRequest{
		Machine:      &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}},
		MachineClass: s.Cloud.MachineClass("n", "c"), Secret: secret,
	})
	require.NoError(t, err)
	require.Equal(t, "abcdef.0123456789abcdef", s.TokenOf("a"))
	require.Empty(t, s.TokenOf("b"))
	require.True(t, s.leaked("the token is abcdef.0123456789abcdef"))
	require.True(t, s.leaked("0123456789abcdef"), "the secret part alone")
	require.False(t, s.leaked("bootstrap-token-abcdef"), "the name of a Secret is none")
	require.True(t, s.Cloud.Terminate(s.Cloud.Snapshot().VMs[0].ProviderID))
	require.True(t, s.leaked("0123456789abcdef"), "it was a secret")
}

func TestManager_NoTargetCluster_Starts(t *testing.T) {
	t.Parallel()
	s := &Env{Cluster: &Cluster{folder: "f"}, Namespace: "n", folder: t.TempDir(), options: Options{Flags: []string{"--a"}}}
	require.NotContains(t, s.Manager("with", "--b").flags, "--target-kubeconfig=none")
	s.options.NoTarget = true
	flags := s.Manager("without", "--b").flags
	require.Contains(t, flags, "--control-kubeconfig=f/n-machinist.kubeconfig")
	require.Greater(t, slices.Index(flags, "--target-kubeconfig=none"), slices.Index(flags, "--target-kubeconfig=f/n-machinist.kubeconfig"), "the last counts")
	require.Equal(t, []string{"--a", "--b"}, flags[len(flags)-2:], "those of all before its own")
}
