// SPDX-License-Identifier: Apache-2.0

// Command update updates the Nodes of a cluster, one after the other, and the Node that it runs on last. It is
// a Deployment with one pod.
//
//	update --pod system/update-7c9f --version 42 --command 'ssh $NODE os-update 42'
//
// On its own Node it evicts itself after all other pods. Its successor on another Node goes on where it ended:
// an annotation of each Node has its version.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/nodeops"
	noderunner "github.com/machinist-dev/machinist/nodeops/runner"
)

const (
	owner   = "os-update"
	version = "update.example.com/version" // an annotation
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`file` of the cluster; empty is the cluster of this pod")
	self := flag.String("pod", os.Getenv("POD"), "namespace and name of this pod: `namespace/name`")
	selector := flag.String("selector", "", "labels of the Nodes: all by default")
	want := flag.String("version", "", "`version` of the OS")
	command := flag.String("command", "", "shell `command` that updates $NODE")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	client, err := kubernetes.NewForConfig(config)
	check(err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	nodes, err := outdated(ctx, client, *self, *selector, *want)
	check(err)
	for _, node := range nodes {
		check(update(ctx, client, *self, node, *want, *command))
	}
	fmt.Println("all Nodes have version", *want)
}

// outdated returns the Nodes to update: the Node of the pod last, and before it all others in order of their names.
func outdated(ctx context.Context, client kubernetes.Interface, pod, selector, want string) (names []string, _ error) {
	namespace, name, _ := strings.Cut(pod, "/")
	self, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Node) int { // false is before true
		return strings.Compare(fmt.Sprint(a.Name == self.Spec.NodeName, a.Name), fmt.Sprint(b.Name == self.Spec.NodeName, b.Name))
	})
	for _, node := range list.Items {
		if node.Annotations[version] != want {
			names = append(names, node.Name)
		}
	}
	return names, nil
}

// update drains a Node, updates and uncordons it, and records its version. A step may be repeated.
func update(ctx context.Context, client kubernetes.Interface, pod, node, want, command string) error {
	e := runner.Executor{Client: runner.NewClient(client), Observer: runner.ObserverFunc(func(p drain.Progress) { fmt.Println(p) })}
	policy := drain.Policy{
		EvictUnmanaged: true, EvictLocalStorage: true, Reassert: true, Cordon: nodeops.Cordon{Owner: owner, Reason: want},
		Rules: func(p *corev1.Pod) drain.Rule {
			switch {
			case p.Namespace+"/"+p.Name == pod:
				return drain.Rule{Wave: 100, Message: "it runs this drain"}
			case p.Labels["batch.kubernetes.io/job-name"] != "":
				return drain.Rule{Action: drain.Wait, Reason: "JobRuns"}
			}
			return drain.Rule{}
		},
	}
	if _, err := e.Run(ctx, node, policy); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), "NODE="+node)
	if err := cmd.Run(); err != nil {
		return err
	}
	if err := e.Uncordon(ctx, node, owner); err != nil {
		return err
	}
	_, _, err := noderunner.UpdateNode(ctx, client.CoreV1().Nodes(), node, func(n *corev1.Node) (bool, error) {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, version, want)
		return true, nil
	})
	return err
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
