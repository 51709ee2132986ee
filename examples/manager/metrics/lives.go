// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// lives measures what happens in the lives of machines, from what the cache shows of them. A
// change that happened before the manager started is not measured.
type lives struct {
	now    func() time.Time
	shard  string
	owners owners

	created, joined, gone *prometheus.HistogramVec
	failedJoin            *prometheus.CounterVec
	stale                 prometheus.Counter
	last                  map[string]lastSeconds // gauges of MCM, by name

	types, zones *bounded
	class        func(namespace, name string) *v1alpha1.MachineClass
	machine      func(namespace, name string) *v1alpha1.Machine
	ofNode       func(node string) *v1alpha1.Machine
}

func newLives(now func() time.Time) *lives {
	l := &lives{
		now:        now,
		created:    histogram("machinist_machine_creation_duration_seconds", "Time from the creation of a machine object until its VM exists.", deploymentLabels...),
		joined:     histogram("machinist_machine_join_duration_seconds", "Time from the creation of a machine object until it is Running, or Available without a target cluster.", deploymentLabels...),
		gone:       histogram("machinist_machine_deletion_duration_seconds", "Time from the deletion timestamp of a machine until the object is gone.", deploymentLabels...),
		failedJoin: counter("mcm_machine_num_failed_join", "Machines that failed before they joined.", fourLabels...),
		stale:      prometheus.NewCounter(prometheus.CounterOpts{Name: "mcm_machine_stale_machines_total", Help: "Failed machines that were deleted."}),
		last:       map[string]lastSeconds{"drain": newLastSeconds("drain", deploymentLabels)}, types: newBounded(), zones: newBounded(),
		class:   func(_, _ string) *v1alpha1.MachineClass { return nil },
		machine: func(_, _ string) *v1alpha1.Machine { return nil },
		ofNode:  func(string) *v1alpha1.Machine { return nil },
	}
	for _, name := range []string{"create", "initialize", "join", "delete"} {
		l.last[name] = newLastSeconds(name, fourLabels)
	}
	return l
}

// deploymentLabels name a MachineDeployment.
var deploymentLabels = []string{"namespace", "machine_deployment"}

// fourLabels are what MCM tells machines of a deployment apart by.
var fourLabels = []string{"namespace", "machine_deployment", "instance_type", "zone"}

func (l *lives) all() []prometheus.Collector {
	all := []prometheus.Collector{l.created, l.joined, l.gone, l.failedJoin, l.stale}
	for _, g := range l.last {
		all = append(all, g)
	}
	return all
}

// Describe implements [prometheus.Collector].
func (l *lives) Describe(to chan<- *prometheus.Desc) {
	for _, c := range l.all() {
		c.Describe(to)
	}
}

// Collect implements [prometheus.Collector].
func (l *lives) Collect(to chan<- prometheus.Metric) {
	for _, c := range l.all() {
		c.Collect(to)
	}
}

// watch measures the machines of a cache from now on. Of two programs, the one that acts on
// machines measures their lives, and the one that acts on sets counts outdated machines.
func (l *lives) watch(v controllers.Views) {
	machines := v.Objects.Machines()
	l.shard = v.Shard
	if v.Part == controllers.Sets {
		l.onChange(machines.Informer(), l.outdated, func(*v1alpha1.Machine) {})
		return
	}
	l.owners = ownersOf(v)
	classes := v.Objects.MachineClasses().Lister()
	l.class = func(namespace, name string) *v1alpha1.MachineClass {
		class, _ := classes.MachineClasses(namespace).Get(name)
		return class
	}
	l.machine = func(namespace, name string) *v1alpha1.Machine {
		m, _ := machines.Lister().Machines(namespace).Get(name)
		return m
	}
	l.ofNode = func(node string) *v1alpha1.Machine {
		all, _ := machines.Lister().List(labels.SelectorFromSet(labels.Set{v1alpha1.NodeLabelKey: node}))
		if len(all) != 1 {
			return nil
		}
		return all[0]
	}
	if v.Part != controllers.MachinesAlone {
		l.forget(v.Objects.MachineDeployments().Informer(), "")
		l.forget(v.Objects.MachineSets().Informer(), ofSet)
	}
	changed := l.changed
	if v.Part == controllers.All {
		changed = func(before, after *v1alpha1.Machine) {
			l.changed(before, after)
			l.outdated(before, after)
		}
	}
	l.onChange(machines.Informer(), changed, l.ended)
	_, _ = machines.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		if m, isMachine := o.(*v1alpha1.Machine); isMachine && controllers.InShard(m, v.Shard) {
			l.seen(m)
		}
	}})
}

