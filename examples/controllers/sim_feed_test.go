// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	policyinformers "k8s.io/client-go/informers/policy"
	storageinformers "k8s.io/client-go/informers/storage"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/drain/draintest"
	machineinformers "github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	machineinternal "github.com/machinist-dev/machinist/machine/client/informers/externalversions/internalinterfaces"
	machinegroup "github.com/machinist-dev/machinist/machine/client/informers/externalversions/machine"
)

// entry is a write as watches show it.
type entry struct {
	key     string
	object  runtime.Object     // after the write; the last version of a deleted object
	meta    *metav1.ObjectMeta // a copy of its metadata
	gone    bool
	shownAt time.Time
}

// site is a cluster with the log of all its writes. Caches are filled from the log, in order, when
// the schedule decides.
type site struct {
	name      string
	cluster   *draintest.Cluster
	log       map[string][]entry                   // by resource
	now       map[string]map[string]runtime.Object // the stored objects, by resource and key
	heldUntil time.Time                            // until then, watches show no more
	held      map[string]int                       // than this number of entries, by resource
	outUntil  time.Time                            // until then, requests are rejected
	outages   []span                               // all outages
	modified  []string                             // objects that the controllers have modified in a cache
}

// span is an interval of time.
type span struct{ from, to time.Time }

// beginOutage lets the site reject every request until a time.
func (s *site) beginOutage(now, until time.Time) {
	if n := len(s.outages) - 1; n >= 0 && !now.After(s.outages[n].to) {
		s.outages[n].to = later(s.outages[n].to, until)
	} else {
		s.outages = append(s.outages, span{now, until})
	}
	s.outUntil = s.outages[len(s.outages)-1].to
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func newSite(name string, cluster *draintest.Cluster) *site {
	return &site{name: name, cluster: cluster, log: map[string][]entry{}, now: map[string]map[string]runtime.Object{}, held: map[string]int{}}
}

// add appends a write to the log.
func (s *site) add(write draintest.Write, shownAt time.Time) {
	resource, key := write.Resource.Resource, keyOf(write.Namespace, write.Name)
	log := s.log[resource]
	if n := len(log); n > 0 && log[n-1].shownAt.After(shownAt) {
		shownAt = log[n-1].shownAt // entries are shown in order
	}
	e := entry{key: key, object: write.After, shownAt: shownAt, meta: metaOf(write.After)}
	if s.now[resource] == nil {
		s.now[resource] = map[string]runtime.Object{}
	}
	s.now[resource][key] = write.After
	if write.After == nil {
		e.object, e.gone = write.Before, true
		if m, err := meta.Accessor(e.object); err == nil {
			m.SetResourceVersion(write.ResourceVersion)
		}
		delete(s.now[resource], key)
	}
	s.log[resource] = append(log, e)
}

func keyOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// stored returns the stored object with a key, or the zero T.
func stored[T any](s *site, resource, key string) (t T) {
	t, _ = s.now[resource][key].(T)
	return t
}

// all returns the stored objects in order.
func all[T any](s *site, resource string) []T {
	out := make([]T, 0, len(s.now[resource]))
	for _, key := range slices.Sorted(maps.Keys(s.now[resource])) {
		if t, ok := s.now[resource][key].(T); ok {
			out = append(out, t)
		}
	}
	return out
}

// hold delays all further events of the watches until a time.
func (s *site) hold(until time.Time, watches []*informer) {
	s.heldUntil = until
	for _, i := range watches {
		if i.site == s {
			s.held[i.resource] = i.read
		}
	}
}

// shown returns when watches show the entry with an index of the log.
func (s *site) shown(resource string, n int) time.Time {
	e := s.log[resource][n]
	if n >= s.held[resource] && e.shownAt.Before(s.heldUntil) {
		return s.heldUntil
	}
	return e.shownAt
}

// informer is a cache that the simulation fills from the log of a site.
type informer struct {
	cache.SharedIndexInformer // nil: methods that are not simulated panic
	site                      *site
	resource                  string
	indexer                   cache.Indexer
	handlers                  []cache.ResourceEventHandler
	label                     string            // the label of watched objects; empty means all
	read                      int               // the number of delivered entries
	cached                    map[string]*entry // the entries of the objects in the cache
}

func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, h)
	return nil, nil //nolint:nilnil // the result is not used
}

