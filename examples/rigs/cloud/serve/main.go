// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(program(ctx, os.Args[1:], os.Stdout, os.Stderr)) //nolint:gocritic // nothing is left to be done by then
}

// program serves until ctx ends and returns the exit status.
func program(ctx context.Context, args []string, out, errOut io.Writer) int {
	s, err := parseFlags(args, out)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	var client kubernetes.Interface
	if err == nil && s.kubeconfig != "" {
		client, err = connect(s.kubeconfig)
	}
	if err != nil {
		_, _ = fmt.Fprintf(errOut, "serve: %s\n", err)
		return 2
	}
	if !s.verbose { // the informers complain whenever the API server is away
		klog.SetLogger(logr.Discard())
	}
	if err := serve(ctx, s, client, out, errOut); err != nil {
		_, _ = fmt.Fprintf(errOut, "serve: %s\n", err)
		return 1
	}
	return 0
}

// connect returns a client of a cluster with limits for many kubelets.
func connect(kubeconfig string) (kubernetes.Interface, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig: %w", err)
	}
	cfg.QPS, cfg.Burst, cfg.UserAgent = 500, 1000, "hollow"
	return kubernetes.NewForConfig(cfg)
}
