// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ignoredFields are the fields whose changes [facts.Changed] ignores, by kind.
var ignoredFields = map[string][]string{
	"Machine": {".Kind", ".APIVersion", ".Spec.NodeTemplateSpec"},
	"Node":    {".Kind", ".APIVersion", ".Spec.PodCIDR", ".Spec.PodPreemptionPolicy", ".Spec.ConfigSource", ".Spec.DoNotUseExternalID", ".Status."},
}

// comparedFields are the fields inside ignoredFields that are compared.
var comparedFields = map[string][]string{
	"Machine": {".Spec.NodeTemplateSpec.Labels", ".Spec.NodeTemplateSpec.Annotations", ".Spec.NodeTemplateSpec.Spec.Taints"},
	"Node":    {".Status.Capacity", ".Status.Conditions"},
}

// neverCompared are the fields that are ignored in all kinds.
var neverCompared = []string{
	".ResourceVersion", ".Generation", ".GenerateName", ".SelfLink", ".DeletionGracePeriodSeconds", ".Status.Conditions.LastHeartbeatTime",
}

// TestChanged_AnyField_WakesExceptTheIgnored changes each field of each kind alone.
func TestChanged_AnyField_WakesExceptTheIgnored(t *testing.T) {
	everyField(t, "Machine", (*v1alpha1.Machine).DeepCopy)
	everyField(t, "Node", (*corev1.Node).DeepCopy)
	everyField(t, "MachineClass", (*v1alpha1.MachineClass).DeepCopy)
	everyField(t, "Secret", (*corev1.Secret).DeepCopy)
}

func everyField[T v1alpha1.Machine | v1alpha1.MachineClass | corev1.Node | corev1.Secret](t *testing.T, kind string, deepCopy func(*T) *T) {
	t.Helper()
	r, seen := rand.New(rand.NewPCG(1, 31)), map[string]bool{}
	before := new(T)
	mutate(r, before, 500)
	require.True(t, facts.Changed(before, nil), kind)
	require.True(t, facts.Changed(nil, before), kind)
	require.False(t, facts.Changed[T](nil, nil), kind)
	within := func(path string, list []string) bool {
		return slices.ContainsFunc(list, func(part string) bool { return strings.HasPrefix(path, part) })
	}
	for range 4000 {
		after := deepCopy(before)
		path := mutateOne(r, after)
		if path == ".Status.Conditions.Message" {
			continue // compared for some condition types only
		}
		ignored := within(path, neverCompared) || within(path, ignoredFields[kind]) && !within(path, comparedFields[kind])
		want := !ignored && !equality.Semantic.DeepEqual(before, after)
		require.Equal(t, want, facts.Changed(before, after), "%s%s", kind, path)
		seen[path] = seen[path] || want
	}
	require.Greater(t, len(seen), 15, kind)
}

func TestFreesReplacement_LessIsReplaced_IsTrue(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Machine)
		want   bool
	}{
		"nothing":            {func(*v1alpha1.Machine) {}, false},
		"Failed":             {func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = failed }, false},
		"Running":            {func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = running }, true},
		"preserved":          {func(m *v1alpha1.Machine) { m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: now} }, true},
		"another owner":      {func(m *v1alpha1.Machine) { m.OwnerReferences = []metav1.OwnerReference{{UID: "o"}} }, true},
		"another deployment": {func(m *v1alpha1.Machine) { m.Labels[v1alpha1.LabelKeyMachineDeploymentName] = "x" }, true},
	} {
		before := living(pending).Machine
		after := before.DeepCopy()
		tc.change(after)
		group, _ := facts.FreesReplacement(before, after)
		require.Equal(t, tc.want, group, name)
	}
	group, _ := facts.FreesReplacement(newMachine("m"), nil)
	require.True(t, group)
	group, _ = facts.FreesReplacement(nil, newMachine("m"))
	require.False(t, group)
}

