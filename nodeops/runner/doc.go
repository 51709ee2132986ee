// SPDX-License-Identifier: Apache-2.0

// Package runner stores in a Node what package nodeops decides. [CordonNode] and [UncordonNode] keep
// pods off a Node while a program works on it; [UpdateNode] stores any other edit:
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"time"
//
//		corev1 "k8s.io/api/core/v1"
//		metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
//		"k8s.io/client-go/kubernetes/fake"
//
//		"github.com/machinist-dev/machinist/nodeops"
//		"github.com/machinist-dev/machinist/nodeops/runner"
//	)
//
//	func main() {
//		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
//		client := fake.NewClientset(node) // use kubernetes.NewForConfig
//		cordon := nodeops.Cordon{Owner: "os-update", Reason: "kernel 7.1"}
//		_, err := runner.CordonNode(context.Background(), client.CoreV1().Nodes(), "node-1", "", cordon, time.Now())
//		fmt.Println(err) // drain, update and reboot the Node, and then:
//		_, err = runner.UncordonNode(context.Background(), client.CoreV1().Nodes(), "node-1", "", cordon.Owner)
//		fmt.Println(err)
//	}
//
// The functions read the Node first and retry after conflicts, so that no change of another writer is
// lost. They are safe for several goroutines and return when their context ends.
package runner
