// SPDX-License-Identifier: Apache-2.0

// Package drains has the drain of MCM. Package drain of the SDK decides, and its runner sends the requests.
package drains

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/driver"
)

// PodFilter reports whether a pod is drained. It must not change the pod.
type PodFilter func(corev1.Pod) bool

// Options are the settings of the drain of one Node.
type Options struct {
	// ForceDeletePods deletes pods at once, without eviction and with a grace period of zero.
	ForceDeletePods bool
	// GracePeriodSeconds is the grace period of evictions. Negative means that of the pod.
	GracePeriodSeconds int
	// Timeout is how long the drain may take. Zero means two hours.
	Timeout time.Duration
	// IgnorePodsWithoutControllers drains pods that nothing recreates. Without it they are an error.
	IgnorePodsWithoutControllers bool
	// IgnoreDaemonsets leaves the pods of DaemonSets on the Node. Without it they are an error.
	IgnoreDaemonsets bool
	// DeleteLocalData drains pods with emptyDir volumes, whose data is lost. Without it they are an error.
	DeleteLocalData bool
	// Driver says, if it is not nil and the drain is not forced, that the drain waits for volumes, each for at most
	// PvDetachTimeout and PvReattachTimeout. SkipVolumeDetach does not wait.
	Driver                             driver.Driver
	PvDetachTimeout, PvReattachTimeout time.Duration
	SkipVolumeDetach                   bool
	// AdditionalPodFilters choose the pods: one that a filter refuses is left on the Node.
	AdditionalPodFilters []PodFilter
	// ErrOut gets a line for each refused request, unless it is nil. Out gets nothing.
	Out, ErrOut io.Writer
	// MaxEvictRetries has no effect.
	MaxEvictRetries int32

	client kubernetes.Interface
	node   string
}

// New returns the drain of a Node with settings.
func New(client kubernetes.Interface, node string, o Options) *Options {
	o.client, o.node = client, node
	return &o
}

// SetPodProvider has no effect: the drain reads the pods of its Node through the client.
func (o *Options) SetPodProvider(interface {
	PodsForNode(ctx context.Context, nodeName string) ([]corev1.Pod, error)
}) {
}

// RunDrain drains the Node, and does not cordon it: see [runner.Executor.Run].
func (o *Options) RunDrain(ctx context.Context) error {
	if o == nil || o.client == nil {
		return errors.New("a drain needs a client: use NewDrainOptions")
	}
	if err := o.refuseDaemonSets(ctx); err != nil {
		return err
	}
	executor := runner.Executor{Client: runner.NewClient(o.client), Observer: runner.ObserverFunc(o.report)}
	_, err := executor.Run(ctx, o.node, o.policy())
	return err
}

// refuseDaemonSets returns an error for a pod of a DaemonSet, unless they are ignored: package drain leaves them always.
func (o *Options) refuseDaemonSets(ctx context.Context) error {
	if o.IgnoreDaemonsets {
		return nil
	}
	pods, err := o.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + o.node})
	if err != nil {
		return err
	}
	for i, p := range pods.Items {
		if owner := metav1.GetControllerOf(&pods.Items[i]); p.Spec.NodeName == o.node && owner != nil && owner.Kind == "DaemonSet" {
			return fmt.Errorf("pod %s/%s: a DaemonSet manages it, and ignoreDaemonsets is false", p.Namespace, p.Name)
		}
	}
	return nil
}

func (o *Options) report(p drain.Progress) {
	if p.Err != nil && o.ErrOut != nil {
		_, _ = fmt.Fprintln(o.ErrOut, p)
	}
}

func (o *Options) policy() drain.Policy {
	p := drain.Policy{
		KeepSchedulable:   true,
		Ladder:            drain.Ladder{{After: cmp.Or(o.Timeout, drain.DefaultMachineDrainTimeout), Action: drain.GiveUp}},
		AllAtOnce:         true,
		EvictUnmanaged:    o.IgnorePodsWithoutControllers,
		EvictLocalStorage: o.DeleteLocalData,
		Rules:             o.rule,
		Volumes: drain.VolumePolicy{
			Wait:          o.Driver != nil && !o.ForceDeletePods && !o.SkipVolumeDetach,
			DetachTimeout: o.PvDetachTimeout, ReattachTimeout: o.PvReattachTimeout,
		},
	}
	if o.GracePeriodSeconds >= 0 {
		p.Grace = ptr.To(time.Duration(o.GracePeriodSeconds) * time.Second)
	}
	if o.ForceDeletePods {
		p.Ladder = slices.Insert(p.Ladder, 0, drain.Rung{Action: drain.IgnoreBudgets})
		p.Grace = new(time.Duration)
	}
	return p
}

// rule leaves out what the filters refuse.
func (o *Options) rule(pod *corev1.Pod) drain.Rule {
	if slices.ContainsFunc(o.AdditionalPodFilters, func(f PodFilter) bool { return f != nil && !f(*pod) }) {
		return drain.Rule{Action: drain.Ignore, Reason: "Filtered", Message: "a filter of the caller leaves it on the node"}
	}
	return drain.Rule{}
}
