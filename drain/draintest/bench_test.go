// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/drain/draintest"
)

// crowd returns a cluster with a thousand pods on a hundred nodes, under ten budgets.
func crowd(b *testing.B) (*draintest.Cluster, kubernetes.Interface) {
	b.Helper()
	c := draintest.New(draintest.Options{})
	for i := range 1000 {
		pod := runningPod(fmt.Sprintf("p%04d", i), fmt.Sprintf("n%02d", i%100), map[string]string{"app": fmt.Sprint("a", i%10)})
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "image", Env: []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "C", Value: "d"}}}}
		require.NoError(b, c.Add(pod))
	}
	for i := range 10 {
		require.NoError(b, c.Add(minAvailable(fmt.Sprint("a", i), intstr.FromInt32(90), map[string]string{"app": fmt.Sprint("a", i)})))
	}
	c.ForgetHistory()
	return c, c.Client()
}

func BenchmarkListAThousandPodsOfOneNode(b *testing.B) {
	_, client := crowd(b)
	for b.Loop() {
		list, err := client.CoreV1().Pods("").List(b.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=n07"})
		if err != nil || len(list.Items) != 10 {
			b.Fatal(err, len(list.Items))
		}
	}
}

func BenchmarkListAThousandPods(b *testing.B) {
	_, client := crowd(b)
	for b.Loop() {
		list, err := client.CoreV1().Pods("").List(b.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1000 {
			b.Fatal(err, len(list.Items))
		}
	}
}

func BenchmarkGet(b *testing.B) {
	_, client := crowd(b)
	for b.Loop() {
		if _, err := client.CoreV1().Pods("ns").Get(b.Context(), "p0500", metav1.GetOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpdateStatus(b *testing.B) {
	c, client := crowd(b)
	pod, err := client.CoreV1().Pods("ns").Get(b.Context(), "p0500", metav1.GetOptions{})
	require.NoError(b, err)
	n := 0
	for b.Loop() {
		n++
		pod.Status.Message = fmt.Sprint(n)
		if pod, err = client.CoreV1().Pods("ns").UpdateStatus(b.Context(), pod, metav1.UpdateOptions{}); err != nil {
			b.Fatal(err)
		}
		c.ForgetHistory()
	}
}

func BenchmarkPatch(b *testing.B) {
	_, client := crowd(b)
	n := 0
	for b.Loop() {
		n++
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"}}}`, n)
		if _, err := client.CoreV1().Pods("ns").Patch(b.Context(), "p0500", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEvictionUnderABudget(b *testing.B) {
	c, client := crowd(b)
	for b.Loop() {
		if err := client.CoreV1().Pods("ns").EvictV1(b.Context(), eviction("p0500")); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		pod := runningPod("p0500", "n00", map[string]string{"app": "a0"})
		require.NoError(b, c.Add(pod))
		b.StartTimer()
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		draintest.New(draintest.Options{}).Client()
	}
}
