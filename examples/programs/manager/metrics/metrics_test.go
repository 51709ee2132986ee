// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/examples/programs/manager/metrics"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

var (
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now   = epoch.Add(time.Hour)
)

// shown is metrics over a cache that a test fills.
type shown struct {
	testing.TB
	*metrics.Metrics
	client *fake.Clientset
	held   []controllers.Held
}

// show returns metrics of objects; the cache follows what the client writes.
func show(t testing.TB, o metrics.Options, part controllers.Part, objects ...runtime.Object) *shown {
	t.Helper()
	return showShard(t, o, part, "", objects...)
}

// showShard is show for the objects of a shard.
func showShard(t testing.TB, o metrics.Options, part controllers.Part, shard string, objects ...runtime.Object) *shown {
	t.Helper()
	o.Now = func() time.Time { return now }
	s := &shown{TB: t, Metrics: metrics.New(o), client: fake.NewSimpleClientset(objects...)}
	factory := externalversions.NewSharedInformerFactory(s.client, 0)
	informers := factory.Machine().V1alpha1()
	for _, i := range []cache.SharedIndexInformer{informers.Machines().Informer(), informers.MachineClasses().Informer(), informers.MachineSets().Informer(), informers.MachineDeployments().Informer()} {
		require.NotNil(t, i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	// The fake client tells of no change between the list and the watch.
	require.Eventually(t, func() bool {
		watches := 0
		for _, a := range s.client.Actions() {
			if a.GetVerb() == "watch" {
				watches++
			}
		}
		return watches == 4
	}, 10*time.Second, time.Millisecond, "watches")
	s.Watch(controllers.Views{Part: part, Shard: shard, Objects: informers, Held: func() []controllers.Held { return s.held }, MachinesOfNode: func(_ context.Context, node string) ([]*v1alpha1.Machine, error) {
		return informers.Machines().Lister().List(labels.SelectorFromSet(labels.Set{v1alpha1.NodeLabelKey: node}))
	}})
	return s
}

// scrape returns the answer to a scrape.
func (s *shown) scrape() string {
	s.Helper()
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", nil))
	require.Equal(s, http.StatusOK, recorder.Code, recorder.Body.String())
	return recorder.Body.String()
}

// eventually waits until a scrape has a line, or has none that begins so.
func (s *shown) eventually(line string, there bool) {
	s.Helper()
	require.Eventually(s, func() bool { return strings.Contains(s.scrape(), "\n"+line) == there }, 10*time.Second, 5*time.Millisecond, line)
}

func meta(name, uid string, owner ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), CreationTimestamp: metav1.NewTime(epoch), OwnerReferences: owner}
}

func ownedBy(kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}
}

func deployment() *v1alpha1.MachineDeployment {
	surge, unavailable := intstr.FromString("50%"), intstr.FromString("50%")
	return &v1alpha1.MachineDeployment{
		ObjectMeta: meta("pool", "pool"),
		Spec: v1alpha1.MachineDeploymentSpec{Replicas: 3, MinReadySeconds: 7, Strategy: v1alpha1.MachineDeploymentStrategy{
			Type: v1alpha1.RollingUpdateMachineDeploymentStrategyType,
			RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{
				UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &unavailable},
			},
		}},
		Status: v1alpha1.MachineDeploymentStatus{
			Replicas: 3, ReadyReplicas: 2, AvailableReplicas: 2, UnavailableReplicas: 1, UpdatedReplicas: 3,
			Conditions:     []v1alpha1.MachineDeploymentCondition{{Type: v1alpha1.MachineDeploymentAvailable, Status: v1alpha1.ConditionFalse}},
			FailedMachines: []*v1alpha1.MachineSummary{nil, {Name: "pool-1-0"}},
		},
	}
}

func set() *v1alpha1.MachineSet {
	return &v1alpha1.MachineSet{
		ObjectMeta: meta("pool-1", "pool-1", ownedBy("MachineDeployment", "pool")),
		Spec:       v1alpha1.MachineSetSpec{Replicas: 3},
		Status:     v1alpha1.MachineSetStatus{Replicas: 3, ReadyReplicas: 2, AvailableReplicas: 1, FullyLabeledReplicas: 3, FailedMachines: &[]v1alpha1.MachineSummary{{Name: "pool-1-0"}}},
	}
}

