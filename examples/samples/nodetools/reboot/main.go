// SPDX-License-Identifier: Apache-2.0

// Command reboot restarts its Node when a file asks for it. It runs once on every Node, as a DaemonSet.
//
//	reboot --node node-1 --namespace kube-system --required /var/run/reboot-required --from 2h --length 4h
//
// One Node of the cluster is rebooted at a time, in a window of time. All processes share a lock, which is
// a Lease object: kubectl get lease reboot shows who holds it. A Node that cannot be drained in time is
// uncordoned again, and another Node may go on.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/nodeops"
	"github.com/machinist-dev/machinist/permits"
	permitsrunner "github.com/machinist-dev/machinist/permits/runner"
)

// owner is the owner of the cordons.
const owner = "reboot"

// daemon reboots one Node.
type daemon struct {
	node, required, command string
	timeout                 time.Duration // of a drain
	drains                  runner.Executor
	policy                  drain.Policy
	lock                    *permitsrunner.Lock
}

func main() {
	d := daemon{policy: drain.Policy{EvictUnmanaged: true, EvictLocalStorage: true, Reassert: true, Cordon: nodeops.Cordon{Owner: owner}}}
	lock := &permitsrunner.Lock{Name: owner, Waiting: say, Policy: permits.Policy{Limit: 1}}
	kubeconfig := flag.String("kubeconfig", "", "`file` of the cluster; empty is the cluster of this pod")
	namespace := flag.String("namespace", "kube-system", "`name` of the namespace of the lock")
	flag.StringVar(&d.node, "node", os.Getenv("NODE_NAME"), "`name` of this Node")
	flag.StringVar(&d.required, "required", "/var/run/reboot-required", "`file` that exists until the Node was rebooted")
	flag.StringVar(&d.command, "command", "systemctl reboot", "shell `command` that reboots the Node")
	flag.DurationVar(&d.timeout, "drain-timeout", 30*time.Minute, "time for the drain of the Node")
	flag.DurationVar(&lock.Policy.TTL, "ttl", 10*time.Minute, "time that a lost Node keeps the lock, longer than a reboot takes")
	flag.DurationVar(&lock.Policy.Window.Start, "from", 0, "time of the day in UTC, from which on Nodes are rebooted")
	flag.DurationVar(&lock.Policy.Window.Length, "length", 24*time.Hour, "for how long from then")
	flag.BoolVar(&d.policy.Cordon.Adopt, "adopt", false, "uncordon also what an earlier version has cordoned without an owner")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	client, err := kubernetes.NewForConfig(config)
	check(err)
	d.policy.Rules = func(pod *corev1.Pod) drain.Rule {
		if pod.Namespace == *namespace {
			return drain.Rule{Action: drain.Ignore, Reason: "System"} // they start again with the Node
		}
		return drain.Rule{}
	}
	lock.Leases, lock.Holder, d.lock = client.CoordinationV1().Leases(*namespace), d.node, lock
	d.drains = runner.Executor{Client: runner.NewClient(client), Observer: runner.ObserverFunc(func(p drain.Progress) { fmt.Println(p) })}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for ctx.Err() == nil {
		if err := d.once(ctx); err != nil {
			say(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
	}
}

// once reboots the Node if the file asks for it. Otherwise, it ends what an earlier process has begun: the Node
// was rebooted, and another one may go on.
func (d *daemon) once(ctx context.Context) error {
	if _, err := os.Stat(d.required); errors.Is(err, os.ErrNotExist) {
		return d.leave(ctx)
	}
	return d.lock.Run(ctx, func(ctx context.Context) error {
		timed, cancel := context.WithTimeout(ctx, d.timeout)
		defer cancel()
		if _, err := d.drains.Run(timed, d.node, d.policy); err != nil {
			return errors.Join(err, d.leave(context.WithoutCancel(ctx)))
		}
		return exec.CommandContext(ctx, "sh", "-c", d.command).Run() // the process ends with the reboot
	})
}

// leave uncordons the Node and gives the lock to another one.
func (d *daemon) leave(ctx context.Context) error {
	if err := d.drains.Uncordon(ctx, d.node, owner); err != nil {
		return err
	}
	return d.lock.Release(ctx)
}

func say(err error) { fmt.Fprintln(os.Stderr, err) }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
