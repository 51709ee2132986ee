// SPDX-License-Identifier: Apache-2.0

// Command spot drains its Node when the cloud announces the end of its VM.
//
//	spot --node node-1 --notice http://169.254.169.254/latest/meta-data/spot/instance-action
//
// Pods get half of the time as their grace period, and PodDisruptionBudgets are respected. What could not be evicted is
// printed. The Node stays cordoned: its VM ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/nodeops"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`file` of the cluster; empty is the cluster of this pod")
	node := flag.String("node", os.Getenv("NODE_NAME"), "`name` of this Node")
	notice := flag.String("notice", "http://169.254.169.254/latest/meta-data/spot/instance-action", "`URL` that exists from the notice on")
	left := flag.Duration("left", 30*time.Second, "time from the notice to the end of the VM")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	client, err := kubernetes.NewForConfig(config)
	check(err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if !announced(ctx, *notice) {
		return
	}
	e := runner.Executor{Client: runner.NewClient(client), Observer: runner.ObserverFunc(func(p drain.Progress) { fmt.Println(p) })}
	check(evict(ctx, e, *node, *left))
}

// announced waits for the notice. It returns false if the context ends before.
func announced(ctx context.Context, url string) bool {
	client := http.Client{Timeout: time.Second}
	for ; ctx.Err() == nil; time.Sleep(time.Second) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		check(err)
		response, err := client.Do(request)
		if err != nil {
			continue // no answer is no notice
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return true
		}
	}
	return false
}

// evict evicts what it can in the time that is left. It does not wait for the end of evicted pods.
func evict(ctx context.Context, e runner.Executor, node string, left time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, left-left/10)
	defer cancel()
	decision, err := e.Run(ctx, node, drain.Policy{
		EvictUnmanaged: true, EvictLocalStorage: true, AllAtOnce: true, Reassert: true,
		Cordon: nodeops.Cordon{Owner: "spot", Reason: "the VM ends", ExcludeFromLoadBalancers: true},
		Grace:  new(max(left/2, time.Second)), RetryEvery: time.Second,
		Rules: func(*corev1.Pod) drain.Rule { return drain.Rule{SkipEnd: true} },
	})
	for _, hold := range decision.Holds() {
		fmt.Println("left:", hold)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, runner.ErrObstacles) {
		return nil // it has evicted what it could
	}
	return err
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