func newMachine(i int, phase v1alpha1.MachinePhase) *v1alpha1.Machine {
	name := fmt.Sprint("pool-1-", i)
	m := &v1alpha1.Machine{ObjectMeta: meta(name, name, ownedBy("MachineSet", "pool-1"))}
	m.Spec.Class = v1alpha1.ClassSpec{Kind: "MachineClass", Name: "small"}
	m.Status.CurrentStatus.Phase = phase
	m.Status.LastOperation.Type = v1alpha1.MachineOperationCreate
	return m
}

func small() *v1alpha1.MachineClass {
	return &v1alpha1.MachineClass{ObjectMeta: meta("small", "small"), NodeTemplate: &v1alpha1.NodeTemplate{InstanceType: "m1"}}
}

func TestMetrics_Fleet_CountsOfEachDeploymentAndPhase(t *testing.T) {
	alone := newMachine(4, "Nonsense")
	alone.OwnerReferences = nil
	orphanSet := newMachine(5, "")
	orphanSet.OwnerReferences = []metav1.OwnerReference{ownedBy("MachineSet", "lost")}
	own := set()
	own.Name, own.OwnerReferences = "own", nil
	ofOwn, left := newMachine(6, v1alpha1.MachineRunning), set()
	ofOwn.OwnerReferences = []metav1.OwnerReference{ownedBy("MachineSet", "own")}
	left.Name, left.OwnerReferences = "left", []metav1.OwnerReference{ownedBy("MachineDeployment", "lost")}
	ofLeft := newMachine(7, v1alpha1.MachineTerminating)
	ofLeft.OwnerReferences = []metav1.OwnerReference{ownedBy("MachineSet", "left")}
	s := show(t, metrics.Options{}, controllers.All, deployment(), set(), small(),
		newMachine(0, v1alpha1.MachineRunning), newMachine(1, v1alpha1.MachineRunning), newMachine(2, v1alpha1.MachineFailed), alone, orphanSet, own, ofOwn, left, ofLeft)
	text := s.scrape()
	for _, line := range []string{
		`mcm_machine_items_total 7`, `mcm_machine_set_items_total 3`, `mcm_machine_deployment_items_total 1`,
		`machinist_machines{machine_deployment="pool",namespace="ns",phase="Running"} 2`,
		`machinist_machines{machine_deployment="pool",namespace="ns",phase="Failed"} 1`,
		`machinist_machines{machine_deployment="",namespace="ns",phase="Other"} 1`,
		`machinist_machines{machine_deployment="",namespace="ns",phase="None"} 1`,
		`machinist_machines{machine_deployment="",namespace="ns",phase="Terminating"} 1`,
		`mcm_misc_scrape_failure_total{kind="Machine-count"} 0`, `mcm_misc_scrape_failure_total{kind="Machineset-count"} 0`,
		`machinist_machines{machine_deployment="set/own",namespace="ns",phase="Running"} 1`,
		`mcm_machine_set_status_replicas{name="pool-1",namespace="ns"} 3`,
		`mcm_machine_set_status_ready_replicas{name="pool-1",namespace="ns"} 2`,
		`mcm_machine_set_status_available_replicas{name="pool-1",namespace="ns"} 1`,
		`mcm_machine_set_status_fully_labelled_replicas{name="pool-1",namespace="ns"} 3`,
		`mcm_machine_set_info_spec_replicas{name="pool-1",namespace="ns"} 3`,
		`mcm_machine_deployment_info{createdAt="1767225600",name="pool",namespace="ns",spec_strategy_type="RollingUpdate"} 1`,
		`mcm_machine_deployment_info_spec_rolling_update_max_surge{name="pool",namespace="ns"} 2`,
		`mcm_machine_deployment_info_spec_rolling_update_max_unavailable{name="pool",namespace="ns"} 1`,
		`mcm_machine_deployment_info_spec_min_ready_seconds{name="pool",namespace="ns"} 7`,
		`mcm_machine_deployment_status_unavailable_replicas{name="pool",namespace="ns"} 1`,
		`mcm_machine_deployment_status_condition{condition="Available",name="pool",namespace="ns"} 0`,
	} {
		require.Contains(t, text, "\n"+line+"\n")
	}
	for _, absent := range []string{"mcm_machine_info{", "mcm_machine_current_status_phase{", "failed_machines{", "progress_deadline", "rollback_to_revision{"} {
		require.NotContains(t, text, absent)
	}
}

