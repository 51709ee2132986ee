// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestTheTextOfASecretBecomesData(t *testing.T) {
	_, client, _ := newCluster(t)
	secrets := client.CoreV1().Secrets("ns")
	s, err := secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"a": []byte("1"), "b": []byte("2")}, StringData: map[string]string{"b": "two"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"a": []byte("1"), "b": []byte("two")}, s.Data)
	require.Nil(t, s.StringData)
	require.Equal(t, corev1.SecretTypeOpaque, s.Type)
	s, err = secrets.Patch(t.Context(), "s", types.MergePatchType, []byte(`{"data":{"a":null},"stringData":{"c":"three"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"b": []byte("two"), "c": []byte("three")}, s.Data)
}