// TestChanged_DecisionDiffers_IsTrue asserts that a change of a machine, its Node or its class is
// reported if it changes the decision.
func TestChanged_DecisionDiffers_IsTrue(t *testing.T) {
	t.Parallel()
	changed := map[string]int{}
	for seed := range uint64(12000) {
		r := rand.New(rand.NewPCG(seed, 29))
		in, p := anyLife(r), anyPolicy(r)
		was, before := machine.Decide(in, p, now), deepCopy(in)
		var kind, where string
		woken, same := false, true
		switch {
		case r.IntN(3) == 0:
			kind, where = "machine", mutate(r, in.Machine, 1)
			woken = facts.Changed(before.Machine, in.Machine)
			same = in.Machine.Name == before.Machine.Name && in.Machine.Namespace == before.Machine.Namespace
		case in.Node.Node != nil:
			kind, where = "node", mutate(r, in.Node.Node, 4)
			woken = facts.Changed(before.Node.Node, in.Node.Node)
			same = in.Node.Node.Name == before.Node.Node.Name
		case in.Class.Class != nil:
			kind, where = "class", mutate(r, in.Class.Class, 2)
			woken = facts.Changed(before.Class.Class, in.Class.Class)
		}
		if !same || woken { // another object, or the change is reported
			changed[kind]++
			continue
		}
		is := machine.Decide(in, p, now)
		require.Equal(t, fmt.Sprint(was.Action, was.Reason, was.NextCheck), fmt.Sprint(is.Action, is.Reason, is.NextCheck),
			"seed %d: no pass is triggered by a change of %s%s", seed, kind, where)
	}
	for _, kind := range []string{"machine", "node", "class"} {
		require.Greater(t, changed[kind], 100, "reported changes of a %s", kind)
	}
}

// mutate changes some fields of an object, and returns their paths.
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
				return path
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

// words are values that change decisions.
var words = []string{
	"", "x", "m", "n", "1", "True", "False", "true", "successful", "failed", "now", "small", "pool", "5m", "simulated:///2", "NoSchedule",
	v1alpha1.MCMFinalizerName, v1alpha1.NodeFinalizerName, "Running", "Unknown", "Failed", "Pending", "Create", "Delete", "Processing", "Ready", "Preserved",
	v1alpha1.SelectedForUpdate, v1alpha1.ReadyForUpdate, v1alpha1.CreatingMachine, v1alpha1.MachineClassKind,
}

var keys = []string{
	v1alpha1.NodeLabelKey, v1alpha1.LabelKeyMachineDeploymentName, v1alpha1.LabelKeyForceDeletion, v1alpha1.MachineNameLabelKey,
	v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout, v1alpha1.PreserveMachineAnnotationKey, v1alpha1.LastAppliedALTAnnotation,
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

func TestChanged_SameMachineAndNode_AllocatesNothing(t *testing.T) {
	node, m := after(healthy).Node.Node, living(v1alpha1.MachineRunning, healthy, copied).Machine
	m2, n2 := m.DeepCopy(), node.DeepCopy()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		facts.Changed(m, m2)
		facts.Changed(node, n2)
		facts.FreesReplacement(m, m2)
		facts.Drains(m, node)
		machine.Events(m, m2)
	}))
}

