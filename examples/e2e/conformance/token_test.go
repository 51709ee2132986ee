// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var tokenScenarios = []scenario{
	{"tokens", tokens},
	{"tokens-watched-by-a-label", watchedTokens},
	{"volume-attachments", volumeAttachments},
}

// tokenLabel stands for the label by whose presence bootstrap tokens are told from other secrets.
const tokenLabel = "example.com/token-of"

func token(s *corev1.Secret) {
	s.Type, s.Labels = corev1.SecretTypeBootstrapToken, labeled(tokenLabel, "uid")
	s.Data = map[string][]byte{"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"), "usage-bootstrap-authentication": []byte("true")}
}

func tokens(w *world) {
	const name = "bootstrap-token-abcdef"
	s := w.secret(name, token)
	w.got("created", s, nil, "type", "data", "metadata/labels")
	w.secret("other")
	_, err := w.secretAPI().Create(w.ctx(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	w.did("created once more", err)
	for _, selector := range []string{tokenLabel, tokenLabel + "=uid", tokenLabel + "=", "!" + tokenLabel} {
		list, err := w.secretAPI().List(w.ctx(), metav1.ListOptions{LabelSelector: selector})
		w.did("listed by "+selector, err)
		for _, s := range list.Items {
			w.say("%s", s.Name)
		}
	}
	w.did("deleted with another uid", w.secretAPI().Delete(w.ctx(), name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")}))
	w.did("deleted", w.secretAPI().Delete(w.ctx(), name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))}))
	w.did("deleted once more", w.secretAPI().Delete(w.ctx(), name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))}))
	again := w.secret(name, token)
	w.say("another of the name is another: %v", again.UID != s.UID)
	w.did("deleted with the uid of the first", w.secretAPI().Delete(w.ctx(), name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))}))
}

func watchedTokens(w *world) {
	list, err := w.secretAPI().List(w.ctx(), metav1.ListOptions{LabelSelector: tokenLabel})
	require.NoError(w.t, err)
	events, err := w.secretAPI().Watch(w.ctx(), metav1.ListOptions{LabelSelector: tokenLabel, ResourceVersion: list.ResourceVersion})
	require.NoError(w.t, err)
	defer events.Stop()
	w.secret("unseen")
	w.secret("token", token)
	w.see(events, 1)
	relabel := func(label string) {
		_, err := w.secretAPI().Patch(w.ctx(), "token", types.MergePatchType, []byte(`{"metadata":{"labels":{"`+tokenLabel+`":`+label+`}}}`), metav1.PatchOptions{})
		require.NoError(w.t, err)
	}
	relabel(`""`) // whatever its value
	w.see(events, 1)
	relabel("null")
	w.see(events, 1)
	relabel(`"other"`)
	w.see(events, 1)
	require.NoError(w.t, w.secretAPI().Delete(w.ctx(), "unseen", metav1.DeleteOptions{}))
	require.NoError(w.t, w.secretAPI().Delete(w.ctx(), "token", metav1.DeleteOptions{}))
	w.see(events, 1)
}

func volumeAttachments(w *world) {
	api := w.kube.StorageV1().VolumeAttachments()
	attach := func(name string, finalizers ...string) *storagev1.VolumeAttachment {
		w.t.Cleanup(func() {
			_, _ = api.Patch(w.afterwards(), w.own(name), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			_ = api.Delete(w.afterwards(), w.own(name), metav1.DeleteOptions{})
		})
		va, err := api.Create(w.ctx(), &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: w.own(name), Finalizers: finalizers},
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: "example.com", NodeName: w.own("n"), Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv-" + name)},
			},
		}, metav1.CreateOptions{})
		w.got("created", va, err, "spec/nodeName", "metadata/finalizers", "status/attached")
		return va
	}
	held, free := attach("held", "external-attacher/example-com"), attach("free")
	events, err := api.Watch(w.ctx(), metav1.ListOptions{ResourceVersion: free.ResourceVersion, FieldSelector: "metadata.name=" + held.Name})
	require.NoError(w.t, err)
	defer events.Stop()
	w.did("deleted with another uid", api.Delete(w.ctx(), free.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(held.UID))}))
	w.did("deleted", api.Delete(w.ctx(), free.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(free.UID))}))
	_, err = api.Get(w.ctx(), free.Name, metav1.GetOptions{})
	w.did("get", err)

	w.did("deleted while its attacher holds it", api.Delete(w.ctx(), held.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(held.UID))}))
	w.see(events, 1)
	w.did("once more", api.Delete(w.ctx(), held.Name, metav1.DeleteOptions{}))
	left, err := api.Get(w.ctx(), held.Name, metav1.GetOptions{})
	w.got("get", left, err, "metadata/finalizers")
	left.Status.DetachError = &storagev1.VolumeError{Message: "busy"}
	left, err = api.UpdateStatus(w.ctx(), left, metav1.UpdateOptions{})
	w.got("status", left, err, "status/attached", "status/detachError/message")
	w.see(events, 1)
	_, err = api.Patch(w.ctx(), held.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	w.did("let go", err)
	w.see(events, 1)
	_, err = api.Get(w.ctx(), held.Name, metav1.GetOptions{})
	w.did("get", err)
}
