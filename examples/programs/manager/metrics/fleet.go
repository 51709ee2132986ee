// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// fleet collects the metrics of the objects in the caches.
type fleet struct {
	now        func() time.Time
	perMachine bool

	mu     sync.Mutex
	views  *controllers.Views
	failed map[string]float64 // scrapes that failed, by kind
}

func newFleet(o Options) *fleet {
	return &fleet{now: o.Now, perMachine: o.PerMachine, failed: map[string]float64{}}
}

func (f *fleet) watch(v controllers.Views) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.views = &v
	if f.showsMachines() {
		f.failed[kindMachines] = 0
	}
	if f.showsSets() {
		f.failed[kindSets], f.failed[kindDeployments] = 0, 0
	}
}

// The kinds of scrapeFailure have the names of MCM.
const (
	kindMachines    = "Machine-count"
	kindSets        = "Machineset-count"
	kindDeployments = "Machinedeployment-count"
)

// showsMachines reports whether this program has the series of machines. A program of sets alone
// does not, so that a sum over programs counts each machine once.
func (f *fleet) showsMachines() bool { return f.views.Part != controllers.Sets }

// showsSets reports whether this program has the series of sets and deployments.
func (f *fleet) showsSets() bool {
	return f.views.Part == controllers.All || f.views.Part == controllers.Sets
}

// A desc is a metric of the fleet.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	machinesTotal = desc("mcm_machine_items_total", "Machines.")
	machinePhases = desc("machinist_machines", "Machines by deployment and phase. A machine of a set without a deployment counts under set/ and the name of the set, one without either under nothing.", "namespace", "machine_deployment", "phase")
	heldObjects   = desc("machinist_holds", "Objects that wait, by kind and by the reason of what they wait for.", "kind", "reason")
	heldAge       = desc("machinist_hold_age_seconds", "Age of the oldest hold, by kind and reason.", "kind", "reason")
	scrapeFailure = desc("mcm_misc_scrape_failure_total", "Scrapes that could not read objects of a kind.", "kind")

	machineInfo      = desc("mcm_machine_info", "1 for each machine; only with --metrics-per-machine.", "name", "namespace", "createdAt", "spec_provider_id", "spec_class_api_group", "spec_class_kind", "spec_class_name", "node_name")
	machinePhase     = desc("mcm_machine_current_status_phase", "Phase of a machine: Terminating -4, Failed -3, CrashLoopBackOff -2, Unknown -1, Pending 0, Running 1, Available 2, InPlaceUpdating 3, InPlaceUpdateSuccessful 4, InPlaceUpdateFailed 5, another 6; only with --metrics-per-machine.", "name", "namespace")
	machineCondition = desc("mcm_machine_status_condition", "Condition of a machine: True 1, False 0, Unknown 2; only with --metrics-per-machine.", "name", "namespace", "condition")

	setsTotal       = desc("mcm_machine_set_items_total", "Machine sets.")
	setInfo         = desc("mcm_machine_set_info", "1 for each machine set.", "name", "namespace", "createdAt", "spec_machine_class_api_group", "spec_machine_class_kind", "spec_machine_class_name")
	setCondition    = desc("mcm_machine_set_status_condition", "Condition of a machine set: True 1, False 0, Unknown 2.", "name", "namespace", "condition")
	setFailed       = desc("mcm_machine_set_failed_machines", "1 for each failed machine of a machine set; only with --metrics-per-machine.", failedLabels...)
	setReplicas     = setDesc("info_spec_replicas", "Replicas that a machine set is asked for.")
	setMinReady     = setDesc("info_spec_min_ready_seconds", "minReadySeconds of a machine set.")
	setAvailable    = setDesc("status_available_replicas", "Available machines of a machine set.")
	setLabeled      = setDesc("status_fully_labelled_replicas", "Machines of a machine set with the labels of its template.")
	setReady        = setDesc("status_ready_replicas", "Ready machines of a machine set.")
	setHas          = setDesc("status_replicas", "Machines of a machine set.")
	deploymentTotal = desc("mcm_machine_deployment_items_total", "Machine deployments.")
	deploymentInfo  = desc("mcm_machine_deployment_info", "1 for each machine deployment.", "name", "namespace", "createdAt", "spec_strategy_type")
	deployCondition = desc("mcm_machine_deployment_status_condition", "Condition of a machine deployment: True 1, False 0, Unknown 2.", "name", "namespace", "condition")
	deployFailed    = desc("mcm_machine_deployment_failed_machines", "1 for each failed machine of a machine deployment; only with --metrics-per-machine.", failedLabels...)

	failedLabels = []string{"name", "namespace", "failed_machine_name", "failed_machine_provider_id", "failed_machine_owner_ref", "failed_machine_last_operation_state", "failed_machine_last_operation_machine_operation_type"}
)