func (i *informer) AddIndexers(indexers cache.Indexers) error { return i.indexer.AddIndexers(indexers) }
func (i *informer) HasSynced() bool                           { return true }
func (i *informer) SetTransform(cache.TransformFunc) error    { return nil } // the simulated objects need no transformation
func (i *informer) GetIndexer() cache.Indexer                 { return i.indexer }
func (i *informer) GetStore() cache.Store                     { return i.indexer }

// list fills the cache with a list: all stored objects, or, for an old list, what watches have
// shown.
func (i *informer) list(old bool, now time.Time) {
	log, state := i.site.log[i.resource], map[string]runtime.Object{}
	i.cached = map[string]*entry{}
	for i.read < len(log) && !(old && i.site.shown(i.resource, i.read).After(now)) {
		e := log[i.read]
		state[e.key], i.cached[e.key] = e.object, &log[i.read]
		if e.gone || !i.selects(e.object) {
			delete(state, e.key)
		}
		i.read++
	}
	keys := slices.Sorted(maps.Keys(state))
	for _, key := range keys {
		must(i.indexer.Add(state[key]))
	}
	for _, key := range keys {
		for _, h := range i.handlers {
			h.OnAdd(state[key], true)
		}
	}
}

// next returns when the informer has an event to deliver. Zero means that it has none.
func (i *informer) next() time.Time {
	log := i.site.log[i.resource]
	if i.read >= len(log) {
		return time.Time{}
	}
	return i.site.shown(i.resource, i.read)
}

// deliver delivers the next event to the controllers.
func (i *informer) deliver() {
	e := i.site.log[i.resource][i.read]
	i.read++
	old, had, err := i.indexer.GetByKey(e.key)
	must(err)
	if had {
		i.checkUnmodified(e.key)
	}
	i.cached[e.key] = &e
	switch {
	case !had && !i.selects(e.object):
	case had && (e.gone || !i.selects(e.object)):
		must(i.indexer.Delete(e.object))
		for _, h := range i.handlers {
			h.OnDelete(e.object)
		}
	case e.gone:
	case had:
		must(i.indexer.Update(e.object))
		for _, h := range i.handlers {
			h.OnUpdate(old, e.object)
		}
	default:
		must(i.indexer.Add(e.object))
		for _, h := range i.handlers {
			h.OnAdd(e.object, false)
		}
	}
}

// selects reports whether the informer watches an object.
func (i *informer) selects(o runtime.Object) bool {
	if i.label == "" {
		return true
	}
	m, err := meta.Accessor(o)
	must(err)
	_, has := m.GetLabels()[i.label]
	return has
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// feed returns the informers of one site and creates each on first use.
type feed struct {
	site      *site
	label     string // the label of watched objects; empty means all
	byType    map[reflect.Type]*informer
	informers []*informer
}

func newFeed(s *site, label string) *feed {
	return &feed{site: s, label: label, byType: map[reflect.Type]*informer{}}
}

func (f *feed) informerFor(o runtime.Object) cache.SharedIndexInformer {
	t := reflect.TypeOf(o)
	if f.byType[t] == nil {
		plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: t.Elem().Name()})
		i := &informer{site: f.site, label: f.label, resource: plural.Resource, indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
			cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		})}
		f.byType[t], f.informers = i, append(f.informers, i)
	}
	return f.byType[t]
}

// builtinFeed is the factory of informers of built-in kinds.
type builtinFeed struct {
	informers.SharedInformerFactory // nil: methods that are not simulated panic
	*feed
}

func (f builtinFeed) InformerFor(o runtime.Object, _ internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return f.informerFor(o)
}
func (f builtinFeed) Core() coreinformers.Interface       { return coreinformers.New(f, "", nil) }
func (f builtinFeed) Storage() storageinformers.Interface { return storageinformers.New(f, "", nil) }
func (f builtinFeed) Policy() policyinformers.Interface   { return policyinformers.New(f, "", nil) }

// machineFeed is the factory of informers of the machine objects.
type machineFeed struct {
	machineinformers.SharedInformerFactory // nil: methods that are not simulated panic
	*feed
}

func (f machineFeed) InformerFor(o runtime.Object, _ machineinternal.NewInformerFunc) cache.SharedIndexInformer {
	return f.informerFor(o)
}
func (f machineFeed) Machine() machinegroup.Interface { return machinegroup.New(f, "", nil) }

func (i *informer) String() string { return fmt.Sprintf("%s/%s", i.site.name, i.resource) }