// anyLife is an observation of any kind, with more of what health, replacement and
// updates in place read than anything has.
func anyLife(r *rand.Rand) machine.Observation {
	in := anything(r)
	m := in.Machine
	m.Status.CurrentStatus.Phase = pick(r, allPhases...)
	if r.IntN(2) == 0 {
		m.Finalizers, m.DeletionTimestamp, in.Freeze.Frozen = []string{v1alpha1.MCMFinalizerName}, nil, false
	}
	if r.IntN(2) == 0 {
		m.Labels = map[string]string{v1alpha1.NodeLabelKey: "n"}
		m.Spec.ProviderID = "simulated:///1"
	}
	if r.IntN(4) == 0 {
		m.Labels = map[string]string{v1alpha1.NodeLabelKey: "n", v1alpha1.LabelKeyMachineDeploymentName: "pool"}
	}
	if r.IntN(3) == 0 {
		m.Spec.MachineConfiguration = pick(r, &v1alpha1.MachineConfiguration{DisableHealthTimeout: ptr.To(true)},
			&v1alpha1.MachineConfiguration{NodeConditions: ptr.To("A,B")},
			&v1alpha1.MachineConfiguration{MachineHealthTimeout: &metav1.Duration{Duration: time.Minute}})
	}
	in.Permit = pick(r, machine.PermitView{}, machine.PermitView{Asked: true, Refused: machinist.Hold{Until: moment(r)}}, machine.PermitView{Held: true},
		machine.PermitView{Asked: r.IntN(4) > 0, Refused: machinist.Hold{Subject: "s", Reason: "Held", Until: moment(r)}},
		machine.PermitView{Asked: true, Held: true, Within: r.IntN(3)})
	if r.IntN(5) == 0 {
		keptNow(&in)
	}
	in.Siblings.Complete = r.IntN(4) > 0
	for range r.IntN(3) {
		s := newMachine(fmt.Sprint("s", r.IntN(3)))
		s.Status.CurrentStatus.Phase = pick(r, allPhases...)
		in.Siblings.Machines = append(in.Siblings.Machines, s)
	}
	if n := in.Node.Node; n != nil {
		anyStep(r, m, n)
	}
	return in
}

// anyStep gives a Node what updates in place and foreign Nodes show.
func anyStep(r *rand.Rand, m *v1alpha1.Machine, n *corev1.Node) {
	n.CreationTimestamp, n.Spec.ProviderID = metav1.NewTime(moment(r)), pick(r, "", "", m.Spec.ProviderID, "simulated:///9")
	if r.IntN(4) == 0 {
		metav1.SetMetaDataLabel(&n.ObjectMeta, v1alpha1.MachineNameLabelKey, pick(r, "m", "other", ""))
	}
	anyUpdate(r, n, moment)
	if r.IntN(2) == 0 {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: "A", Status: pick(r, corev1.ConditionTrue, corev1.ConditionFalse), LastTransitionTime: metav1.NewTime(moment(r)),
		})
	}
	if r.IntN(3) == 0 {
		n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNodeCriticalComponentsNotReady, Effect: corev1.TaintEffectNoSchedule}}
	}
	if r.IntN(2) == 0 {
		m.Status.Conditions = n.DeepCopy().Status.Conditions
	}
}

// allPhases are the phases of the API, that of a new machine, and one that does not exist.
var allPhases = slices.Sorted(slices.Values(append(facts.Phases(), "Strange")))

// TestNextCheck_NothingHappensBefore asserts that a decision that waits has a next check: until
// then, or until the observation changes, the decision stays the same.
func TestNextCheck_NothingHappensBefore(t *testing.T) {
	t.Parallel()
	waits := 0
	for seed := range uint64(8000) {
		r := rand.New(rand.NewPCG(seed, 5))
		in, p := anyLife(r), anyPolicy(r)
		d := machine.Decide(in, p, now)
		if d.Action != nil {
			continue
		}
		waits++
		last := now.Add(1000 * time.Hour)
		if !d.NextCheck.IsZero() {
			last = d.NextCheck.Add(-1)
		}
		for _, at := range []time.Time{now.Add(1), now.Add(last.Sub(now) / 2), now.Add(time.Duration(r.Int64N(int64(last.Sub(now)) + 1))), last} {
			if at.After(last) {
				continue
			}
			later := machine.Decide(in, p, at)
			require.Nil(t, later.Action, "seed %d: %s, to be asked again at %s, but at %s: %s", seed, d, d.NextCheck, at, later)
			require.Equal(t, d.Reason, later.Reason, "seed %d", seed)
		}
	}
	require.Greater(t, waits, 1500)
}