func setDesc(name, help string) *prometheus.Desc {
	return desc("mcm_machine_set_"+name, help, "name", "namespace")
}

func deploymentDesc(name, help string) *prometheus.Desc {
	return desc("mcm_machine_deployment_"+name, help, "name", "namespace")
}

// deploymentValues are the metrics of a deployment with one value. A function that returns false
// has none.
var deploymentValues = []struct {
	desc  *prometheus.Desc
	value func(d *v1alpha1.MachineDeployment) (float64, bool)
}{
	{deploymentDesc("info_spec_paused", "1 for a paused machine deployment, else 0."), func(d *v1alpha1.MachineDeployment) (float64, bool) { return number(d.Spec.Paused), true }},
	{deploymentDesc("info_spec_replicas", "Replicas that a machine deployment is asked for."), count(func(d *v1alpha1.MachineDeployment) int32 { return d.Spec.Replicas })},
	{deploymentDesc("info_spec_min_ready_seconds", "minReadySeconds of a machine deployment."), count(func(d *v1alpha1.MachineDeployment) int32 { return d.Spec.MinReadySeconds })},
	{deploymentDesc("info_spec_revision_history_limit", "Revision history limit of a machine deployment, if it has one."), optional(func(d *v1alpha1.MachineDeployment) *int32 { return d.Spec.RevisionHistoryLimit })},
	{deploymentDesc("info_spec_progress_deadline_seconds", "Progress deadline of a machine deployment, if it has one."), optional(func(d *v1alpha1.MachineDeployment) *int32 { return d.Spec.ProgressDeadlineSeconds })},
	{deploymentDesc("info_spec_rollback_to_revision", "Revision that a machine deployment is asked to roll back to."), func(d *v1alpha1.MachineDeployment) (float64, bool) {
		if d.Spec.RollbackTo == nil {
			return 0, false
		}
		return float64(d.Spec.RollbackTo.Revision), true
	}},
	{deploymentDesc("info_spec_rolling_update_max_surge", "maxSurge of a rolling update, in machines."), rolling(func(b deployment.Bounds) int64 { return b.Surge })},
	{deploymentDesc("info_spec_rolling_update_max_unavailable", "maxUnavailable of a rolling update, in machines."), rolling(func(b deployment.Bounds) int64 { return b.Unavailable })},
	{deploymentDesc("status_available_replicas", "Available machines of a machine deployment."), count(func(d *v1alpha1.MachineDeployment) int32 { return d.Status.AvailableReplicas })},
	{deploymentDesc("status_unavailable_replicas", "Unavailable machines of a machine deployment."), count(func(d *v1alpha1.MachineDeployment) int32 { return d.Status.UnavailableReplicas })},
	{deploymentDesc("status_ready_replicas", "Ready machines of a machine deployment."), count(func(d *v1alpha1.MachineDeployment) int32 { return d.Status.ReadyReplicas })},
	{deploymentDesc("status_updated_replicas", "Machines of the newest template of a machine deployment."), count(func(d *v1alpha1.MachineDeployment) int32 { return d.Status.UpdatedReplicas })},
	{deploymentDesc("status_replicas", "Machines of a machine deployment."), count(func(d *v1alpha1.MachineDeployment) int32 { return d.Status.Replicas })},
	{deploymentDesc("status_collision_count", "Collisions of the hash of the template of a machine deployment, if there were any."), optional(func(d *v1alpha1.MachineDeployment) *int32 { return d.Status.CollisionCount })},
}

