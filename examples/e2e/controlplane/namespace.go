// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Namespace makes a namespace for a test and returns its name, which begins with
// the prefix ("test" if that is empty) and is new. Its default service account
// exists, so that pods can be created. Its deletion begins when the test ends. The test fails at
// once if the namespace cannot be created.
func (c *ControlPlane) Namespace(t testing.TB, prefix string) string {
	t.Helper()
	if prefix = strings.TrimSuffix(prefix, "-"); prefix == "" {
		prefix = "test"
	}
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatalf("namespace %s: %v", prefix, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	made, err := client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("namespace %s: %v", prefix, err)
	}
	t.Cleanup(func() {
		// The context of the test has ended by now.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err := client.CoreV1().Namespaces().Delete(ctx, made.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Logf("namespace %s stays: %v", made.Name, err)
		}
	})
	for {
		_, err := client.CoreV1().ServiceAccounts(made.Name).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return made.Name
		}
		if pause(ctx, 20*time.Millisecond) != nil {
			t.Fatalf("namespace %s has no default service account: %v", made.Name, err)
		}
	}
}