// onChange calls changed when a machine of the shard changes, and ended when a deleted one is gone.
func (l *lives) onChange(machines cache.SharedIndexInformer, changed func(before, after *v1alpha1.Machine), ended func(*v1alpha1.Machine)) {
	_, _ = machines.AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails only once the informer has stopped
		UpdateFunc: func(before, after any) {
			b, isMachine := before.(*v1alpha1.Machine)
			a, _ := after.(*v1alpha1.Machine)
			if isMachine && a != nil && a.UID == b.UID && controllers.InShard(a, l.shard) {
				changed(b, a)
			}
		},
		DeleteFunc: func(o any) {
			if unknown, missed := o.(cache.DeletedFinalStateUnknown); missed {
				o = unknown.Obj
			}
			if m, isMachine := o.(*v1alpha1.Machine); isMachine && m.DeletionTimestamp != nil && controllers.InShard(m, l.shard) {
				ended(m)
			}
		},
	})
}

// forget drops the series of deployments or sets that are gone.
func (l *lives) forget(informer cache.SharedIndexInformer, prefix string) {
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) {
		key, err := cache.DeletionHandlingObjectToName(o)
		if err != nil {
			return
		}
		labels := prometheus.Labels{"namespace": key.Namespace, "machine_deployment": prefix + key.Name}
		for _, v := range []*prometheus.HistogramVec{l.created, l.joined, l.gone} {
			v.DeletePartialMatch(labels)
		}
		l.failedJoin.DeletePartialMatch(labels)
		for _, g := range l.last {
			g.DeletePartialMatch(labels)
		}
	}})
}

// seen begins the series of the deployment of a machine with zero, before anything is measured:
// of a series that begins with one, Prometheus does not see an increase.
func (l *lives) seen(m *v1alpha1.Machine) {
	deployment := l.owners.of(m)
	for _, v := range []*prometheus.HistogramVec{l.created, l.joined, l.gone} {
		v.WithLabelValues(m.Namespace, deployment)
	}
}

// changed measures what one change of a machine means.
func (l *lives) changed(before, after *v1alpha1.Machine) {
	age := l.now().Sub(after.CreationTimestamp.Time)
	deployment := l.owners.of(after)
	if before.Spec.ProviderID == "" && after.Spec.ProviderID != "" {
		l.created.WithLabelValues(after.Namespace, deployment).Observe(age.Seconds())
		l.last["create"].set(l.labels(after), age)
	}
	was, is := before.Status.CurrentStatus.Phase, after.Status.CurrentStatus.Phase
	creating := after.Status.LastOperation.Type == v1alpha1.MachineOperationCreate
	switch {
	case was == is:
	case (is == v1alpha1.MachineRunning || is == v1alpha1.MachineAvailable) && creating:
		l.joined.WithLabelValues(after.Namespace, deployment).Observe(age.Seconds())
		l.last["join"].set(l.labels(after), age)
	case is == v1alpha1.MachineFailed && creating && after.Spec.ProviderID != "":
		l.failedJoin.WithLabelValues(l.labels(after)...).Inc()
	}
}

// outdated counts a failed machine that is deleted.
func (l *lives) outdated(before, after *v1alpha1.Machine) {
	if before.DeletionTimestamp == nil && after.DeletionTimestamp != nil && before.Status.CurrentStatus.Phase == v1alpha1.MachineFailed {
		l.stale.Inc()
	}
}

// drained measures a drain that ended.
func (l *lives) drained(p drain.Progress) {
	if p.Type != drain.ProgressEnded || p.Outcome != drain.Drained || p.Started.IsZero() {
		return
	}
	if m := l.ofNode(p.Node); m != nil {
		l.last["drain"].set([]string{m.Namespace, l.owners.of(m)}, p.Time.Sub(p.Started))
	}
}