func count(of func(*v1alpha1.MachineDeployment) int32) func(*v1alpha1.MachineDeployment) (float64, bool) {
	return func(d *v1alpha1.MachineDeployment) (float64, bool) { return float64(of(d)), true }
}

func optional(of func(*v1alpha1.MachineDeployment) *int32) func(*v1alpha1.MachineDeployment) (float64, bool) {
	return func(d *v1alpha1.MachineDeployment) (float64, bool) {
		if v := of(d); v != nil {
			return float64(*v), true
		}
		return 0, false
	}
}

// rolling returns a limit of a rolling update as a number of machines.
func rolling(of func(deployment.Bounds) int64) func(*v1alpha1.MachineDeployment) (float64, bool) {
	return func(d *v1alpha1.MachineDeployment) (float64, bool) {
		if d.Spec.Strategy.Type != v1alpha1.RollingUpdateMachineDeploymentStrategyType {
			return 0, false
		}
		bounds, err := deployment.BoundsOf(d)
		return float64(of(bounds)), err == nil
	}
}

// Describe implements [prometheus.Collector]. It includes the series that depend on a flag.
func (f *fleet) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		machinesTotal, machinePhases, heldObjects, heldAge, scrapeFailure, machineInfo, machinePhase, machineCondition, setsTotal, setInfo, setCondition, setFailed,
		setReplicas, setMinReady, setAvailable, setLabeled, setReady, setHas, deploymentTotal, deploymentInfo, deployCondition, deployFailed,
	} {
		to <- d
	}
	for _, v := range deploymentValues {
		to <- v.desc
	}
}

// Collect implements [prometheus.Collector].
func (f *fleet) Collect(to chan<- prometheus.Metric) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.views == nil {
		return
	}
	set := func(d *prometheus.Desc, value float64, labels ...string) {
		if m, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, value, labels...); err == nil {
			to <- m
		}
	}
	f.holds(set)
	if f.showsMachines() {
		f.machines(set)
	}
	if f.showsSets() {
		f.sets(set)
		f.deployments(set)
	}
	for kind, n := range f.failed {
		to <- prometheus.MustNewConstMetric(scrapeFailure, prometheus.CounterValue, n, kind)
	}
}

// setter shows one value.
type setter func(d *prometheus.Desc, value float64, labels ...string)

// read returns the listed objects of the shard. It counts an error of the lister.
func read[T metav1.Object](f *fleet, kind string, list func(labels.Selector) ([]T, error)) []T {
	all, err := list(labels.Everything())
	if err != nil {
		f.failed[kind]++
	}
	return slices.DeleteFunc(all, func(o T) bool { return !controllers.InShard(o, f.views.Shard) })
}

func (f *fleet) machines(set setter) {
	type key struct{ namespace, deployment, phase string }
	phases, owners := map[key]int{}, ownersOf(*f.views)
	all := read(f, kindMachines, f.views.Objects.Machines().Lister().List)
	for _, m := range all {
		phases[key{m.Namespace, owners.of(m), phaseLabel(m.Status.CurrentStatus.Phase)}]++
		if f.perMachine {
			f.machine(set, m)
		}
	}
	set(machinesTotal, float64(len(all)))
	for k, n := range phases {
		set(machinePhases, float64(n), k.namespace, k.deployment, k.phase)
	}
}

// phaseLabel returns the phase, or "Other" for an unknown phase.
func phaseLabel(phase v1alpha1.MachinePhase) string {
	switch {
	case phase == "":
		return "None"
	case facts.Exists(phase):
		return string(phase)
	default:
		return "Other"
	}
}

