// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// requireFinalizers asserts a decision and the finalizers that it writes, and overwrites these.
func requireFinalizers[T metav1.Object](t *testing.T, d machine.Decision, want string, finalizers []string) {
	t.Helper()
	require.NoError(t, decisionLaws(d, now))
	require.Equal(t, want, d.String())
	if o, ok := objectOf[T](d.Action); ok {
		require.ElementsMatch(t, finalizers, o.GetFinalizers())
		require.Equal(t, "7", o.GetResourceVersion())
		clear(o.GetFinalizers())
	}
}

func TestDecideClass_Finalizer_WhileAMachineRefersToIt(t *testing.T) {
	const ours = v1alpha1.MCMFinalizerName
	going := &metav1.Time{Time: now}
	object := func(deleted *metav1.Time, finalizers ...string) *v1alpha1.MachineClass {
		return &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shoot", Name: "small", ResourceVersion: "7", DeletionTimestamp: deleted, Finalizers: finalizers,
		}}
	}
	refers := newMachine("m")
	elsewhere, otherKind, otherName := refers.DeepCopy(), refers.DeepCopy(), refers.DeepCopy()
	elsewhere.Namespace, otherKind.Spec.Class.Kind, otherName.Spec.Class.Name = "other", "AWSMachineClass", "big"
	others := []metav1.Object{nil, (*v1alpha1.Machine)(nil), (*v1alpha1.MachineSet)(nil), (*v1alpha1.MachineDeployment)(nil), elsewhere, otherKind, otherName, &corev1.Node{}}
	template := v1alpha1.MachineTemplateSpec{Spec: refers.Spec}
	named := func(deleted *metav1.Time) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shoot", Name: "pool", DeletionTimestamp: deleted}
	}
	deployment := func(deleted *metav1.Time) *v1alpha1.MachineDeployment {
		return &v1alpha1.MachineDeployment{ObjectMeta: named(deleted), Spec: v1alpha1.MachineDeploymentSpec{Template: template}}
	}
	set := func(deleted *metav1.Time, owned bool, replicas, machines int32) *v1alpha1.MachineSet {
		s := &v1alpha1.MachineSet{ObjectMeta: named(deleted), Spec: v1alpha1.MachineSetSpec{Template: template, Replicas: replicas}}
		s.Status.Replicas = machines
		if owned {
			s.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment", Name: "pool", UID: "d", Controller: ptr.To(true)}}
		}
		return s
	}
	for name, tc := range map[string]struct {
		class      *v1alpha1.MachineClass
		users      []metav1.Object
		incomplete bool
		want       string
		finalizers []string
	}{
		"class in use: finalizer added, others kept (DM-24)":     {object(nil, "x"), []metav1.Object{refers}, false, "update machineclass small: finalizer (Referenced: machine/m)", []string{"x", ours}},
		"class in use, incomplete list: finalizer added":         {object(nil), append(others, refers), true, "update machineclass small: finalizer (Referenced: machine/m)", []string{ours}},
		"class in use with finalizer: nothing":                   {object(nil, ours), []metav1.Object{refers}, false, "nothing (Referenced)", nil},
		"class in use being deleted: waits for the machine":      {object(going, ours), []metav1.Object{refers}, false, "nothing (Referenced: refers to it); waits for machine/m: Referenced: refers to it", nil},
		"class without machines: finalizer removed, others kept": {object(nil, ours, "x"), others, false, "update machineclass small: no finalizer (Released)", []string{"x"}},
		"class without machines, incomplete list: nothing":       {object(nil, ours), others, true, "nothing (NotObserved: the list of objects that may refer to it is incomplete); waits for machineclass/small: NotObserved: the list of objects that may refer to it is incomplete", nil},
		"class without machines and finalizer: nothing":          {object(nil, "x"), nil, true, "nothing (Released)", nil},

		"template of a deployment: finalizer added":                        {object(nil), []metav1.Object{deployment(nil)}, false, "update machineclass small: finalizer (Referenced: machinedeployment/pool)", []string{ours}},
		"template of a deployment, class being deleted: waits":             {object(going, ours), []metav1.Object{deployment(nil)}, false, "nothing (Referenced: refers to it); waits for machinedeployment/pool: Referenced: refers to it", nil},
		"template of a deployment that is being deleted: released":         {object(nil, ours), []metav1.Object{deployment(going)}, false, "update machineclass small: no finalizer (Released)", nil},
		"template of an empty set alone: finalizer added":                  {object(nil), []metav1.Object{set(nil, false, 0, 0)}, false, "update machineclass small: finalizer (Referenced: machineset/pool)", []string{ours}},
		"template of a set that a deployment sizes: finalizer added":       {object(nil), []metav1.Object{set(nil, true, 1, 0)}, false, "update machineclass small: finalizer (Referenced: machineset/pool)", []string{ours}},
		"template of a set that shrinks to nothing: nothing":               {object(nil, ours), []metav1.Object{set(nil, true, 0, 1)}, false, "nothing (Referenced)", nil},
		"template of an empty set, which is kept for a rollback: released": {object(nil, ours), []metav1.Object{set(nil, true, 0, 0)}, false, "update machineclass small: no finalizer (Released)", nil},
		"template of a set that is being deleted: released":                {object(nil, ours), []metav1.Object{set(going, false, 3, 3)}, false, "update machineclass small: no finalizer (Released)", nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.class.DeepCopy()
			d := machine.DecideClass(machine.ClassObservation{Class: tc.class, Users: tc.users, Complete: !tc.incomplete}, now)
			requireFinalizers[*v1alpha1.MachineClass](t, d, tc.want, tc.finalizers)
			require.Empty(t, cmp.Diff(before, tc.class))
		})
	}
}

