// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"

	machineinformers "github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// caches are the informer caches of the clusters. A factory starts only those informers that a
// controller has requested.
type caches struct {
	machines machineinformers.SharedInformerFactory
	control  informers.SharedInformerFactory // nil without the controllers of machines
	target   informers.SharedInformerFactory // nil without a target cluster
	tokens   informers.SharedInformerFactory // only the bootstrap tokens of machines; nil without target or control

	noSets bool // the cluster serves no sets and deployments

	wait   func()                                                              // waits for what passes have begun; nil without loops
	ofNode func(ctx context.Context, node string) ([]*v1alpha1.Machine, error) // the machines whose label names a Node
}

func newCaches(cfg *Config) *caches {
	c := &caches{
		noSets: cfg.Part == MachinesAlone,
		machines: machineinformers.NewSharedInformerFactoryWithOptions(cfg.Machines, cfg.Resync,
			machineinformers.WithNamespace(cfg.Namespace), machineinformers.WithTransform(withoutUnread)),
	}
	if cfg.Target != nil {
		c.target = informers.NewSharedInformerFactoryWithOptions(cfg.Target, cfg.Resync, informers.WithTransform(withoutUnread))
	}
	if cfg.Part.machines() {
		c.control = informers.NewSharedInformerFactoryWithOptions(cfg.Control, cfg.Resync,
			informers.WithNamespace(cfg.Namespace), informers.WithTransform(withoutUnread))
	}
	if cfg.Part.machines() && cfg.Target != nil {
		c.tokens = informers.NewSharedInformerFactoryWithOptions(cfg.Target, cfg.Resync, informers.WithNamespace(metav1.NamespaceSystem), informers.WithTransform(withoutUnread),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = v1alpha1.TokenOwnerLabel }))
	}
	return c
}

// withoutUnread removes what no controller reads of an object: the managed fields, which take more than a
// third of a Machine, and most of a Node, of a pod and of a PersistentVolumeClaim. The API server keeps
// all, because an update without managed fields does not change them, and Nodes are patched. What is left
// has each common text once.
func withoutUnread(o any) (any, error) {
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
		shared.metadata(m)
	}
	switch o := o.(type) {
	case *v1alpha1.Machine:
		shared.conditions(o.Status.Conditions)
	case *corev1.Node:
		s := o.Status
		shared.conditions(s.Conditions)
		o.Status = corev1.NodeStatus{Conditions: s.Conditions, Capacity: s.Capacity, VolumesAttached: s.VolumesAttached, Phase: s.Phase}
	case *corev1.Pod:
		s, t := o.Spec, o.Status
		o.Spec = corev1.PodSpec{
			NodeName: s.NodeName, Volumes: s.Volumes, Tolerations: s.Tolerations, Priority: s.Priority, TerminationGracePeriodSeconds: s.TerminationGracePeriodSeconds,
		}
		o.Status = corev1.PodStatus{Phase: t.Phase, Conditions: t.Conditions, StartTime: t.StartTime, ObservedGeneration: t.ObservedGeneration}
	case *corev1.PersistentVolumeClaim:
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: o.Spec.VolumeName},
		}, nil
	}
	return o, nil
}

// shared has the texts that all objects have in common, each once: a decoder makes a copy for each object.
var shared texts

// texts has one copy of each text. It is safe for concurrent use.
type texts struct {
	mu  sync.Mutex
	all map[string]string
}

// mostTexts is how many texts are kept. The memory of a text that many objects share matters; those of a few are
// forgotten together with the others.
const mostTexts = 10_000

// one returns the copy of a text that is kept.
func (t *texts) one(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kept, ok := t.all[text]; ok {
		return kept
	}
	if t.all == nil || len(t.all) >= mostTexts {
		t.all = map[string]string{}
	}
	t.all[text] = text
	return text
}

// metadata replaces texts of an object by the copies that are kept, as conditions does.
func (t *texts) metadata(o metav1.Object) {
	o.SetNamespace(t.one(o.GetNamespace()))
	for _, of := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
		for key, value := range of {
			of[t.one(key)] = value
		}
	}
	for i, finalizer := range o.GetFinalizers() {
		o.GetFinalizers()[i] = t.one(finalizer)
	}
	for i, owner := range o.GetOwnerReferences() {
		owner.APIVersion, owner.Kind, owner.Name, owner.UID = t.one(owner.APIVersion), t.one(owner.Kind), t.one(owner.Name), types.UID(t.one(string(owner.UID)))
		o.GetOwnerReferences()[i] = owner
	}
}

func (t *texts) conditions(all []corev1.NodeCondition) {
	for i, c := range all {
		all[i].Type, all[i].Reason, all[i].Message = corev1.NodeConditionType(t.one(string(c.Type))), t.one(c.Reason), t.one(c.Message)
	}
}

// factories returns the factories for the runners.
func (c *caches) factories() runner.Factories {
	return runner.Factories{Machines: c.machines, NoSets: c.noSets, Control: c.control, Target: c.target, Tokens: c.tokens}
}

// targetWait is how long the first passes wait for the target cluster. Machines can be deleted while
// it does not answer.
const targetWait = 30 * time.Second

// start starts the requested informers and waits until they are synced. It waits for those of the
// target cluster at most targetWait.
func (c *caches) start(ctx context.Context) error {
	c.machines.Start(ctx.Done())
	for _, f := range c.ofClusters() {
		f.Start(ctx.Done())
	}
	synced := allSynced(c.machines.WaitForCacheSync(ctx.Done()))
	if c.control != nil {
		synced = allSynced(c.control.WaitForCacheSync(ctx.Done())) && synced
	}
	if !synced {
		return fmt.Errorf("caches not synced: %w", context.Cause(ctx))
	}
	soon, cancel := context.WithTimeout(ctx, targetWait)
	defer cancel()
	for _, f := range c.ofClusters() {
		f.WaitForCacheSync(soon.Done())
	}
	return ctx.Err()
}

// allSynced reports whether all informers of a factory are synced.
func allSynced(informers map[reflect.Type]bool) bool {
	return !slices.Contains(slices.Collect(maps.Values(informers)), false)
}

// ofClusters returns the factories of the built-in kinds.
func (c *caches) ofClusters() []informers.SharedInformerFactory {
	var all []informers.SharedInformerFactory
	for _, f := range []informers.SharedInformerFactory{c.control, c.target, c.tokens} {
		if f != nil {
			all = append(all, f)
		}
	}
	return all
}

func (c *caches) shutdown() {
	c.machines.Shutdown()
	for _, f := range c.ofClusters() {
		f.Shutdown()
	}
}
