// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/machinist-dev/machinist"
	machinefake "github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	machinerunner "github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// indexer adds the indexes of a fake client.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
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
	pod := &corev1.Pod{ObjectMeta: meta("pod", "", ""), Spec: corev1.PodSpec{NodeName: node.Name}}
	claim, budget := &corev1.PersistentVolumeClaim{ObjectMeta: meta("claim", "", "")}, &policyv1.PodDisruptionBudget{ObjectMeta: meta("budget", "", "")}
	attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "attachment-" + ns}, Spec: storagev1.VolumeAttachmentSpec{NodeName: node.Name}}
	attachment.Spec.Source.PersistentVolumeName = new("volume-" + ns)
	return machines, []runtime.Object{&corev1.Secret{ObjectMeta: meta("secret", "", "")}}, []runtime.Object{token, node, pod, claim, budget, attachment}
}

// names returns the types, namespaces and names of the objects that a Reader has returned, in order.
func names(all ...machinist.Object) (names []string) {
	for _, o := range all {
		if o != nil {
			names = append(names, fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName()))
		}
	}
	slices.Sort(names)
	return names
}

// TestReader_EachIndex_SameAsInformers reads each object, and each index with the keys of the objects, and
// compares the results with those of the informers of the SDK.
func TestReader_EachIndex_SameAsInformers(t *testing.T) {
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
	require.NoError(t, addIndexes(t.Context(), indexer{of}, indexer{joined}))
	have := &reader{of.Build(), joined.Build(), scheme.Scheme}

	for _, o := range slices.Concat(machines, control, target) {
		object := o.(client.Object) //nolint:forcetypeassert // typed objects
		for _, name := range []string{object.GetName(), "none"} {
			copied := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // typed objects
			copied.SetName(name)
			a, err := want.Get(t.Context(), copied)
			require.NoError(t, err)
			b, err := have.Get(t.Context(), copied)
			require.NoError(t, err)
			require.Equal(t, names(a), names(b))
			_, token := object.GetLabels()[v1alpha1.TokenOwnerLabel]
			require.Equal(t, name != "none" && !token, b != nil, "%T %s", o, name)
		}
		for _, ns := range []string{"", "a", "none"} {
			copied := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // typed objects
			copied.SetNamespace(ns)
			a, err := want.List(t.Context(), copied, "", "")
			require.NoError(t, err)
			b, err := have.List(t.Context(), copied, "", "")
			require.NoError(t, err)
			require.Equal(t, names(a...), names(b...))
			require.True(t, ns != "" || len(b) > 1, "%T", o)
		}
	}
	for _, index := range machinerunner.Indexes() {
		found := 0
		for _, o := range slices.Concat(machines, control, target) {
			for _, key := range append(index.Keys(o.(machinist.Object)), "none") { //nolint:forcetypeassert // typed objects
				a, err := want.List(t.Context(), index.Of, index.Name, key)
				require.NoError(t, err)
				b, err := have.List(t.Context(), index.Of, index.Name, key)
				require.NoError(t, err)
				require.Equal(t, names(a...), names(b...), "%s %s", index.Name, key)
				found += len(b)
			}
		}
		require.NotZero(t, found, "%T %s finds nothing", index.Of, index.Name)
	}
	for _, r := range []machinist.Reader{want, have} {
		_, err := r.List(t.Context(), &appsv1.DaemonSet{}, "", "")
		require.ErrorIs(t, err, machinist.ErrNotCached)
	}
}
