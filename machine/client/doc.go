// SPDX-License-Identifier: Apache-2.0

// Package client sends requests over typed clients: [New] returns [machinist.Requests]. The folders below
// it have these clients, informers, listers and fakes for the kinds of machine/v1alpha1.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//
//		"github.com/machinist-dev/machinist/machine/client"
//		"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
//		"github.com/machinist-dev/machinist/machine/v1alpha1"
//	)
//
//	func main() {
//		m := &v1alpha1.Machine{}
//		m.Namespace, m.Name = "shop", "worker-1"
//		requests := client.New(fake.NewClientset(m), nil) // use versioned.NewForConfig
//		read, err := requests.Get(context.Background(), m)
//		fmt.Println(read.GetName(), err) // worker-1 <nil>
//	}
package client
