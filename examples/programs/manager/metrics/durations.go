// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// durations measures the steps of machines, from the changes in the cache. It does not measure
// changes before the start of the manager.
type durations struct {
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
	ofNode       func(ctx context.Context, node string) ([]*v1alpha1.Machine, error)
}

func newDurations(now func() time.Time) *durations {
	l := &durations{
		now:        now,
		created:    histogram("machinist_machine_creation_duration_seconds", "Time from the creation of a machine object until its VM exists.", deploymentLabels...),
		joined:     histogram("machinist_machine_join_duration_seconds", "Time from the creation of a machine object until it is Running, or Available without a target cluster.", deploymentLabels...),
		gone:       histogram("machinist_machine_deletion_duration_seconds", "Time from the deletion timestamp of a machine until the object is gone.", deploymentLabels...),
		failedJoin: counter("mcm_machine_num_failed_join", "Machines that failed before they joined.", fourLabels...),
		stale:      prometheus.NewCounter(prometheus.CounterOpts{Name: "mcm_machine_stale_machines_total", Help: "Failed machines that were deleted."}),
		last:       map[string]lastSeconds{"drain": newLastSeconds("drain", deploymentLabels)}, types: newBounded(), zones: newBounded(),
		class:   func(_, _ string) *v1alpha1.MachineClass { return nil },
		machine: func(_, _ string) *v1alpha1.Machine { return nil },
		ofNode:  func(context.Context, string) ([]*v1alpha1.Machine, error) { return nil, nil },
	}
	for _, name := range []string{"create", "initialize", "join", "delete"} {
		l.last[name] = newLastSeconds(name, fourLabels)
	}
	return l
}

// deploymentLabels name a MachineDeployment.
var deploymentLabels = []string{"namespace", "machine_deployment"}

// fourLabels are the labels of MCM's gauges.
var fourLabels = []string{"namespace", "machine_deployment", "instance_type", "zone"}

func (d *durations) all() []prometheus.Collector {
	all := []prometheus.Collector{d.created, d.joined, d.gone, d.failedJoin, d.stale}
	for _, g := range d.last {
		all = append(all, g)
	}
	return all
}

// Describe implements [prometheus.Collector].
func (d *durations) Describe(to chan<- *prometheus.Desc) {
	for _, c := range d.all() {
		c.Describe(to)
	}
}

// Collect implements [prometheus.Collector].
func (d *durations) Collect(to chan<- prometheus.Metric) {
	for _, c := range d.all() {
		c.Collect(to)
	}
}

// watch measures the machines of a cache from now on. Of two programs, the one that runs machines
// measures durations, and the one that runs sets counts outdated machines.
func (d *durations) watch(v controllers.Views) {
	machines := v.Objects.Machines()
	d.shard = v.Shard
	if v.Part == controllers.Sets {
		d.onChange(machines.Informer(), d.outdated, func(*v1alpha1.Machine) {})
		return
	}
	d.owners = ownersOf(v)
	classes := v.Objects.MachineClasses().Lister()
	d.class = func(namespace, name string) *v1alpha1.MachineClass {
		class, _ := classes.MachineClasses(namespace).Get(name)
		return class
	}
	d.machine = func(namespace, name string) *v1alpha1.Machine {
		m, _ := machines.Lister().Machines(namespace).Get(name)
		return m
	}
	d.ofNode = v.MachinesOfNode
	if v.Part != controllers.MachinesAlone {
		d.forget(v.Objects.MachineDeployments().Informer(), "")
		d.forget(v.Objects.MachineSets().Informer(), ofSet)
	}
	changed := d.changed
	if v.Part == controllers.All {
		changed = func(before, after *v1alpha1.Machine) {
			d.changed(before, after)
			d.outdated(before, after)
		}
	}
	d.onChange(machines.Informer(), changed, d.ended)
	_, _ = machines.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		if m, isMachine := o.(*v1alpha1.Machine); isMachine && controllers.InShard(m, v.Shard) {
			d.seen(m)
		}
	}})
}

// onChange calls changed for each change of a machine of the shard, and ended for each deletion.
func (d *durations) onChange(machines cache.SharedIndexInformer, changed func(before, after *v1alpha1.Machine), ended func(*v1alpha1.Machine)) {
	_, _ = machines.AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails only once the informer has stopped
		UpdateFunc: func(before, after any) {
			b, isMachine := before.(*v1alpha1.Machine)
			a, _ := after.(*v1alpha1.Machine)
			if isMachine && a != nil && a.UID == b.UID && controllers.InShard(a, d.shard) {
				changed(b, a)
			}
		},
		DeleteFunc: func(o any) {
			if unknown, missed := o.(cache.DeletedFinalStateUnknown); missed {
				o = unknown.Obj
			}
			if m, isMachine := o.(*v1alpha1.Machine); isMachine && m.DeletionTimestamp != nil && controllers.InShard(m, d.shard) {
				ended(m)
			}
		},
	})
}

