// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestWhoIsLookedAtWhenAMachineChanges(t *testing.T) {
	t.Parallel()
	all := machine.WakeMachine | machine.WakeOwner
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Machine)
		want   machine.Wake
	}{
		"nothing":                        {func(*v1alpha1.Machine) {}, 0},
		"what nobody reads":              {func(m *v1alpha1.Machine) { m.ManagedFields, m.Generation, m.ResourceVersion = nil, 7, "8" }, 0},
		"a label":                        {func(m *v1alpha1.Machine) { m.Labels["x"] = "y" }, all},
		"an annotation":                  {func(m *v1alpha1.Machine) { m.Annotations = map[string]string{"x": "y"} }, all},
		"a finalizer":                    {func(m *v1alpha1.Machine) { m.Finalizers = nil }, all},
		"a deletion":                     {func(m *v1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: now} }, all},
		"an owner":                       {func(m *v1alpha1.Machine) { m.OwnerReferences = []metav1.OwnerReference{{UID: "o"}} }, machine.WakeOwner | machine.WakeSiblings},
		"a provider ID":                  {func(m *v1alpha1.Machine) { m.Spec.ProviderID = "x" }, all},
		"a class":                        {func(m *v1alpha1.Machine) { m.Spec.Class.Name = "other" }, all | machine.WakeClass},
		"a deployment":                   {func(m *v1alpha1.Machine) { m.Labels[v1alpha1.LabelKeyMachineDeploymentName] = "x" }, all | machine.WakeSiblings},
		"an override":                    {func(m *v1alpha1.Machine) { m.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{} }, all},
		"another override":               {func(m *v1alpha1.Machine) { m.Spec.NodeConditions = new("A") }, all},
		"one that fails":                 {func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = v1alpha1.MachineFailed }, all},
		"one that is doubted no more":    {func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning }, all | machine.WakeSiblings},
		"one that is preserved":          {func(m *v1alpha1.Machine) { m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: now} }, all | machine.WakeSiblings},
		"a provider with several VMs":    {func(m *v1alpha1.Machine) { m.Status.LastOperation.ErrorCode = "OutOfRange" }, all | machine.WakeOrphans},
		"another failure":                {func(m *v1alpha1.Machine) { m.Status.LastOperation.ErrorCode = "Internal" }, all},
		"conditions that are recorded":   {func(m *v1alpha1.Machine) { m.Status.Conditions = []corev1.NodeCondition{{}} }, all},
		"one of the same name and other": {func(m *v1alpha1.Machine) { m.UID = "2" }, all | machine.WakeSiblings | machine.WakeClass | machine.WakeOrphans},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := living(v1alpha1.MachinePending).Machine
			if name == "another override" {
				config(&v1alpha1.MachineConfiguration{NodeConditions: new("B")})(&machine.Observation{Machine: before})
			}
			after := before.DeepCopy()
			tc.change(after)
			require.Equal(t, tc.want, machine.OnMachine(before, after), machine.OnMachine(before, after))
		})
	}
	m := newMachine("m")
	require.Equal(t, all|machine.WakeClass, machine.OnMachine(nil, m))
	require.Equal(t, machine.WakeOwner|machine.WakeSiblings|machine.WakeClass|machine.WakeOrphans, machine.OnMachine(m, nil))
	require.Zero(t, machine.OnMachine(nil, nil))
	require.Equal(t, "nobody", machine.Wake(0).String())
	require.Equal(t, "machine,owner,siblings,class,secret,orphans", machine.Wake(255).String())
}

func TestWhatANodeReportsAllTheTimeWakesNobody(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"nothing": {func(*corev1.Node) {}, false},
		"a heartbeat": {func(n *corev1.Node) {
			n.Status.Conditions[0].LastHeartbeatTime, n.Status.Conditions[0].Message = metav1.NewTime(now), "m"
			n.ResourceVersion = "10"
		}, false},
		"images, addresses and volumes": {func(n *corev1.Node) {
			n.Status.Images, n.Status.Addresses = []corev1.ContainerImage{{}}, []corev1.NodeAddress{{}}
			n.Status.VolumesInUse, n.Status.VolumesAttached = []corev1.UniqueVolumeName{"v"}, []corev1.AttachedVolume{{}}
			n.Status.NodeInfo.KubeletVersion, n.Status.Allocatable = "v", corev1.ResourceList{"cpu": resource.MustParse("1")}
		}, false},
		"a status":     {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		"a time":       {func(n *corev1.Node) { n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now) }, true},
		"a condition":  {func(n *corev1.Node) { n.Status.Conditions = nil }, true},
		"a taint":      {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k"}} }, true},
		"a label":      {func(n *corev1.Node) { n.Labels["x"] = "y" }, true},
		"a finalizer":  {func(n *corev1.Node) { n.Finalizers = nil }, true},
		"a deletion":   {func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: now} }, true},
		"a cordon":     {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		"an identity":  {func(n *corev1.Node) { n.Spec.ProviderID = "x" }, true},
		"a capacity":   {func(n *corev1.Node) { n.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("1")} }, true},
		"another Node": {func(n *corev1.Node) { n.UID = "other" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := after(healthy).Node.Node
			now := before.DeepCopy()
			tc.change(now)
			require.Equal(t, tc.want, machine.OnNode(before, now))
		})
	}
	n := &corev1.Node{}
	require.True(t, machine.OnNode(nil, n))
	require.True(t, machine.OnNode(n, nil))
	require.False(t, machine.OnNode(nil, nil))
}