func TestMetrics_PerMachine_SeriesOfEachMachine(t *testing.T) {
	m := newMachine(0, v1alpha1.MachineInPlaceUpdating)
	m.Spec.ProviderID = "cloud:///1"
	m.Labels = map[string]string{v1alpha1.NodeLabelKey: "node-1"}
	m.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	text := show(t, metrics.Options{PerMachine: true}, controllers.All, deployment(), set(), m).scrape()
	for _, line := range []string{
		`mcm_machine_current_status_phase{name="pool-1-0",namespace="ns"} 3`,
		`mcm_machine_info{createdAt="1767225600",name="pool-1-0",namespace="ns",node_name="node-1",spec_class_api_group="",spec_class_kind="MachineClass",spec_class_name="small",spec_provider_id="cloud:///1"} 1`,
		`mcm_machine_status_condition{condition="Ready",name="pool-1-0",namespace="ns"} 2`,
		`mcm_machine_set_failed_machines{failed_machine_last_operation_machine_operation_type="",failed_machine_last_operation_state="",failed_machine_name="pool-1-0",failed_machine_owner_ref="",failed_machine_provider_id="",name="pool-1",namespace="ns"} 1`,
	} {
		require.Contains(t, text, "\n"+line+"\n")
	}
	require.Equal(t, 1, strings.Count(text, "\nmcm_machine_deployment_failed_machines{"))
}

