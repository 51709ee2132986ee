// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func ExampleNew() {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "worker-1", UID: "1"}}
	requests, ctx := client.New(fake.NewClientset(m), nil), context.Background()
	read, err := requests.Get(ctx, m)
	fmt.Println(read.GetName(), err)
	fmt.Println(requests.Delete(ctx, m, false))
	// Output:
	// worker-1 <nil>
	// <nil>
}