func TestWhoIsLookedAtWhenAClassOrASecretChanges(t *testing.T) {
	t.Parallel()
	before := class()
	before.SecretRef = &corev1.SecretReference{Name: "s"}
	onClass := func(change func(*v1alpha1.MachineClass)) machine.Wake {
		after := before.DeepCopy()
		change(after)
		return machine.OnClass(before, after)
	}
	both := machine.WakeClass | machine.WakeMachine
	require.Zero(t, onClass(func(*v1alpha1.MachineClass) {}))
	require.Zero(t, onClass(func(c *v1alpha1.MachineClass) { c.ResourceVersion, c.Generation = "7", 3 }))
	require.Equal(t, both, onClass(func(c *v1alpha1.MachineClass) { c.Finalizers = nil }))
	require.Equal(t, both, onClass(func(c *v1alpha1.MachineClass) { c.NodeTemplate = &v1alpha1.NodeTemplate{} }))
	require.Equal(t, both, onClass(func(c *v1alpha1.MachineClass) { c.ProviderSpec.Raw = []byte("{}") }))
	require.Equal(t, machine.WakeSecret|machine.WakeMachine, onClass(func(c *v1alpha1.MachineClass) { c.SecretRef = nil }))
	require.Equal(t, machine.WakeSecret|machine.WakeMachine, onClass(func(c *v1alpha1.MachineClass) { c.CredentialsSecretRef = before.SecretRef }))
	require.Equal(t, both|machine.WakeSecret, machine.OnClass(nil, before))
	require.Equal(t, both|machine.WakeSecret, machine.OnClass(before, nil))
	require.Zero(t, machine.OnClass(nil, nil))

	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: "s"}, Data: map[string][]byte{"a": []byte("1")}}
	onSecret := func(change func(*corev1.Secret)) machine.Wake {
		after := s.DeepCopy()
		change(after)
		return machine.OnSecret(s, after)
	}
	require.Zero(t, onSecret(func(*corev1.Secret) {}))
	require.Equal(t, machine.WakeMachine, onSecret(func(s *corev1.Secret) { s.Data["a"] = []byte("2") }))
	require.Equal(t, machine.WakeSecret, onSecret(func(s *corev1.Secret) { s.Finalizers = []string{"x"} }))
	require.Equal(t, machine.WakeSecret|machine.WakeMachine, machine.OnSecret(nil, s))
	require.Equal(t, machine.WakeSecret|machine.WakeMachine, machine.OnSecret(s, nil))
	require.Zero(t, machine.OnSecret(nil, nil))
}

// TestWhatChangesADecisionWakes changes anything in a machine, its Node or its class:
// whenever that changes what is decided, the machine is looked at.
func TestWhatChangesADecisionWakes(t *testing.T) {
	t.Parallel()
	changed := map[string]int{}
	for seed := range uint64(30000) {
		r := rand.New(rand.NewPCG(seed, 29))
		in, p := anyLife(r), anyPolicy(r)
		was, before := machine.Decide(in, p, now), deepCopy(in)
		var kind, where string
		woken, same := false, true
		switch {
		case r.IntN(3) == 0:
			kind, where = "machine", mutate(r, in.Machine, 1)
			woken = machine.OnMachine(before.Machine, in.Machine)&machine.WakeMachine != 0
			same = in.Machine.Name == before.Machine.Name && in.Machine.Namespace == before.Machine.Namespace
		case in.Node.Node != nil:
			kind, where = "node", mutate(r, in.Node.Node, 4)
			woken = machine.OnNode(before.Node.Node, in.Node.Node)
			same = in.Node.Node.Name == before.Node.Node.Name
		case in.Class.Class != nil:
			kind, where = "class", mutate(r, in.Class.Class, 2)
			woken = machine.OnClass(before.Class.Class, in.Class.Class)&machine.WakeMachine != 0
		}
		if !same || woken { // it is another object, or all is well
			changed[kind]++
			continue
		}
		is := machine.Decide(in, p, now)
		require.Equal(t, fmt.Sprint(was.Do, was.Reason, was.NextCheck), fmt.Sprint(is.Do, is.Reason, is.NextCheck),
			"seed %d: nobody is woken by a change of %s%s", seed, kind, where)
	}
	for _, kind := range []string{"machine", "node", "class"} {
		require.Greater(t, changed[kind], 100, "changes of a %s that matter", kind)
	}
}