func TestMetrics_ObjectDeleted_SeriesEnd(t *testing.T) {
	pending := newMachine(0, v1alpha1.MachinePending)
	s := show(t, metrics.Options{PerMachine: true}, controllers.All, deployment(), set(), small(), pending)
	api := s.client.MachineV1alpha1()
	running := pending.DeepCopy()
	running.Status.CurrentStatus.Phase, running.Spec.ProviderID, running.ResourceVersion = v1alpha1.MachineRunning, "cloud:///1", "2"
	_, err := api.Machines("ns").Update(t.Context(), running, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.eventually(`mcm_machine_join_duration_seconds{instance_type="m1",machine_deployment="pool",namespace="ns",zone=""} 3600`, true)
	require.NoError(t, api.Machines("ns").Delete(t.Context(), "pool-1-0", metav1.DeleteOptions{}))
	s.eventually(`mcm_machine_info{`, false)
	require.NoError(t, api.MachineSets("ns").Delete(t.Context(), "pool-1", metav1.DeleteOptions{}))
	require.NoError(t, api.MachineDeployments("ns").Delete(t.Context(), "pool", metav1.DeleteOptions{}))
	s.eventually(`mcm_machine_deployment_info{`, false)
	s.eventually(`mcm_machine_join_duration_seconds{`, false)
	require.NotContains(t, s.scrape(), `"pool`)
}

func TestMetrics_SetWithoutDeploymentDeleted_SeriesEnd(t *testing.T) {
	of := set()
	of.OwnerReferences = nil
	s := show(t, metrics.Options{}, controllers.All, of, newMachine(0, v1alpha1.MachinePending))
	running := newMachine(0, v1alpha1.MachineRunning)
	running.ResourceVersion = "2"
	_, err := s.client.MachineV1alpha1().Machines("ns").Update(t.Context(), running, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.eventually(`machinist_machine_join_duration_seconds_count{machine_deployment="set/pool-1",namespace="ns"} 1`, true)
	require.NoError(t, s.client.MachineV1alpha1().MachineSets("ns").Delete(t.Context(), "pool-1", metav1.DeleteOptions{}))
	s.eventually(`machinist_machine_join_duration_seconds_count{`, false)
	deleting, deleted := running.DeepCopy(), metav1.NewTime(now.Add(-time.Minute))
	deleting.ResourceVersion, deleting.DeletionTimestamp = "3", &deleted
	_, err = s.client.MachineV1alpha1().Machines("ns").Update(t.Context(), deleting, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, s.client.MachineV1alpha1().Machines("ns").Delete(t.Context(), deleting.Name, metav1.DeleteOptions{}))
	s.eventually(`machinist_machine_deletion_duration_seconds_sum{machine_deployment="",namespace="ns"} 60`, true)
	require.NotContains(t, s.scrape(), `"set/`)
}

func TestMetrics_ConditionListedTwice_OneSeriesAndTheRest(t *testing.T) {
	d := deployment()
	d.Status.Conditions = append(d.Status.Conditions, d.Status.Conditions[0])
	d.Status.FailedMachines = append(d.Status.FailedMachines, d.Status.FailedMachines[1])
	text := show(t, metrics.Options{PerMachine: true}, controllers.All, d, set()).scrape()
	require.Equal(t, 1, strings.Count(text, "\nmcm_machine_deployment_status_condition{"))
	require.Equal(t, 1, strings.Count(text, "\nmcm_machine_deployment_failed_machines{"))
	require.Contains(t, text, "\nmcm_machine_set_items_total 1\n")
}

func TestMetrics_TwoShards_EachObjectIsShownOnce(t *testing.T) {
	d, s, blue, plain := deployment(), set(), newMachine(0, v1alpha1.MachineRunning), newMachine(1, v1alpha1.MachineRunning)
	for _, o := range []metav1.Object{d, s, blue} {
		o.SetLabels(map[string]string{v1alpha1.ShardLabelKey: "blue"})
	}
	plain.OwnerReferences = nil
	for _, tc := range []struct {
		shard, sets       string
		own, other        *v1alpha1.Machine
		measured, foreign string
	}{
		{"", "0", plain, blue, "", "pool"},
		{"blue", "1", blue, plain, "pool", ""},
	} {
		shown := showShard(t, metrics.Options{}, controllers.All, tc.shard, d, s, blue, plain)
		text := shown.scrape()
		require.Contains(t, text, "\nmcm_machine_deployment_items_total "+tc.sets)
		require.Contains(t, text, "\nmcm_machine_set_items_total "+tc.sets)
		require.Contains(t, text, "\nmcm_machine_items_total 1")
		for _, m := range []*v1alpha1.Machine{tc.other, tc.own} { // in this order
			gone := m.DeepCopy()
			gone.DeletionTimestamp = ptr.To(metav1.NewTime(now))
			_, err := shown.client.MachineV1alpha1().Machines("ns").Update(t.Context(), gone, metav1.UpdateOptions{})
			require.NoError(t, err)
			require.NoError(t, shown.client.MachineV1alpha1().Machines("ns").Delete(t.Context(), m.Name, metav1.DeleteOptions{}))
		}
		const count = "machinist_machine_deletion_duration_seconds_count{machine_deployment=%q,namespace=\"ns\"} 1"
		shown.eventually(fmt.Sprintf(count, tc.measured), true)
		require.NotContains(t, shown.scrape(), fmt.Sprintf("duration_seconds_count{machine_deployment=%q,", tc.foreign), "no series of another shard")
	}
}

// TestMetrics_TwoPrograms_EachObjectIsShownOnce adds up what the two programs show.
func TestMetrics_TwoPrograms_EachObjectIsShownOnce(t *testing.T) {
	seen := map[string]int{}
	for _, part := range []controllers.Part{controllers.Machines, controllers.Sets} {
		s := show(t, metrics.Options{PerMachine: true}, part, deployment(), set(), newMachine(0, v1alpha1.MachineFailed), newMachine(1, v1alpha1.MachineRunning))
		m := newMachine(0, v1alpha1.MachineFailed)
		deleted := metav1.NewTime(now)
		m.ResourceVersion, m.DeletionTimestamp, m.Spec.ProviderID = "2", &deleted, "cloud:///1"
		_, err := s.client.MachineV1alpha1().Machines("ns").Update(t.Context(), m, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t, s.client.MachineV1alpha1().Machines("ns").Delete(t.Context(), m.Name, metav1.DeleteOptions{}))
		if part == controllers.Sets {
			s.eventually("mcm_machine_stale_machines_total 1", true)
		} else {
			s.eventually("machinist_machine_deletion_duration_seconds_count{", true)
		}
		for line := range strings.Lines(s.scrape()) {
			if (strings.HasPrefix(line, "mcm_machine") || strings.HasPrefix(line, "machinist_machine")) && !strings.HasSuffix(line, " 0\n") {
				seen[line]++
			}
		}
	}
	require.NotEmpty(t, seen)
	for line, times := range seen {
		require.Equal(t, 1, times, line)
	}
}

func TestMetrics_DrainEnded_DurationOfItsDeployment(t *testing.T) {
	m := newMachine(0, v1alpha1.MachineTerminating)
	m.Labels = map[string]string{v1alpha1.NodeLabelKey: "node-1"}
	s := show(t, metrics.Options{}, controllers.All, deployment(), set(), m)
	for _, p := range []drain.Progress{
		{Type: drain.ProgressStarted, Node: "node-1", Started: epoch, Time: epoch},
		{Type: drain.ProgressEnded, Node: "node-1", Started: epoch, Time: epoch.Add(90 * time.Second), Outcome: drain.Drained},
		{Type: drain.ProgressEnded, Node: "node-1", Started: epoch, Time: epoch.Add(time.Hour), Outcome: drain.GaveUp},
		{Type: drain.ProgressEnded, Node: "gone", Started: epoch, Time: epoch.Add(time.Hour), Outcome: drain.Drained},
	} {
		s.Drains().Observe(p)
	}
	text := s.scrape()
	require.Contains(t, text, "\n"+`mcm_machine_drain_duration_seconds{machine_deployment="pool",namespace="ns"} 90`+"\n")
	require.Contains(t, text, "\n"+`machinist_drain_ended_total{outcome="Drained"} 2`+"\n")
}

func TestMetrics_Life_DurationsOfEachStep(t *testing.T) {
	m := newMachine(0, "")
	s := show(t, metrics.Options{}, controllers.All, deployment(), set(), m) // without its class
	write := func(change func(*v1alpha1.Machine)) {
		t.Helper()
		m = m.DeepCopy()
		m.ResourceVersion += "1"
		change(m)
		_, err := s.client.MachineV1alpha1().Machines("ns").Update(t.Context(), m, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	write(func(m *v1alpha1.Machine) {
		m.Spec.ProviderID, m.Status.CurrentStatus.Phase = "cloud:///1", v1alpha1.MachinePending
	})
	s.eventually(`machinist_machine_creation_duration_seconds_count{machine_deployment="pool",namespace="ns"} 1`, true)
	write(func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning })
	s.eventually(`machinist_machine_join_duration_seconds_sum{machine_deployment="pool",namespace="ns"} 3600`, true)
	write(func(m *v1alpha1.Machine) {
		m.Status.CurrentStatus.Phase, m.Status.LastOperation.Type = v1alpha1.MachineUnknown, v1alpha1.MachineOperationHealthCheck
	})
	write(func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning })
	write(func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = v1alpha1.MachineFailed })
	deleted := metav1.NewTime(now.Add(-30 * time.Second))
	write(func(m *v1alpha1.Machine) { m.DeletionTimestamp = &deleted })
	s.eventually(`mcm_machine_stale_machines_total 1`, true)
	require.Contains(t, s.scrape(), `machinist_machine_join_duration_seconds_count{machine_deployment="pool",namespace="ns"} 1`, "it recovered, and did not join again")
	require.NoError(t, s.client.MachineV1alpha1().Machines("ns").Delete(t.Context(), m.Name, metav1.DeleteOptions{}))
	s.eventually(`machinist_machine_deletion_duration_seconds_sum{machine_deployment="pool",namespace="ns"} 30`, true)
	require.NotContains(t, s.scrape(), "mcm_machine_num_failed_join{")

	refused := newMachine(2, v1alpha1.MachineCrashLoopBackOff)
	_, err := s.client.MachineV1alpha1().Machines("ns").Create(t.Context(), refused, metav1.CreateOptions{})
	require.NoError(t, err)
	s.eventually(`machinist_machines{machine_deployment="pool",namespace="ns",phase="CrashLoopBackOff"} 1`, true)
	refused = refused.DeepCopy()
	refused.ResourceVersion, refused.Status.CurrentStatus.Phase = "2", v1alpha1.MachineFailed
	_, err = s.client.MachineV1alpha1().Machines("ns").Update(t.Context(), refused, metav1.UpdateOptions{})
	require.NoError(t, err)

	never := newMachine(1, v1alpha1.MachinePending)
	_, err = s.client.MachineV1alpha1().Machines("ns").Create(t.Context(), never, metav1.CreateOptions{})
	require.NoError(t, err)
	s.eventually(`machinist_machines{machine_deployment="pool",namespace="ns",phase="Pending"} 1`, true)
	failed := never.DeepCopy()
	failed.ResourceVersion, failed.Spec.ProviderID, failed.Status.CurrentStatus.Phase = "2", "cloud:///2", v1alpha1.MachineFailed
	_, err = s.client.MachineV1alpha1().Machines("ns").Update(t.Context(), failed, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.eventually(`mcm_machine_num_failed_join{instance_type="",machine_deployment="pool",namespace="ns",zone=""} 1`, true)
}

func TestMetrics_OptionalFieldsMissing_NoPanic(t *testing.T) {
	d, bare, m := deployment(), small(), newMachine(0, v1alpha1.MachinePending)
	d.Spec.Strategy.RollingUpdate, bare.NodeTemplate, m.Labels = nil, nil, nil
	s := show(t, metrics.Options{PerMachine: true}, controllers.All, d, set(), bare, m)
	m = m.DeepCopy()
	m.ResourceVersion, m.Status.CurrentStatus.Phase = "2", v1alpha1.MachineRunning
	_, err := s.client.MachineV1alpha1().Machines("ns").Update(t.Context(), m, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.eventually(`mcm_machine_join_duration_seconds{instance_type="",machine_deployment="pool",namespace="ns",zone=""} 3600`, true)
	require.Contains(t, s.scrape(), "\nmcm_machine_deployment_info_spec_replicas{")
	require.NotContains(t, s.scrape(), "max_surge{", "there is no block")
}

func TestMetrics_Holds_CountAndOldest(t *testing.T) {
	s := show(t, metrics.Options{}, controllers.MachinesAlone)
	s.held = []controllers.Held{
		{Kind: "machine", Hold: machinist.Hold{Subject: "a", Reason: "WaitingForNode", Since: now.Add(-time.Minute)}},
		{Kind: "machine", Hold: machinist.Hold{Subject: "b", Reason: "WaitingForNode", Since: now.Add(-time.Hour)}},
	}
	text := s.scrape()
	require.Contains(t, text, `machinist_holds{kind="machine",reason="WaitingForNode"} 2`)
	require.Contains(t, text, `machinist_hold_age_seconds{kind="machine",reason="WaitingForNode"} 3600`)
	require.NotContains(t, text, "mcm_machine_set_items_total", "a cluster without sets")
	s.held = nil
	require.NotContains(t, s.scrape(), "machinist_holds{")
}

func TestMetrics_DecisionsAndCalls_AreCounted(t *testing.T) {
	m := metrics.New(metrics.Options{})
	s := &shown{TB: t, Metrics: m}
	m.Decided(controllers.Note{Kind: "machine", Reason: "WaitingForNode"})
	m.Decided(controllers.Note{Kind: "machine", Err: errors.New("no")})
	m.Decided(controllers.Note{Kind: "machine", Err: fmt.Errorf("x: %w", &controllers.PanicError{})})
	cloud := m.Driver(drivertest.NewCloud(drivertest.CloudOptions{}))
	_, err := cloud.GetMachineStatus(t.Context(), &driver.GetMachineStatusRequest{Machine: newMachine(0, ""), MachineClass: small()})
	require.Error(t, err)
	m.Lease(func() (bool, time.Time) { return true, time.Time{} })
	text := s.scrape()
	for _, line := range []string{
		`machinist_decisions_total{kind="machine",reason="WaitingForNode"} 1`, `machinist_reconcile_errors_total{kind="machine"} 2`, `machinist_panics_total 1`,
		fmt.Sprintf(`machinist_driver_calls_total{code=%q,operation="GetMachineStatus"} 1`, codes.Of(err)),
		`machinist_driver_call_duration_seconds_count{operation="GetMachineStatus"} 1`, `machinist_leader 1`,
	} {
		require.Contains(t, text, "\n"+line+"\n")
	}
}

func TestMetrics_FreezeAndOrphans_AreShown(t *testing.T) {
	s := &shown{TB: t, Metrics: metrics.New(metrics.Options{})}
	require.Contains(t, s.scrape(), "mcm_machine_controller_frozen 0\n")
	s.Probed(safety.FreezeDecision{Freeze: machine.Freeze{Frozen: true}})
	require.Contains(t, s.scrape(), "mcm_machine_controller_frozen 1\n")
	s.Probed(safety.FreezeDecision{})
	require.Contains(t, s.scrape(), "mcm_machine_controller_frozen 0\n")
	s.Collected("VM", nil)
	s.Collected("VM", status.Error(codes.Unavailable, "no"))
	s.Collected("disk", nil)
	text := s.scrape()
	require.Contains(t, text, `machinist_orphan_deletions_total{code="OK",kind="VM"} 1`)
	require.Contains(t, text, `machinist_orphan_deletions_total{code="Unavailable",kind="VM"} 1`)
	require.Contains(t, text, `machinist_orphan_deletions_total{code="OK",kind="disk"} 1`)
}

// roundTrip answers requests.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestMetrics_Requests_ByClientMethodAndStatus(t *testing.T) {
	s := &shown{TB: t, Metrics: metrics.New(metrics.Options{})}
	fail := false
	transport := s.Transport("nodes")(roundTrip(func(*http.Request) (*http.Response, error) {
		if fail {
			return nil, errors.New("refused")
		}
		return &http.Response{StatusCode: http.StatusConflict, Body: io.NopCloser(strings.NewReader(""))}, nil
	}))
	for range 2 {
		response, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodPut, "http://x/", nil))
		if err == nil {
			require.NoError(t, response.Body.Close())
		}
		fail = true
	}
	text := s.scrape()
	require.Contains(t, text, `rest_client_requests_total{client="nodes",code="409",method="PUT"} 1`)
	require.Contains(t, text, `rest_client_requests_total{client="nodes",code="<error>",method="PUT"} 1`)
}