func (f *fleet) machine(set setter, m *v1alpha1.Machine) {
	set(machinePhase, float64(facts.TraitsOf(m.Status.CurrentStatus.Phase).Metric), m.Name, m.Namespace)
	set(machineInfo, 1, m.Name, m.Namespace, created(m), m.Spec.ProviderID, m.Spec.Class.APIGroup, m.Spec.Class.Kind, m.Spec.Class.Name, m.Labels[v1alpha1.NodeLabelKey])
	for _, c := range m.Status.Conditions {
		set(machineCondition, truth(string(c.Status)), m.Name, m.Namespace, string(c.Type))
	}
}

// created returns the time of creation in seconds since 1970.
func created(o metav1.Object) string { return strconv.FormatInt(o.GetCreationTimestamp().Unix(), 10) }

// truth returns the value of the status of a condition.
func truth(s string) float64 {
	switch s {
	case "True":
		return 1
	case "False":
		return 0
	default:
		return 2
	}
}

// holds collects the number of holds and the age of the oldest.
func (f *fleet) holds(set setter) {
	type key struct{ kind, reason string }
	counts, oldest := map[key]int{}, map[key]time.Duration{}
	now := f.now()
	for _, h := range f.views.Held() {
		k := key{h.Kind, string(h.Hold.Reason)}
		counts[k]++
		oldest[k] = max(oldest[k], now.Sub(h.Hold.Since))
	}
	for k, n := range counts {
		set(heldObjects, float64(n), k.kind, k.reason)
		set(heldAge, oldest[k].Seconds(), k.kind, k.reason)
	}
}

func (f *fleet) sets(set setter) {
	all := read(f, kindSets, f.views.Objects.MachineSets().Lister().List)
	set(setsTotal, float64(len(all)))
	for _, s := range all {
		class := s.Spec.Template.Spec.Class
		set(setInfo, 1, s.Name, s.Namespace, created(s), class.APIGroup, class.Kind, class.Name)
		for d, value := range map[*prometheus.Desc]int32{
			setReplicas: s.Spec.Replicas, setMinReady: s.Spec.MinReadySeconds, setAvailable: s.Status.AvailableReplicas,
			setLabeled: s.Status.FullyLabeledReplicas, setReady: s.Status.ReadyReplicas, setHas: s.Status.Replicas,
		} {
			set(d, float64(value), s.Name, s.Namespace)
		}
		for _, c := range s.Status.Conditions {
			set(setCondition, truth(string(c.Status)), s.Name, s.Namespace, string(c.Type))
		}
		if f.perMachine && s.Status.FailedMachines != nil {
			for _, m := range *s.Status.FailedMachines {
				f.failedMachine(set, setFailed, s.Name, s.Namespace, m)
			}
		}
	}
}

func (f *fleet) deployments(set setter) {
	all := read(f, kindDeployments, f.views.Objects.MachineDeployments().Lister().List)
	set(deploymentTotal, float64(len(all)))
	for _, d := range all {
		set(deploymentInfo, 1, d.Name, d.Namespace, created(d), string(d.Spec.Strategy.Type))
		for _, v := range deploymentValues {
			if value, has := v.value(d); has {
				set(v.desc, value, d.Name, d.Namespace)
			}
		}
		for _, c := range d.Status.Conditions {
			set(deployCondition, truth(string(c.Status)), d.Name, d.Namespace, string(c.Type))
		}
		if f.perMachine {
			for _, m := range d.Status.FailedMachines {
				if m != nil {
					f.failedMachine(set, deployFailed, d.Name, d.Namespace, *m)
				}
			}
		}
	}
}

func (f *fleet) failedMachine(set setter, d *prometheus.Desc, name, namespace string, m v1alpha1.MachineSummary) {
	set(d, 1, name, namespace, m.Name, m.ProviderID, m.OwnerRef, string(m.LastOperation.State), string(m.LastOperation.Type))
}
