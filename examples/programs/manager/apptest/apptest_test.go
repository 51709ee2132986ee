// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func noResources(context.Context, *v1alpha1.MachineClass, *corev1.Secret) ([]string, error) {
	return nil, nil
}

// newSuite returns a suite with clusters in memory and no controllers, which waits for 50 ms.
func newSuite(t *testing.T, nodes ...*corev1.Node) *Suite {
	t.Helper()
	_, machines := machinetest.New(draintest.Options{})
	s := &Suite{
		control: fake.NewClientset(), target: fake.NewClientset(), machines: machines,
		o: Options{Namespace: "n", Timeout: 50 * time.Millisecond, Interval: 5 * time.Millisecond, Class: &v1alpha1.MachineClass{}, Orphans: noResources},
	}
	for _, n := range nodes {
		_, err := s.target.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return s
}

func node(name string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
}

func TestOpen_OptionsMissing_ErrorNamesEach(t *testing.T) {
	_, err := Open(t.Context(), Options{})
	require.EqualError(t, err, "apptest: ControlKubeconfig: a file is required\nClass: a MachineClass is required\nDriver or Program: one is required")
	_, err = Open(t.Context(), Options{
		ControlKubeconfig: "/no/such/file", Class: &v1alpha1.MachineClass{}, Orphans: noResources, Driver: drivertest.NewCloud(drivertest.CloudOptions{}), Program: "/no/such/folder",
	})
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, text := range []string{"ControlKubeconfig: ", "TargetKubeconfig: ", "Program: stat /no/such/folder", "only one is possible"} {
		require.ErrorContains(t, err, text)
	}
}

func TestOptions_ProgramWithoutOrphans_Error(t *testing.T) {
	_, err := Options{ControlKubeconfig: os.DevNull, Class: &v1alpha1.MachineClass{}, Program: "."}.complete()
	require.EqualError(t, err, "Orphans: a function is required with Program")
}

func TestOpen_KubeconfigIsNone_Error(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err := Open(t.Context(), Options{ControlKubeconfig: file, Class: &v1alpha1.MachineClass{}, Orphans: noResources, Driver: drivertest.NewCloud(drivertest.CloudOptions{})})
	require.ErrorContains(t, err, "apptest: ControlKubeconfig: ")
}

func TestOptions_Empty_Defaults(t *testing.T) {
	o, err := Options{ControlKubeconfig: os.DevNull, Class: &v1alpha1.MachineClass{}, Orphans: noResources, Program: ".", Timeout: -1}.complete()
	require.NoError(t, err)
	require.Equal(t, []any{os.DevNull, "default", 5 * time.Minute, 2 * time.Second}, []any{o.TargetKubeconfig, o.Namespace, o.Timeout, o.Interval})
	require.True(t, filepath.IsAbs(o.Program))
}

func TestSuite_Nil_NoPanic(t *testing.T) {
	var s *Suite
	require.ErrorIs(t, s.Healthy(t.Context()), errNotOpen)
	require.ErrorIs(t, s.Check(t.Context(), Checks()[0]), errNotOpen)
	require.ErrorIs(t, newSuite(t).Check(t.Context(), Check{}), errNotOpen)
	require.NoError(t, s.Close(t.Context()))
}

func TestHealthy_NodeNotReady_ErrorNamesIt(t *testing.T) {
	require.NoError(t, newSuite(t, node("a", corev1.ConditionTrue)).Healthy(t.Context()))
	err := newSuite(t, node("a", corev1.ConditionTrue), node("b", corev1.ConditionUnknown)).Healthy(t.Context())
	require.ErrorContains(t, err, "for all Nodes to be ready: Nodes that are not ready: b\n")
}

func TestWaitNodes_EachWorld_Table(t *testing.T) {
	for name, c := range map[string]struct {
		first []string
		n     int
		want  string
	}{
		"as many":                   {first: []string{"a"}, n: 1},
		"too many":                  {first: []string{"a"}, n: 0, want: "1 new Nodes\n"},
		"too few":                   {first: []string{"a", "b"}, n: 1, want: "0 new Nodes\n"},
		"as many, but another left": {first: []string{"a", "gone"}, n: 0, want: "the first Node gone is missing\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSuite(t, node("a", corev1.ConditionTrue), node("b", corev1.ConditionTrue))
			s.first = setOf(c.first)
			err := s.waitNodes(t.Context(), c.n)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
	s := newSuite(t, node("a", corev1.ConditionFalse))
	require.ErrorContains(t, s.waitNodes(t.Context(), 1), "not ready: a")
}

func TestWait_Failure_ShowsMachinesAndNodes(t *testing.T) {
	s := newSuite(t, node("b", corev1.ConditionFalse))
	m := s.machine()
	m.Labels = map[string]string{"node": "b"}
	m, err := s.machines.MachineV1alpha1().Machines("n").Create(t.Context(), m, metav1.CreateOptions{})
	require.NoError(t, err)
	m.Status = v1alpha1.MachineStatus{
		CurrentStatus: v1alpha1.CurrentStatus{Phase: v1alpha1.MachinePending},
		LastOperation: v1alpha1.LastOperation{Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed, ErrorCode: "ResourceExhausted", Description: "no capacity"},
	}
	_, err = s.machines.MachineV1alpha1().Machines("n").UpdateStatus(t.Context(), m, metav1.UpdateOptions{})
	require.NoError(t, err)
	err = s.wait(t.Context(), "nothing", func(context.Context) (string, error) { return "", errors.New("API server away") })
	require.ErrorContains(t, err, "for nothing: API server away\n1 machines\n"+
		"  machine test-machine: phase \"Pending\", class test-mc-v1, Node \"b\"; Create Failed ResourceExhausted: no capacity\n"+
		"1 Nodes, before the check 0\n  Node b: ready false, providerID \"\"")
}

func TestWait_ContextEnds_ErrorIsItsCause(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := newSuite(t).wait(ctx, "nothing", func(context.Context) (string, error) { return "missing", nil })
	require.ErrorIs(t, err, context.Canceled)
}

// ended is a process that has ended.
type ended struct{ err error }

func (e ended) Done() <-chan struct{}    { c := make(chan struct{}); close(c); return c }
func (e ended) Err() error               { return e.err }
func (e ended) Signal(_ os.Signal) error { return os.ErrProcessDone }

func TestWait_ControllerEnded_FailsAtOnceWithItsLog(t *testing.T) {
	s := newSuite(t)
	s.o.Timeout = time.Hour
	log := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(log, []byte("first\nlast\n"), 0o600))
	s.controllers = []*controller{{name: "mc", log: log, process: ended{errors.New("exit status 2")}}}
	for _, err := range []error{
		s.wait(t.Context(), "nothing", func(context.Context) (string, error) { return "missing", nil }),
		s.Healthy(t.Context()), s.controllers[0].ready(t.Context(), time.Hour),
	} {
		require.ErrorContains(t, err, "mc has ended: exit status 2; the end of "+log+":\nfirst\nlast")
	}
}

func TestNoOrphans_ResourcesOfBefore_AreNone(t *testing.T) {
	s := newSuite(t)
	found, secret := []string{"theirs"}, &corev1.Secret{Data: map[string][]byte{"key": []byte("value")}}
	s.secret = secret
	s.o.Orphans = func(_ context.Context, class *v1alpha1.MachineClass, got *corev1.Secret) ([]string, error) {
		require.Equal(t, []any{ClassName, "n", secret.Data}, []any{class.Name, class.Namespace, got.Data})
		return found, nil
	}
	require.NoError(t, s.findResources(t.Context()))
	require.NoError(t, s.noOrphans(t.Context()))
	found = []string{"theirs", "vm-1", "disk-1"}
	require.ErrorContains(t, s.noOrphans(t.Context()), "orphaned: vm-1, disk-1\n")
	s.o.Orphans = func(context.Context, *v1alpha1.MachineClass, *corev1.Secret) ([]string, error) {
		return nil, errors.New("no credentials")
	}
	require.ErrorContains(t, s.noOrphans(t.Context()), "no credentials")
}

// noSides hides the side resources of a driver.
type noSides struct{ driver.Driver }

func TestListed_Driver_VMsAndSideResources(t *testing.T) {
	cloud := drivertest.NewCloud(drivertest.CloudOptions{Credential: "c"})
	class, secret := cloud.MachineClass("n", "small"), cloud.Secret("n", "small")
	_, err := cloud.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: newSuite(t).machine(), MachineClass: class, Secret: secret})
	require.NoError(t, err)
	vm := cloud.Snapshot().VMs[0].ProviderID
	all := []string{vm}
	for _, side := range cloud.Snapshot().SideResources {
		all = append(all, side.Kind+" "+side.ID)
	}
	require.Len(t, all, 3, "a disk and a network interface")
	found, err := listed(cloud)(t.Context(), class, secret)
	require.NoError(t, err)
	require.ElementsMatch(t, all, found)
	found, err = listed(noSides{cloud})(t.Context(), class, secret)
	require.NoError(t, err)
	require.Equal(t, []string{vm}, found)
	_, err = listed(cloud)(t.Context(), class, &corev1.Secret{})
	require.Error(t, err)
	_, err = listed(silent{cloud})(t.Context(), class, secret)
	require.ErrorIs(t, err, errNoResponse)
}