// bigFleet is 10,000 machines in 100 deployments.
func bigFleet() (objects []runtime.Object) {
	for d := range 100 {
		pool := deployment()
		pool.Name, pool.UID = fmt.Sprint("pool-", d), types.UID(fmt.Sprint("pool-", d))
		of := set()
		of.Name, of.UID, of.OwnerReferences = pool.Name+"-1", types.UID(pool.Name+"-1"), []metav1.OwnerReference{ownedBy("MachineDeployment", pool.Name)}
		objects = append(objects, pool, of)
		for i := range 100 {
			m := newMachine(i, v1alpha1.MachineRunning)
			m.Name, m.UID, m.OwnerReferences = fmt.Sprint(of.Name, "-", i), types.UID(fmt.Sprint(of.Name, "-", i)), []metav1.OwnerReference{ownedBy("MachineSet", of.Name)}
			objects = append(objects, m)
		}
	}
	return objects
}

func TestMetrics_TenThousandMachines_SeriesByDeployment(t *testing.T) {
	s := show(t, metrics.Options{}, controllers.All, bigFleet()...)
	s.eventually(`machinist_machine_join_duration_seconds_count{machine_deployment="pool-99",namespace="ns"} 0`, true)
	text := s.scrape()
	require.Contains(t, text, "\nmcm_machine_items_total 10000\n")
	require.Less(t, len(text), 2<<20)
	require.Less(t, strings.Count(text, "\n"), 80*100, "lines for 100 deployments")
	t.Logf("%d bytes, %d lines", len(text), strings.Count(text, "\n"))
}