// ended measures the end of a machine.
func (l *lives) ended(m *v1alpha1.Machine) {
	l.gone.WithLabelValues(m.Namespace, l.owners.of(m)).Observe(l.now().Sub(m.DeletionTimestamp.Time).Seconds())
}

// called measures a call of the driver.
func (l *lives) called(c driver.Call) {
	m := l.machine(c.Namespace, c.Machine)
	if m == nil || c.Code != codes.OK {
		return
	}
	switch c.Operation {
	case driver.OpInitializeMachine:
		l.last["initialize"].set(l.labels(m), c.Duration)
	case driver.OpDeleteMachine:
		if m.DeletionTimestamp != nil {
			l.last["delete"].set(l.labels(m), l.now().Sub(m.DeletionTimestamp.Time))
		}
	default:
	}
}

// labels are the values of fourLabels for a machine. A class without node template has no
// instance type.
func (l *lives) labels(m *v1alpha1.Machine) []string {
	kind := ""
	if class := l.class(m.Namespace, m.Spec.Class.Name); class != nil && class.NodeTemplate != nil {
		kind = class.NodeTemplate.InstanceType
	}
	zone := m.Spec.NodeTemplateSpec.Labels[corev1.LabelTopologyZone]
	return []string{m.Namespace, l.owners.of(m), l.types.of(kind), l.zones.of(zone)}
}

// lastSeconds is a gauge of MCM that shows the duration of the last machine, in whole seconds.
type lastSeconds struct {
	*prometheus.GaugeVec
}

func newLastSeconds(name string, labels []string) lastSeconds {
	return lastSeconds{gauge("mcm_machine_"+name+"_duration_seconds", "Duration of the last such operation, in whole seconds; histograms have all.", labels...)}
}

func (g lastSeconds) set(labels []string, d time.Duration) {
	g.WithLabelValues(labels...).Set(d.Round(time.Second).Seconds())
}

// owners finds the deployments of machines.
type owners struct {
	set        func(namespace, name string) *v1alpha1.MachineSet
	deployment func(namespace, name string) bool
}

func ownersOf(v controllers.Views) owners {
	if v.Part == controllers.MachinesAlone {
		return owners{func(_, _ string) *v1alpha1.MachineSet { return nil }, func(_, _ string) bool { return false }}
	}
	sets, deployments := v.Objects.MachineSets().Lister(), v.Objects.MachineDeployments().Lister()
	return owners{func(namespace, name string) *v1alpha1.MachineSet {
		set, _ := sets.MachineSets(namespace).Get(name)
		return set
	}, func(namespace, name string) bool {
		_, err := deployments.MachineDeployments(namespace).Get(name)
		return err == nil
	}}
}

// ofSet is the prefix of the name of a set without a deployment.
const ofSet = "set/"

// of returns the name of the MachineDeployment of a machine. One of a set without a deployment
// has "set/" and the name of the set. One whose set or deployment does not exist has "", so that
// no series outlives them.
func (o owners) of(m *v1alpha1.Machine) string {
	owner := metav1.GetControllerOfNoCopy(m)
	if owner == nil || owner.Kind != "MachineSet" {
		return ""
	}
	set := o.set(m.Namespace, owner.Name)
	if set == nil {
		return ""
	}
	of := metav1.GetControllerOfNoCopy(set)
	switch {
	case of == nil:
		return ofSet + owner.Name
	case o.deployment(m.Namespace, of.Name):
		return of.Name
	default:
		return ""
	}
}

// maxValues is how many values of a label that users write are told apart.
const maxValues = 50

// bounded keeps the number of values of a label bounded.
type bounded struct {
	mu    sync.Mutex
	known map[string]bool
}

func newBounded() *bounded { return &bounded{known: map[string]bool{}} }

// of returns the value, or "other" once there are too many.
func (b *bounded) of(value string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if value == "" || b.known[value] {
		return value
	}
	if len(b.known) >= maxValues {
		return "other"
	}
	b.known[value] = true
	return value
}