func TestDecideSecret_Finalizer_WhileAClassRefersToIt(t *testing.T) {
	const ours = v1alpha1.MCFinalizerName
	object := func(deleted bool, finalizers ...string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "s", ResourceVersion: "7", Finalizers: finalizers}}
		if deleted {
			s.DeletionTimestamp = &metav1.Time{Time: now}
		}
		return s
	}
	refers := func(namespace string, credentials bool) *v1alpha1.MachineClass {
		c, ref := class(), &corev1.SecretReference{Namespace: namespace, Name: "s"}
		c.SecretRef, c.CredentialsSecretRef = ref, nil
		if credentials {
			c.SecretRef, c.CredentialsSecretRef = &corev1.SecretReference{Name: "t"}, ref
		}
		return c
	}
	for name, tc := range map[string]struct {
		secret     *corev1.Secret
		classes    []*v1alpha1.MachineClass
		incomplete bool
		want       string
		finalizers []string
	}{
		"secret in use: finalizer added":                            {object(false, "x"), []*v1alpha1.MachineClass{nil, refers("shoot", false)}, false, "update secret s: finalizer (Referenced: machineclass/small)", []string{"x", ours}},
		"secret used for credentials only: finalizer added (DM-25)": {object(false), []*v1alpha1.MachineClass{refers("shoot", true)}, true, "update secret s: finalizer (Referenced: machineclass/small)", []string{ours}},
		"reference without namespace: that of the class":            {object(false), []*v1alpha1.MachineClass{refers("", false)}, false, "update secret s: finalizer (Referenced: machineclass/small)", []string{ours}},
		"reference to another namespace: finalizer removed (DM-25)": {object(false, ours), []*v1alpha1.MachineClass{refers("other", false)}, false, "update secret s: no finalizer (Released)", nil},
		"unused secret, incomplete list: nothing":                   {object(false, ours), nil, true, "nothing (NotObserved: the list of objects that may refer to it is incomplete); waits for secret/shoot/s: NotObserved: the list of objects that may refer to it is incomplete", nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.secret.DeepCopy()
			d := machine.DecideSecret(machine.SecretObservation{Secret: tc.secret, Classes: tc.classes, Complete: !tc.incomplete}, now)
			requireFinalizers[*corev1.Secret](t, d, tc.want, tc.finalizers)
			require.Empty(t, cmp.Diff(before, tc.secret))
		})
	}
}

func TestViewClass_Secrets_Problem(t *testing.T) {
	data := map[string][]byte{machine.UserDataKey: []byte("join"), "key": []byte("hidden")}
	joins := map[string][]byte{machine.UserDataKey: []byte("join <<BOOTSTRAP_TOKEN>>")}
	missing := errors.New("secret shoot/s of class small: not found")
	for name, tc := range map[string]struct {
		class   *v1alpha1.MachineClass
		data    map[string][]byte
		missing error
		want    machine.ClassView
	}{
		"no class": {nil, data, missing, machine.ClassView{Looked: true}},
		"complete": {class(), data, nil, machine.ClassView{Looked: true, Class: class()}},
		"user data with the placeholder of a token": {class(), joins, nil, machine.ClassView{Looked: true, Class: class(), NeedsToken: true}},
		"secret missing (DM-25)":                    {class(), data, missing, machine.ClassView{Looked: true, Class: class(), Problem: missing.Error()}},
		"no user data":                              {class(), map[string][]byte{"key": nil}, nil, machine.ClassView{Looked: true, Class: class(), Problem: `machine class "small": secret has no key userData`}},
	} {
		view := machine.ViewClass(tc.class, &corev1.Secret{Data: tc.data}, tc.missing)
		require.Empty(t, cmp.Diff(tc.want, view), name)
		require.NotContains(t, fmt.Sprintf("%+v", view), "hidden", name)
	}
	text, err := json.Marshal(machinist.Update{Object: &corev1.Secret{Data: data}, Changes: []string{"finalizer"}})
	require.NoError(t, err)
	require.Equal(t, `"update secret : finalizer"`, string(text))
}
