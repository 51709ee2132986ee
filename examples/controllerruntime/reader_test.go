// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	deploymentrunner "github.com/machinist-dev/machinist/deployment/runner"
	drainrunner "github.com/machinist-dev/machinist/drain/runner"
	machinefake "github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	machinerunner "github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	setrunner "github.com/machinist-dev/machinist/machineset/runner"
	"github.com/machinist-dev/machinist/nodeops"
	safetyrunner "github.com/machinist-dev/machinist/safety/runner"
)

// indexes are the indexes of a fake client.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	i.WithIndex(o, field, keys)
	return nil
}

// ofNamespace returns objects of each kind in a namespace, and the cluster that its machines join.
func ofNamespace(ns string) (machines, control, target []runtime.Object) {
	meta := func(name, kind, owner string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(ns + "-" + name)}
		if owner != "" {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Name: owner, UID: types.UID(ns + "-" + owner), Controller: new(true)}}
		}
		return m
	}
	of := func(class string) v1alpha1.MachineSpec {
		return v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: class}}
	}
	owned := &v1alpha1.Machine{ObjectMeta: meta("owned", "MachineSet", "set"), Spec: of("small")}
	owned.Labels, owned.Spec.ProviderID = map[string]string{v1alpha1.NodeLabelKey: "node-" + ns, v1alpha1.LabelKeyMachineDeploymentName: "deployment"}, "aws:///eu-west-1/"+ns
	owned.Status.CurrentStatus.Phase = v1alpha1.MachineUnknown
	d := &v1alpha1.MachineDeployment{ObjectMeta: meta("deployment", "", ""), Spec: v1alpha1.MachineDeploymentSpec{Replicas: 1}}
	d.Spec.Template.Spec = of("small")
	set := &v1alpha1.MachineSet{ObjectMeta: meta("set", "MachineDeployment", "deployment"), Spec: v1alpha1.MachineSetSpec{Replicas: 1}}
	set.Spec.Template.Spec = of("large")
	machines = []runtime.Object{
		owned, &v1alpha1.Machine{ObjectMeta: meta("free", "", ""), Spec: of("large")}, &v1alpha1.Machine{ObjectMeta: meta("of-free", "MachineSet", "free"), Spec: of("large")},
		d, set, &v1alpha1.MachineSet{ObjectMeta: meta("free", "", "")},
		&v1alpha1.MachineClass{ObjectMeta: meta("small", "", ""), SecretRef: &corev1.SecretReference{Namespace: ns, Name: "secret"}},
		&v1alpha1.MachineClass{ObjectMeta: meta("large", "", ""), SecretRef: &corev1.SecretReference{Namespace: ns, Name: "user-data"}, CredentialsSecretRef: &corev1.SecretReference{Namespace: ns, Name: "secret"}},
	}
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + ns, Labels: map[string]string{v1alpha1.TokenOwnerLabel: ns + "-owned"}}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + ns}, Spec: corev1.NodeSpec{ProviderID: "aws:////eu-west-1/" + ns}}
	return machines, []runtime.Object{&corev1.Secret{ObjectMeta: meta("secret", "", "")}}, []runtime.Object{token, node}
}

// names returns the namespaces and names of the objects that a method has returned.
func names(t *testing.T, method string, results []reflect.Value) (all []string) {
	t.Helper()
	require.Nil(t, results[1].Interface(), method)
	add := func(v reflect.Value) {
		if o, ok := reflect.TypeAssert[metav1.Object](v); ok && !v.IsNil() {
			all = append(all, reflect.TypeOf(o).String()+" "+o.GetNamespace()+"/"+o.GetName())
		}
	}
	if results[0].Kind() != reflect.Slice {
		add(results[0])
		return all
	}
	for i := range results[0].Len() {
		add(results[0].Index(i))
	}
	slices.Sort(all)
	return all
}

// TestReader_EachMethod_SameAsInformers calls each method of the Readers with the arguments of objects, and
// compares the results with those of the informers of the SDK.
func TestReader_EachMethod_SameAsInformers(t *testing.T) {
	require.NoError(t, v1alpha1.AddToScheme(scheme.Scheme))
	var machines, control, target []runtime.Object
	for _, ns := range []string{"a", "b"} {
		m, c, n := ofNamespace(ns)
		machines, control, target = append(machines, m...), append(control, c...), append(target, n...)
	}
	f := machinerunner.Factories{
		Machines: externalversions.NewSharedInformerFactory(machinefake.NewClientset(machines...), 0),
		Control:  informers.NewSharedInformerFactory(kubefake.NewClientset(control...), 0),
	}
	f.Target = informers.NewSharedInformerFactory(kubefake.NewClientset(target...), 0)
	f.Tokens = f.Target
	want, err := machinerunner.NewInformers(f)
	require.NoError(t, err)
	f.Machines.Start(t.Context().Done())
	f.Machines.WaitForCacheSync(t.Context().Done())
	for _, factory := range []informers.SharedInformerFactory{f.Control, f.Target} {
		factory.Start(t.Context().Done())
		factory.WaitForCacheSync(t.Context().Done())
	}
	of, joined := fake.NewClientBuilder().WithRuntimeObjects(append(machines, control...)...), fake.NewClientBuilder().WithRuntimeObjects(target...)
	require.NoError(t, indexControl(t.Context(), indexes{of}))
	require.NoError(t, indexTarget(t.Context(), indexes{joined}))
	have := &reader{control: of.Build(), target: joined.Build()}

	arguments := map[reflect.Type][]any{
		reflect.TypeFor[string]():    {"", "a", "b", "owned", "free", "node-a", nodeops.NormalizeProviderID("aws:///eu-west-1/a"), "a/deployment", "b/machineset/free", "a/machineset/free", "none"},
		reflect.TypeFor[types.UID](): {types.UID(""), types.UID("a-set"), types.UID("b-deployment"), types.UID("a-owned"), types.UID("none")},
	}
	for _, ns := range []string{"a", "b", "none"} {
		for _, name := range []string{"owned", "set", "deployment", "small", "large", "secret", "user-data", "free", "none"} {
			key := types.NamespacedName{Namespace: ns, Name: name}
			arguments[reflect.TypeOf(key)] = append(arguments[reflect.TypeOf(key)], key)
		}
	}
	drains := reflect.TypeFor[drainrunner.Reader]()
	for _, of := range []reflect.Type{
		reflect.TypeFor[machinerunner.Reader](), reflect.TypeFor[setrunner.Reader](), reflect.TypeFor[deploymentrunner.Reader](), reflect.TypeFor[safetyrunner.Reader](),
	} {
		for m := range of.Methods() {
			method := m.Name
			if _, drain := drains.MethodByName(method); drain && method != "Node" {
				continue
			}
			a, b := reflect.ValueOf(want).MethodByName(method), reflect.ValueOf(have).MethodByName(method)
			calls := [][]reflect.Value{{reflect.ValueOf(t.Context())}}
			for n := 1; n < a.Type().NumIn(); n++ {
				var more [][]reflect.Value
				for _, call := range calls {
					for _, argument := range arguments[a.Type().In(n)] {
						if argument == "" && !strings.HasSuffix(method, "In") { // only there it means all namespaces
							continue
						}
						more = append(more, append(slices.Clip(call), reflect.ValueOf(argument)))
					}
				}
				calls = more
			}
			found := 0
			for _, call := range calls {
				expected := names(t, method, a.Call(call))
				require.Equal(t, expected, names(t, method, b.Call(call)), "%s%v", method, call[1:])
				found += len(expected)
			}
			require.NotZero(t, found, "%s finds nothing", method)
		}
	}
}
