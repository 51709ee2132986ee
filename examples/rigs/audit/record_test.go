// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/examples/rigs/audit"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const namespace = "n"

// patience is how long a test waits for an event.
const patience = time.Minute

// play runs the controllers in real time over clusters in memory and a cloud without latency, until
// the test ends.
func play(t *testing.T, control *draintest.Cluster, api versioned.Interface, cloud *drivertest.Cloud) {
	t.Helper()
	target := draintest.New(draintest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	t.Cleanup(cancel)
	policy := machine.DefaultPolicy()
	policy.Settle = time.Millisecond
	running.Go(func() { control.Run(ctx) })
	running.Go(func() {
		_ = controllers.Run(ctx, controllers.Config{Machines: api, Control: control.Client(), Target: target.Client(), Driver: cloud, Policy: policy})
	})
	nodes := &hollow.Nodes{Client: target.Client(), VMs: hollow.VMsOf(cloud)}
	running.Go(func() {
		for ctx.Err() == nil {
			_ = nodes.Step(ctx) // the next step repeats it
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
}

func TestRecorder_RolloutWithInterruptions_NoViolation(t *testing.T) {
	control, api := machinetest.New(draintest.Options{})
	cloud, ctx := drivertest.NewCloud(drivertest.CloudOptions{}), t.Context()
	recorder, err := audit.Record(ctx, api, namespace)
	require.NoError(t, err)
	play(t, control, api, cloud)
	deployments := api.MachineV1alpha1().MachineDeployments(namespace)
	for _, class := range []string{"one", "two"} {
		_, err = api.MachineV1alpha1().MachineClasses(namespace).Create(ctx, cloud.MachineClass(namespace, class), metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = control.Client().CoreV1().Secrets(namespace).Create(ctx, cloud.Secret(namespace, class), metav1.CreateOptions{})
		require.NoError(t, err)
	}

	d := deploymentOf(3, 0)
	labels := map[string]string{"of": "d"}
	d.UID, d.Status = "", v1alpha1.MachineDeploymentStatus{}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "one"}
	_, err = deployments.Create(ctx, d, metav1.CreateOptions{})
	require.NoError(t, err)
	complete := func() bool {
		d, err := deployments.Get(ctx, "d", metav1.GetOptions{})
		return err == nil && deployment.Complete(d, d.Status)
	}
	require.Eventually(t, complete, patience, 5*time.Millisecond)
	require.NotZero(t, control.DropWatches())
	_, err = deployments.Patch(ctx, "d", types.MergePatchType, []byte(`{"spec":{"template":{"spec":{"class":{"name":"two"}}}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Eventually(t, complete, patience, 5*time.Millisecond)
	control.DropWatches("machines")
	require.NoError(t, deployments.Delete(ctx, "d", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		all, err := api.MachineV1alpha1().Machines(namespace).List(ctx, metav1.ListOptions{})
		sets, err2 := api.MachineV1alpha1().MachineSets(namespace).List(ctx, metav1.ListOptions{})
		left, err3 := deployments.List(ctx, metav1.ListOptions{})
		return errors.Join(err, err2, err3) == nil && len(all.Items)+len(sets.Items)+len(left.Items) == 0
	}, patience, 5*time.Millisecond)

	log := recorder.Stop()
	exact := audit.FromHistory(control.History())
	for _, l := range []audit.Log{log, exact} {
		f, err := audit.Check(l, cloud.History(), cloud.Snapshot(), audit.Options{Steady: true})
		require.NoError(t, err)
		t.Log(f)
		require.Empty(t, f.Unproven)
		require.Zero(t, f.Gaps)
		require.Equal(t, 6, f.Machines)
		require.Equal(t, 4, f.MostAlive)
		require.Equal(t, 3, f.FewestAvailable)
	}
	require.Len(t, log.Changes, len(exact.Changes), "no write is missed")
	for i, c := range log.Changes {
		require.Equal(t, exact.Changes[i].Version, c.Version)
		require.False(t, c.Listed)
		require.Equal(t, exact.Changes[i].Gone, c.Gone)
	}
	require.Equal(t, log, recorder.Stop(), "a second Stop returns the same log")
}

// away makes the API server reject watches, and closes the open ones.
func away(t *testing.T, control *draintest.Cluster) (back func()) {
	t.Helper()
	back = control.Inject(draintest.Fault{Kind: draintest.Unavailable, Verb: "watch"})
	require.Eventually(t, func() bool { control.DropWatches(); return control.Watching("") == 0 }, patience, time.Millisecond)
	return back
}

func TestRecorder_APIServerDown_GapIsRecorded(t *testing.T) {
	control, api := machinetest.New(draintest.Options{})
	ctx, client := t.Context(), api.MachineV1alpha1().Machines(namespace)
	create := func(name string) types.UID {
		m, err := client.Create(ctx, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1alpha1.MCMFinalizerName}}}, metav1.CreateOptions{})
		require.NoError(t, err)
		return m.UID
	}
	free := func(name string) {
		_, err := client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		require.NoError(t, client.Delete(ctx, name, metav1.DeleteOptions{}))
	}
	create("before")
	recorder, err := audit.Record(ctx, api, namespace)
	require.NoError(t, err)
	seen := func(n int) {
		require.Eventually(t, func() bool { return len(recorder.Log().Changes) >= n }, patience, time.Millisecond)
	}
	create("a")
	seen(2)
	back := away(t, control)
	free("a")
	create("b")
	ghost := create("ghost")
	cloud := drivertest.NewCloud(drivertest.CloudOptions{})
	vm := cloud.AddVM(drivertest.VM{Namespace: namespace, Machine: "ghost", UID: string(ghost)})
	cloud.Terminate(vm.ProviderID)
	free("ghost")
	control.Compact()
	back()
	seen(4)
	create("c")

	log := recorder.Stop()
	var reported []string
	for _, c := range log.Changes {
		m, ok := c.Object.(*v1alpha1.Machine)
		require.True(t, ok)
		text := m.Name
		if c.Listed {
			text += " listed"
		}
		if c.Gone {
			text += " gone"
		}
		reported = append(reported, text)
	}
	require.Equal(t, []string{"before listed", "a", "a listed gone", "b listed", "c"}, reported)
	f, err := audit.Check(log, cloud.History(), cloud.Snapshot(), audit.Options{})
	require.NoError(t, err)
	require.GreaterOrEqual(t, f.Gaps, 1)
	require.False(t, f.Complete())
	require.Equal(t, "whether VM "+vm.ProviderID+" was created with a Machine with finalizer", f.Unproven[0])
	for _, what := range f.Unproven[1:] {
		require.Contains(t, what, "each change in the gap of machine", "no gap at the end")
	}
	for _, g := range log.Gaps {
		require.NotEmpty(t, g.String())
		require.True(t, g.Until == 0 || g.After <= g.Until)
		require.Equal(t, g.To.IsZero(), g.CaughtUp)
	}
}

func TestRecorder_WatchInterrupted_MissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		control, api := machinetest.New(draintest.Options{})
		ctx, client := t.Context(), api.MachineV1alpha1().Machines(namespace)
		recorder, err := audit.Record(ctx, api, namespace)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return control.Watching("") == 3 }, patience, time.Millisecond)
		cut := time.Now()
		back := away(t, control)
		began := time.Now()
		m, err := client.Create(ctx, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, client.Delete(ctx, m.Name, metav1.DeleteOptions{}))
		time.AfterFunc(300*time.Millisecond, back)
		require.Eventually(t, func() bool { return len(recorder.Log().Changes) == 2 }, patience, time.Millisecond)
		log := recorder.Stop()
		for _, c := range log.Changes {
			require.False(t, c.Listed)
			require.False(t, c.Since.IsZero(), "held up")
			require.False(t, c.Since.After(began.Add(200*time.Millisecond)), "long before the watch was back")
			require.False(t, c.Since.Before(cut))
		}
		require.True(t, log.Changes[1].Gone)
	})
}

func TestRecorder_ContextCanceled_EndsWithItsError(t *testing.T) {
	control, api := machinetest.New(draintest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	recorder, err := audit.Record(ctx, api, "")
	require.NoError(t, err)
	cancel()
	log := recorder.Stop()
	require.Empty(t, log.Changes)
	require.Zero(t, control.Watching(""))
	f, err := audit.Check(log, nil, drivertest.Snapshot{}, audit.Options{})
	require.NoError(t, err)
	require.Len(t, f.Unproven, 3, "the end of each kind is missing: %q", f.Unproven)
	control.Inject(draintest.Fault{Verb: "list", Resource: "machinesets"})
	_, err = audit.Record(t.Context(), api, "")
	require.Error(t, err)
}

// cutOff records a namespace in which a machine is created and deleted while the API server sends
// nothing, and stops the recording. Rejected requests succeed again after a time.
func cutOff(t *testing.T, after time.Duration, verbs ...string) (f audit.Figures, changes int, took time.Duration) {
	t.Helper()
	control, api := machinetest.New(draintest.Options{})
	recorder, err := audit.Record(t.Context(), api, namespace)
	require.NoError(t, err)
	synctest.Wait()
	for _, verb := range verbs {
		back := control.Inject(draintest.Fault{Kind: draintest.Unavailable, Verb: verb})
		time.AfterFunc(after, back)
	}
	control.DropWatches()
	synctest.Wait()
	_, err = api.MachineV1alpha1().Machines(namespace).Create(t.Context(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, api.MachineV1alpha1().Machines(namespace).Delete(t.Context(), "m", metav1.DeleteOptions{}))
	f, err = audit.Check(recorder.Log(), nil, drivertest.Snapshot{}, audit.Options{})
	require.NoError(t, err)
	require.Len(t, f.Unproven, 3, "changes after the gap are not judged: %q", f.Unproven)
	began := time.Now()
	log := recorder.Stop()
	took = time.Since(began)
	f, err = audit.Check(log, nil, drivertest.Snapshot{}, audit.Options{})
	require.NoError(t, err)
	require.Zero(t, f.Gaps)
	return f, len(log.Changes), took
}

func TestRecorder_Stop_WaitsForPendingChanges(t *testing.T) {
	for _, verb := range []string{"watch", "list"} {
		synctest.Test(t, func(t *testing.T) {
			f, changes, took := cutOff(t, 9*time.Second, "watch", verb)
			require.Equal(t, 2, changes)
			require.True(t, f.Complete(), "%q", f.Unproven)
			require.InDelta(t, 11, took.Seconds(), 0.5, "2s for late events")
		})
	}
}

func TestRecorder_StopDuringOutage_IsCutShort(t *testing.T) {
	for _, verb := range []string{"watch", "list"} {
		synctest.Test(t, func(t *testing.T) {
			f, changes, took := cutOff(t, time.Hour, "watch", verb)
			require.Zero(t, changes)
			require.False(t, f.Complete())
			require.True(t, f.CutShort)
			require.Contains(t, f.Unproven[len(f.Unproven)-1], "the last changes, because of the gap of machines from")
			require.GreaterOrEqual(t, took, 10*time.Second)
			require.Less(t, took, 20*time.Second)
		})
	}
}

func TestRecorder_KindSeenLate_GapBeginsAtTheOtherKinds(t *testing.T) {
	t.Parallel() // the test is slow
	control, api := machinetest.New(draintest.Options{})
	ctx, client := t.Context(), api.MachineV1alpha1().Machines(namespace)
	recorder, err := audit.Record(ctx, api, namespace)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return control.Watching("") == 3 }, patience, time.Millisecond)
	m, err := client.Create(ctx, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	after := func(log audit.Log, inner bool) (after uint64) {
		for _, g := range log.Gaps {
			if g.Resource == "machinedeployments" && !g.From.IsZero() && g.To.IsZero() != inner {
				after = g.After
			}
		}
		return after
	}
	require.Eventually(t, func() bool { // the namespace has no deployment
		return strconv.FormatUint(after(recorder.Log(), false), 10) == m.ResourceVersion
	}, patience, 50*time.Millisecond)
	back := away(t, control)
	require.NoError(t, client.Delete(ctx, "m", metav1.DeleteOptions{}))
	control.Compact()
	back()
	require.Eventually(t, func() bool { return after(recorder.Log(), true) > 0 }, patience, time.Millisecond)
	require.Equal(t, m.ResourceVersion, strconv.FormatUint(after(recorder.Stop(), true), 10))
}