// forget deletes the series of deleted deployments or sets.
func (d *durations) forget(informer cache.SharedIndexInformer, prefix string) {
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) {
		key, err := cache.DeletionHandlingObjectToName(o)
		if err != nil {
			return
		}
		labels := prometheus.Labels{"namespace": key.Namespace, "machine_deployment": prefix + key.Name}
		for _, v := range []*prometheus.HistogramVec{d.created, d.joined, d.gone} {
			v.DeletePartialMatch(labels)
		}
		d.failedJoin.DeletePartialMatch(labels)
		for _, g := range d.last {
			g.DeletePartialMatch(labels)
		}
	}})
}

// seen starts the series of the deployment of a machine at zero, before anything is measured.
// Prometheus sees no increase in a series that starts at one.
func (d *durations) seen(m *v1alpha1.Machine) {
	deployment := d.owners.of(m)
	for _, v := range []*prometheus.HistogramVec{d.created, d.joined, d.gone} {
		v.WithLabelValues(m.Namespace, deployment)
	}
}

// changed measures one change of a machine.
func (d *durations) changed(before, after *v1alpha1.Machine) {
	age := d.now().Sub(after.CreationTimestamp.Time)
	deployment := d.owners.of(after)
	if before.Spec.ProviderID == "" && after.Spec.ProviderID != "" {
		d.created.WithLabelValues(after.Namespace, deployment).Observe(age.Seconds())
		d.last["create"].set(d.labels(after), age)
	}
	was, is := before.Status.CurrentStatus.Phase, after.Status.CurrentStatus.Phase
	creating := after.Status.LastOperation.Type == v1alpha1.MachineOperationCreate
	switch {
	case was == is:
	case (is == v1alpha1.MachineRunning || is == v1alpha1.MachineAvailable) && creating:
		d.joined.WithLabelValues(after.Namespace, deployment).Observe(age.Seconds())
		d.last["join"].set(d.labels(after), age)
	case is == v1alpha1.MachineFailed && creating && after.Spec.ProviderID != "":
		d.failedJoin.WithLabelValues(d.labels(after)...).Inc()
	}
}

// outdated counts a failed machine that is deleted.
func (d *durations) outdated(before, after *v1alpha1.Machine) {
	if before.DeletionTimestamp == nil && after.DeletionTimestamp != nil && before.Status.CurrentStatus.Phase == v1alpha1.MachineFailed {
		d.stale.Inc()
	}
}

// drained measures a drain that ended.
func (d *durations) drained(p drain.Progress) {
	if p.Type != drain.ProgressEnded || p.Outcome != drain.Drained || p.Started.IsZero() {
		return
	}
	if all, err := d.ofNode(context.Background(), p.Node); err == nil && len(all) == 1 {
		d.last["drain"].set([]string{all[0].Namespace, d.owners.of(all[0])}, p.Time.Sub(p.Started))
	}
}

// ended measures the end of a machine.
func (d *durations) ended(m *v1alpha1.Machine) {
	d.gone.WithLabelValues(m.Namespace, d.owners.of(m)).Observe(d.now().Sub(m.DeletionTimestamp.Time).Seconds())
}

// called measures a call of the driver.
func (d *durations) called(c driver.Call) {
	m := d.machine(c.Namespace, c.Machine)
	if m == nil || c.Code != codes.OK {
		return
	}
	switch c.Operation {
	case driver.OpInitializeMachine:
		d.last["initialize"].set(d.labels(m), c.Duration)
	case driver.OpDeleteMachine:
		if m.DeletionTimestamp != nil {
			d.last["delete"].set(d.labels(m), d.now().Sub(m.DeletionTimestamp.Time))
		}
	default:
	}
}

// labels returns the values of fourLabels for a machine. The instance type is empty if the class
// has no node template.
func (d *durations) labels(m *v1alpha1.Machine) []string {
	kind := ""
	if class := d.class(m.Namespace, m.Spec.Class.Name); class != nil && class.NodeTemplate != nil {
		kind = class.NodeTemplate.InstanceType
	}
	zone := m.Spec.NodeTemplateSpec.Labels[corev1.LabelTopologyZone]
	return []string{m.Namespace, d.owners.of(m), d.types.of(kind), d.zones.of(zone)}
}

// lastSeconds is a gauge of MCM with the duration of the last operation, in whole seconds.
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

// of returns the name of the MachineDeployment of a machine. It is "set/" and the name of the set
// if the set has no deployment. It is "" if the set or the deployment does not exist, so that their
// series end.
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

// maxValues is the maximum number of values of a label whose values users choose.
const maxValues = 50

// bounded limits the number of values of a label.
type bounded struct {
	mu    sync.Mutex
	known map[string]bool
}

func newBounded() *bounded { return &bounded{known: map[string]bool{}} }

// of returns the value, or "other" if there are too many values.
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