// silent returns neither a list nor an error.
type silent struct{ driver.Driver }

func (silent) ListMachines(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	return nil, nil
}

func TestFindSecret_TwoSecrets_CredentialsOverride(t *testing.T) {
	s := newSuite(t)
	s.o.Class = &v1alpha1.MachineClass{SecretRef: &corev1.SecretReference{Name: "a"}, CredentialsSecretRef: &corev1.SecretReference{Name: "b", Namespace: "other"}}
	require.ErrorContains(t, s.findSecret(t.Context()), "class: secret n/a: ")
	for _, secret := range []*corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}, Data: map[string][]byte{"userData": []byte("u"), "key": []byte("old")}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "b"}, Data: map[string][]byte{"key": []byte("new")}},
	} {
		_, err := s.control.CoreV1().Secrets(secret.Namespace).Create(t.Context(), secret, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.NoError(t, s.findSecret(t.Context()))
	require.Equal(t, map[string][]byte{"userData": []byte("u"), "key": []byte("new")}, s.secret.Data)
}

func TestDeleteMissing_DeletionSucceeds_Fails(t *testing.T) {
	require.NoError(t, newSuite(t).deleteMissing(t.Context()))
	s := newSuite(t)
	_, err := s.machines.MachineV1alpha1().Machines("n").Create(t.Context(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: machineName + "-missing"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, s.deleteMissing(t.Context()), "did not exist, and its deletion is no error")
}

func TestOutdated_ClassesAndNodes_Table(t *testing.T) {
	for name, c := range map[string]struct {
		classes, nodes [4]string
		want           string
	}{
		"all of the next class": {[4]string{NextClassName, NextClassName, NextClassName, NextClassName}, [4]string{"a", "b", "c", "d"}, ""},
		"one of the old class":  {[4]string{NextClassName, NextClassName, ClassName, NextClassName}, [4]string{"a", "b", "c", "d"}, "machine m-2 has class test-mc-v1"},
		"two have one Node":     {[4]string{NextClassName, NextClassName, NextClassName, NextClassName}, [4]string{"a", "b", "c", "c"}, "4 machines with the Nodes [a b c], and the new Nodes are [a b c d]"},
		"one without a Node":    {[4]string{NextClassName, NextClassName, NextClassName, NextClassName}, [4]string{"a", "b", "c"}, "4 machines with the Nodes [ a b c], and the new Nodes are [a b c d]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSuite(t, node("a", corev1.ConditionTrue), node("b", corev1.ConditionTrue), node("c", corev1.ConditionTrue), node("d", corev1.ConditionTrue), node("first", corev1.ConditionTrue))
			s.first = setOf([]string{"first"})
			for i := range 4 {
				m := s.machine()
				m.Name, m.Spec.Class.Name = fmt.Sprint("m-", i), c.classes[i]
				m.Labels = map[string]string{machineLabel: machineLabel, v1alpha1.NodeLabelKey: c.nodes[i]}
				_, err := s.machines.MachineV1alpha1().Machines("n").Create(t.Context(), m, metav1.CreateOptions{})
				require.NoError(t, err)
			}
			missing, err := s.outdated(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.want, missing)
		})
	}
}

func TestFrozen_LabelAndEvent_BothAreNeeded(t *testing.T) {
	s := newSuite(t)
	api := s.machines.MachineV1alpha1().MachineSets("n")
	set, err := api.Create(t.Context(), &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "set", Labels: map[string]string{v1alpha1.FreezeLabelKey: "True"}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	missing, err := s.frozen(t.Context(), "set")
	require.NoError(t, err)
	require.Equal(t, `its label freeze is "True"`, missing)
	set.Labels = nil
	_, err = api.Update(t.Context(), set, metav1.UpdateOptions{})
	require.NoError(t, err)
	missing, err = s.frozen(t.Context(), "set")
	require.NoError(t, err)
	require.Equal(t, "it has no Event UnfrozeMachineSet", missing)
	_, err = s.control.CoreV1().Events("n").Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "e"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	missing, err = s.frozen(t.Context(), "set")
	require.NoError(t, err)
	require.Empty(t, missing)
}

func TestWaitComplete_ConditionsMissing_ErrorHasTheNumbers(t *testing.T) {
	s := newSuite(t)
	api := s.machines.MachineV1alpha1().MachineDeployments("n")
	d, err := api.Create(t.Context(), s.deployment(), metav1.CreateOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, s.waitComplete(t.Context()), "of 0 machines it has 0, 0 of its template, 0 available; conditions: []")
	for _, c := range [][2]string{{"Available", "MinimumReplicasAvailable"}, {"Progressing", "NewMachineSetAvailable"}} {
		d.Status.ObservedGeneration = d.Generation
		d.Status.Conditions = append(d.Status.Conditions, v1alpha1.MachineDeploymentCondition{Type: v1alpha1.MachineDeploymentConditionType(c[0]), Status: v1alpha1.ConditionTrue, Reason: c[1]})
	}
	_, err = api.UpdateStatus(t.Context(), d, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, s.waitComplete(t.Context()))
}

func TestRemoveObjects_MachineStays_ErrorNamesIt(t *testing.T) {
	s := newSuite(t)
	require.NoError(t, s.removeObjects(t.Context()))
	m := s.machine()
	m.Finalizers = []string{"example.com/stays"}
	_, err := s.machines.MachineV1alpha1().Machines("n").Create(t.Context(), m, metav1.CreateOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, s.removeObjects(t.Context()), "machine test-machine exists\n1 machines\n")
}
