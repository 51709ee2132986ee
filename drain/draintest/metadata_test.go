// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestMalformedMetadataIsInvalid(t *testing.T) {
	yes := true
	cases := map[string]func(*Widget){
		"name":            func(w *Widget) { w.Name = "Not A Name" },
		"label":           func(w *Widget) { w.Labels = map[string]string{"not a key": "v"} },
		"annotation":      func(w *Widget) { w.Annotations = map[string]string{"not a key": "v"} },
		"finalizer":       func(w *Widget) { w.Finalizers = []string{"not a finalizer"} },
		"ownerReferences": func(w *Widget) { w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "K", Name: "n"}} },
		"Only one": func(w *Widget) {
			w.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "K", Name: "n", UID: "1", Controller: &yes}, {APIVersion: "v1", Kind: "K", Name: "m", UID: "2", Controller: &yes},
			}
		},
	}
	for what, spoil := range cases {
		t.Run(what, func(t *testing.T) {
			c, _, _ := newCluster(t)
			widgets := widgetsOf(c, "ns")
			bad := widget("w")
			spoil(bad)
			_, err := widgets.Create(t.Context(), bad, metav1.CreateOptions{})
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			require.ErrorContains(t, err, what)
			if what == "name" {
				return
			}
			good, err := widgets.Create(t.Context(), widget("w"), metav1.CreateOptions{})
			require.NoError(t, err)
			spoil(good)
			_, err = widgets.Update(t.Context(), good, metav1.UpdateOptions{})
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			require.Len(t, c.History(), 1)
		})
	}
}

func TestNamesByKind(t *testing.T) {
	_, client, _ := newCluster(t)
	roles := client.RbacV1().Roles("ns")
	_, err := roles.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "system:Any Name"}}, metav1.CreateOptions{})
	require.NoError(t, err, "roles are named freely")
	_, err = roles.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "a/b"}}, metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a.b"}}, metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), "a namespace is a label: %v", err)
}

func TestOwnerReferencesThatSayTheSameAreOne(t *testing.T) {
	c, _, _ := newCluster(t)
	ref := metav1.OwnerReference{APIVersion: "v1", Kind: "K", Name: "n", UID: "1"}
	twice := widget("w")
	twice.OwnerReferences = []metav1.OwnerReference{ref, ref}
	got, err := widgetsOf(c, "ns").Create(t.Context(), twice, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Len(t, got.OwnerReferences, 1)
	got.OwnerReferences = append(got.OwnerReferences, ref)
	again, err := widgetsOf(c, "ns").Update(t.Context(), got, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Len(t, again.OwnerReferences, 1)
	require.Equal(t, got.ResourceVersion, again.ResourceVersion, "and that is no change")
}

func TestTheStatusOfAVolumeAttachmentIsWrittenAlone(t *testing.T) {
	c, client, _ := newCluster(t)
	require.NoError(t, c.Add(&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va"}}))
	va, err := client.StorageV1().VolumeAttachments().Get(t.Context(), "va", metav1.GetOptions{})
	require.NoError(t, err)
	va.GenerateName = "base-"
	va.Labels, va.Finalizers, va.Status.Attached = map[string]string{"a": "1"}, []string{"example.org/f"}, true
	va, err = client.StorageV1().VolumeAttachments().UpdateStatus(t.Context(), va, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.True(t, va.Status.Attached)
	require.Equal(t, "base-", va.GenerateName, "nobody protects it")
	require.Empty(t, va.Labels)
	require.Empty(t, va.Finalizers)
}

func TestWhatIsEmptyIsNotAbsentForCustomKinds(t *testing.T) {
	c, _, _ := newCluster(t)
	widgets := widgetsOf(c, "ns")
	_, err := widgets.Create(t.Context(), widget("w"), metav1.CreateOptions{})
	require.NoError(t, err)
	got, err := widgets.Patch(t.Context(), "w", types.MergePatchType, []byte(`{"metadata":{"labels":{}},"spec":{"parts":{}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NotNil(t, got.Spec.Parts)
	require.Nil(t, got.Labels, "metadata has a type")
	require.EqualValues(t, 2, got.Generation)
}