// mutate changes some fields of an object somewhere, and returns which.
func mutate(r *rand.Rand, object any, times int) string {
	var paths string
	for range times {
		paths += mutateOne(r, object) + " "
	}
	return paths
}

func mutateOne(r *rand.Rand, object any) string {
	v, path := reflect.ValueOf(object).Elem(), ""
	for {
		switch v.Interface().(type) {
		case metav1.Time:
			v.Set(reflect.ValueOf(metav1.NewTime(moment(r))))
			return path
		case resource.Quantity:
			v.Set(reflect.ValueOf(resource.MustParse(pick(r, "0", "1", "2Gi"))))
			return path
		}
		switch v.Kind() {
		case reflect.Struct:
			i := r.IntN(v.NumField())
			if f := v.Type().Field(i); !f.IsExported() || f.Name == "ManagedFields" {
				return path
			} else if !f.Anonymous {
				path += "." + f.Name
			}
			v = v.Field(i)
		case reflect.Pointer:
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			} else if r.IntN(3) == 0 {
				v.SetZero()
				return path
			}
			v = v.Elem()
		case reflect.Slice:
			if v.Len() == 0 || r.IntN(4) == 0 {
				v.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
			} else if r.IntN(3) == 0 {
				v.Set(v.Slice(1, v.Len()))
				return path
			}
			v = v.Index(r.IntN(v.Len()))
		case reflect.Map:
			mutateMap(r, v)
			return path
		default:
			mutateLeaf(r, v)
			return path
		}
	}
}

// words are those that mean something somewhere.
var words = []string{
	"", "x", "m", "n", "1", "True", "False", "true", "successful", "failed", "now", "small", "pool", "5m", "simulated:///2", "NoSchedule",
	v1alpha1.MCMFinalizerName, v1alpha1.NodeFinalizerName, "Running", "Unknown", "Failed", "Pending", "Create", "Delete", "Processing", "Ready", "Preserved",
	v1alpha1.SelectedForUpdate, v1alpha1.ReadyForUpdate, v1alpha1.CreatingMachine, v1alpha1.MachineClassKind,
}

var keys = []string{
	v1alpha1.NodeLabelKey, v1alpha1.LabelKeyMachineDeploymentName, v1alpha1.LabelKeyForceDeletion, v1alpha1.MachineNameLabelKey,
	v1alpha1.EffectiveCreationTimeout, v1alpha1.PreserveMachineAnnotationKey, v1alpha1.LastAppliedALTAnnotation,
	v1alpha1.LabelKeyNodeCandidateForUpdate, v1alpha1.LabelKeyNodeSelectedForUpdate, v1alpha1.LabelKeyNodeUpdateResult, "pool", "cpu",
}

func mutateMap(r *rand.Rand, v reflect.Value) {
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	key, value := reflect.ValueOf(pick(r, keys...)).Convert(v.Type().Key()), reflect.New(v.Type().Elem()).Elem()
	if v.Len() > 0 && r.IntN(3) > 0 {
		have := v.MapKeys()
		slices.SortFunc(have, func(a, b reflect.Value) int { return len(a.String()) - len(b.String()) })
		key = have[r.IntN(len(have))]
	}
	switch value.Interface().(type) {
	case string:
		value.SetString(pick(r, words...))
	case resource.Quantity:
		value.Set(reflect.ValueOf(resource.MustParse(pick(r, "0", "1", "2Gi"))))
	}
	if r.IntN(3) == 0 {
		value = reflect.Value{} // delete it
	}
	v.SetMapIndex(key, value)
}

func mutateLeaf(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(pick(r, words...))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(pick(r, 0, -1, int64(time.Minute), int64(time.Hour)))
	case reflect.Uint8:
		v.SetUint(uint64(r.IntN(256)))
	}
}

func TestRoutingCostsNothing(t *testing.T) {
	node := after(healthy).Node.Node
	m, c, s := living(v1alpha1.MachineRunning, healthy, copied).Machine, class(), &corev1.Secret{Data: map[string][]byte{"a": nil}}
	m2, n2, c2, s2 := m.DeepCopy(), node.DeepCopy(), c.DeepCopy(), s.DeepCopy()
	m.DeletionTimestamp = &metav1.Time{Time: now}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		machine.OnMachine(m, m2)
		machine.OnNode(node, n2)
		machine.OnClass(c, c2)
		machine.OnSecret(s, s2)
		machine.Drains(m, node)
	}))
}