func BenchmarkScrape_TenThousandMachines(b *testing.B) {
	s := show(b, metrics.Options{}, controllers.All, bigFleet()...)
	s.eventually(`machinist_machine_join_duration_seconds_count{machine_deployment="pool-99",namespace="ns"} 0`, true)
	for b.Loop() {
		s.scrape()
	}
}

func TestMetrics_LabelsOfUsers_AreBounded(t *testing.T) {
	objects := []runtime.Object{deployment(), set(), small()}
	const many = 80
	for i := range many {
		objects = append(objects, newMachine(i, v1alpha1.MachinePending))
	}
	s := show(t, metrics.Options{}, controllers.All, objects...)
	for i := range many {
		m := newMachine(i, v1alpha1.MachineFailed)
		m.ResourceVersion, m.Spec.ProviderID = "2", "cloud:///1"
		m.Spec.NodeTemplateSpec.Labels = map[string]string{corev1.LabelTopologyZone: fmt.Sprint("zone-", i)}
		_, err := s.client.MachineV1alpha1().Machines("ns").Update(t.Context(), m, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	s.eventually(`mcm_machine_num_failed_join{instance_type="m1",machine_deployment="pool",namespace="ns",zone="other"} 30`, true)
	require.Equal(t, 51, strings.Count(s.scrape(), "\nmcm_machine_num_failed_join{"))
}
