// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"strings"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var lockingScenarios = []scenario{
	{"locking-custom-kind", lockingCustomKind},
	{"locking-built-in-kinds", lockingBuiltInKinds},
	{"locking-patches", lockingPatches},
	{"creating-with-what-the-server-decides", creatingWithSystemFields},
	{"no-op-writes", noOpWrites},
	{"dry-runs", dryRuns},
}

const otherUID = types.UID("00000000-0000-4000-8000-000000000000")

func lockingCustomKind(w *world) {
	api := w.machineAPI()
	old := w.machine("m")
	fresh := old.DeepCopy()
	fresh.Labels = labeled("a", "1")
	fresh, err := api.Update(w.ctx(), fresh, metav1.UpdateOptions{})
	w.got("update of the latest version", fresh, err, "metadata/labels")
	old.Labels = labeled("a", "2")
	_, err = api.Update(w.ctx(), old, metav1.UpdateOptions{})
	w.did("update of a stale version", err)
	_, err = api.UpdateStatus(w.ctx(), old, metav1.UpdateOptions{})
	w.did("status update of a stale version", err)

	blind := fresh.DeepCopy()
	blind.ResourceVersion = ""
	blind.Labels = labeled("a", "3")
	_, err = api.Update(w.ctx(), blind, metav1.UpdateOptions{})
	w.did("update without version", err)
	_, err = api.UpdateStatus(w.ctx(), blind, metav1.UpdateOptions{})
	w.did("status update without version", err)
	blind.UID = ""
	_, err = api.Update(w.ctx(), blind, metav1.UpdateOptions{})
	w.did("update without version and uid", err)
	blind.ResourceVersion = "0"
	_, err = api.Update(w.ctx(), blind, metav1.UpdateOptions{})
	w.did("update with version 0", err)
	blind.ResourceVersion = "abc"
	_, err = api.Update(w.ctx(), blind, metav1.UpdateOptions{})
	w.did("update with a malformed version", err)

	other := fresh.DeepCopy()
	other.UID = otherUID
	_, err = api.Update(w.ctx(), other, metav1.UpdateOptions{})
	w.did("update of another incarnation", err)
	_, err = api.UpdateStatus(w.ctx(), other, metav1.UpdateOptions{})
	w.did("status update of another incarnation", err)
	elsewhere := fresh.DeepCopy()
	elsewhere.Namespace = "other"
	_, err = api.Update(w.ctx(), elsewhere, metav1.UpdateOptions{})
	w.did("update of another namespace", err)
	anonymous := fresh.DeepCopy()
	anonymous.UID = ""
	anonymous.Labels = labeled("a", "4")
	anonymous, err = api.Update(w.ctx(), anonymous, metav1.UpdateOptions{})
	w.got("update with version and without uid", anonymous, err, "metadata/labels", "metadata/uid")

	require.NoError(w.t, api.Delete(w.ctx(), "m", metav1.DeleteOptions{}))
	_, err = api.Update(w.ctx(), fresh, metav1.UpdateOptions{})
	w.did("update of what is gone", err)
	_, err = api.UpdateStatus(w.ctx(), fresh, metav1.UpdateOptions{})
	w.did("status update of what is gone", err)
	fresh.UID = ""
	_, err = api.Update(w.ctx(), fresh, metav1.UpdateOptions{})
	w.did("update of what is gone, without uid", err)
	again := w.machine("m")
	again.ResourceVersion = old.ResourceVersion
	again.UID = old.UID
	_, err = api.Update(w.ctx(), again, metav1.UpdateOptions{})
	w.did("update of the namesake", err)
	_, err = api.Get(w.ctx(), "missing", metav1.GetOptions{})
	w.did("get of what is not there", err)
	err = api.Delete(w.ctx(), "missing", metav1.DeleteOptions{})
	w.did("delete of what is not there", err)
}

func lockingBuiltInKinds(w *world) {
	secret := w.secret("s")
	stale := secret.DeepCopy()
	mistaken := secret.DeepCopy()
	mistaken.ResourceVersion = "abc"
	_, err := w.secretAPI().Update(w.ctx(), mistaken, metav1.UpdateOptions{})
	w.did("secret: update with a malformed version", err)
	_, err = w.secretAPI().Patch(w.ctx(), "s", types.MergePatchType, []byte(`{"metadata":{"resourceVersion":"abc"}}`), metav1.PatchOptions{})
	w.did("secret: patch with a malformed version", err)
	secret.Labels = labeled("a", "1")
	secret, err = w.secretAPI().Update(w.ctx(), secret, metav1.UpdateOptions{})
	w.got("secret: update of the latest version", secret, err, "metadata/labels")
	_, err = w.secretAPI().Update(w.ctx(), stale, metav1.UpdateOptions{})
	w.did("secret: update of a stale version", err)
	stale.ResourceVersion, stale.Labels = "", labeled("a", "2")
	got, err := w.secretAPI().Update(w.ctx(), stale, metav1.UpdateOptions{})
	w.got("secret: update without version", got, err, "metadata/labels")
	stale.ResourceVersion = "0"
	got, err = w.secretAPI().Update(w.ctx(), stale, metav1.UpdateOptions{})
	w.got("secret: update with version 0", got, err, "metadata/labels")
	stale.UID = otherUID
	_, err = w.secretAPI().Update(w.ctx(), stale, metav1.UpdateOptions{})
	w.did("secret: update without version of another incarnation", err)
	stale.Name = "missing"
	_, err = w.secretAPI().Update(w.ctx(), stale, metav1.UpdateOptions{})
	w.did("secret: update of what is not there, with uid", err)
	stale.UID = ""
	_, err = w.secretAPI().Update(w.ctx(), stale, metav1.UpdateOptions{})
	w.did("secret: update of what is not there", err)

	node := w.node("n")
	node.ResourceVersion, node.Labels = "", labeled("a", "1")
	node, err = w.nodeAPI().Update(w.ctx(), node, metav1.UpdateOptions{})
	w.got("node: update without version", node, err, "metadata/labels/a")
	node.ResourceVersion = "1"
	_, err = w.nodeAPI().Update(w.ctx(), node, metav1.UpdateOptions{})
	w.did("node: update of a stale version", err)
	_, err = w.nodeAPI().UpdateStatus(w.ctx(), node, metav1.UpdateOptions{})
	w.did("node: status update of a stale version", err)

	pod := w.pod("p", "", nil)
	pod.ResourceVersion, pod.Labels = "", labeled("a", "1")
	pod, err = w.podAPI().Update(w.ctx(), pod, metav1.UpdateOptions{})
	w.got("pod: update without version", pod, err, "metadata/labels")

	budget := w.budget("b", labeled("a", "1"), atLeast(intstr.FromInt32(1)))
	budget.ResourceVersion = ""
	_, err = w.budgetAPI().Update(w.ctx(), budget, metav1.UpdateOptions{})
	w.did("budget: update without version", err)

	leases := w.kube.CoordinationV1().Leases(w.ns)
	lease, err := leases.Create(w.ctx(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("me"), LeaseDurationSeconds: new(int32(10)),
	}}, metav1.CreateOptions{})
	w.got("lease: create", lease, err, "spec")
	stolen := lease.DeepCopy()
	stolen.Spec.HolderIdentity = new("you")
	_, err = leases.Update(w.ctx(), stolen, metav1.UpdateOptions{})
	w.did("lease: taken over", err)
	_, err = leases.Update(w.ctx(), lease, metav1.UpdateOptions{})
	w.did("lease: renewed by who has lost it", err)
	lease.ResourceVersion = ""
	_, err = leases.Update(w.ctx(), lease, metav1.UpdateOptions{})
	w.did("lease: update without version", err)
}

func lockingPatches(w *world) {
	m := w.machine("m")
	patch := func(what, body string, sub ...string) {
		got, err := w.machineAPI().Patch(w.ctx(), "m", types.MergePatchType, []byte(body), metav1.PatchOptions{}, sub...)
		w.got("machine: "+what, got, err, "metadata/labels")
	}
	patch("patch without version", `{"metadata":{"labels":{"a":"1"}}}`)
	patch("patch with a stale version", `{"metadata":{"resourceVersion":"`+m.ResourceVersion+`","labels":{"a":"2"}}}`)
	patch("status patch with a stale version", `{"metadata":{"resourceVersion":"`+m.ResourceVersion+`"},"status":{"lastKnownState":"n"}}`, "status")
	patch("patch with the uid", `{"metadata":{"uid":"`+string(m.UID)+`","labels":{"a":"3"}}}`)
	patch("patch with another uid", `{"metadata":{"uid":"`+string(otherUID)+`","labels":{"a":"4"}}}`)
	patch("status patch with another uid", `{"metadata":{"uid":"`+string(otherUID)+`"},"status":{"lastKnownState":"n"}}`, "status")
	patch("patch with version null", `{"metadata":{"resourceVersion":null,"labels":{"a":"5"}}}`)
	patch("patch of another name", `{"metadata":{"name":"other"}}`)
	patch("patch of another namespace", `{"metadata":{"namespace":"other"}}`)

	s := w.secret("s")
	patchSecret := func(what, body string) {
		got, err := w.secretAPI().Patch(w.ctx(), "s", types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{})
		w.got("secret: "+what, got, err, "metadata/labels")
	}
	patchSecret("patch without version", `{"metadata":{"labels":{"a":"1"}}}`)
	patchSecret("patch with a stale version", `{"metadata":{"resourceVersion":"`+s.ResourceVersion+`","labels":{"a":"2"}}}`)
	patchSecret("patch with the uid", `{"metadata":{"uid":"`+string(s.UID)+`","labels":{"a":"3"}}}`)
	patchSecret("patch with another uid", `{"metadata":{"uid":"`+string(otherUID)+`","labels":{"a":"4"}}}`)
	patchSecret("patch of another name", `{"metadata":{"name":"other"}}`)
	_, err := w.secretAPI().Patch(w.ctx(), "missing", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	w.did("secret: patch of what is not there", err)
	_, err = w.machineAPI().Patch(w.ctx(), "missing", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	w.did("machine: patch of what is not there", err)
}

func creatingWithSystemFields(w *world) {
	at := metav1.Unix(0, 0)
	in := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "m", UID: otherUID, Generation: 7, CreationTimestamp: at, DeletionTimestamp: &at, DeletionGracePeriodSeconds: new(int64(5)),
		SelfLink:   "/self", //nolint:staticcheck // that it is dropped is the point
		Finalizers: []string{"example.com/hold"},
	}}
	in.Status.LastKnownState = "n"
	m, err := w.machineAPI().Create(w.ctx(), in, metav1.CreateOptions{})
	w.got("machine with system fields", m, err, "metadata/generation", "metadata/deletionTimestamp", "metadata/deletionGracePeriodSeconds",
		"metadata/finalizers", "metadata/selfLink", "status/lastKnownState")
	w.say("its uid is its own: %v, its creation is now: %v", m.UID != otherUID, m.CreationTimestamp.Unix() > 0)
	_, err = w.machineAPI().Create(w.ctx(), in, metav1.CreateOptions{})
	w.did("machine whose name is taken", err)
	_, err = w.machineAPI().Create(w.ctx(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "v", ResourceVersion: "1"}}, metav1.CreateOptions{})
	w.did("machine with resource version", err)
	_, err = w.machineAPI().Create(w.ctx(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", ResourceVersion: "1"}}, metav1.CreateOptions{})
	w.did("machine with resource version whose name is taken", err)
	_, err = w.machineAPI().Create(w.ctx(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: "other"}}, metav1.CreateOptions{})
	w.did("machine of another namespace", err)
	_, err = w.machineAPI().Create(w.ctx(), &v1alpha1.Machine{}, metav1.CreateOptions{})
	w.did("machine without name", err)
	_, err = w.machineAPI().Create(w.ctx(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "Not A Name"}}, metav1.CreateOptions{})
	w.did("machine with a malformed name", err)
	_, err = w.machineAPI().Create(w.ctx(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "l", Labels: labeled("not a key", "v")}}, metav1.CreateOptions{})
	w.did("machine with a malformed label", err)
	_, err = w.machineAPI().Create(w.ctx(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "f", Finalizers: []string{"not a finalizer"}}}, metav1.CreateOptions{})
	w.did("machine with a malformed finalizer", err)
	_, err = w.machineAPI().Create(w.ctx(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "o", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "s"}},
	}}, metav1.CreateOptions{})
	w.refused("machine whose owner has no uid", err)
	yes := true
	_, err = w.machineAPI().Create(w.ctx(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "o", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Secret", Name: "s", UID: "u1", Controller: &yes}, {APIVersion: "v1", Kind: "Secret", Name: "t", UID: "u2", Controller: &yes},
		},
	}}, metav1.CreateOptions{})
	w.refused("machine with two controllers", err)

	s := w.secret("s")
	s.Name = "v"
	_, err = w.secretAPI().Create(w.ctx(), s, metav1.CreateOptions{})
	w.did("secret with resource version", err)

	for range 2 {
		g, err := w.machineAPI().Create(w.ctx(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{GenerateName: "set-"}}, metav1.CreateOptions{})
		w.got("machine with generated name", g, err, "metadata/generateName")
		w.say("five letters more: %v", len(g.Name) == len("set-")+5)
	}
	long, err := w.machineAPI().Create(w.ctx(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{GenerateName: strings.Repeat("x", 80)}}, metav1.CreateOptions{})
	w.did("machine with a long generated name", err)
	w.say("its length: %d", len(long.Name))
	dry, err := w.machineAPI().Create(w.ctx(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "dry"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	w.got("dry run", dry, err, "metadata/generation", "metadata/resourceVersion")
	_, err = w.machineAPI().Get(w.ctx(), "dry", metav1.GetOptions{})
	w.did("get after the dry run", err)
}

func noOpWrites(w *world) {
	m := w.machine("m", func(m *v1alpha1.Machine) { m.Labels = labeled("a", "1") })
	got, err := w.machineAPI().Update(w.ctx(), m, metav1.UpdateOptions{})
	w.got("machine: the same again", got, err, "metadata/generation")
	w.version("machine: the same again", m, got)
	m.Status.LastKnownState = "s"
	m, err = w.machineAPI().UpdateStatus(w.ctx(), m, metav1.UpdateOptions{})
	w.got("machine: a status", m, err, "metadata/generation")
	got, err = w.machineAPI().UpdateStatus(w.ctx(), m, metav1.UpdateOptions{})
	w.got("machine: the same status again", got, err, "metadata/generation")
	w.version("machine: the same status again", m, got)
	empty := m.DeepCopy()
	empty.Annotations, empty.Finalizers = map[string]string{}, []string{}
	got, err = w.machineAPI().Update(w.ctx(), empty, metav1.UpdateOptions{})
	w.got("machine: empty instead of nil", got, err, "metadata/annotations")
	w.version("machine: empty instead of nil", m, got)
	for _, body := range []string{
		`{}`, `{"metadata":{"labels":{"a":"1"}}}`, `{"metadata":{"annotations":{}}}`, `{"metadata":{"annotations":null}}`,
		`{"metadata":{"finalizers":[]}}`, `{"metadata":{"labels":{"b":null}}}`, `{"status":{"lastKnownState":"n"}}`,
	} {
		got, err = w.machineAPI().Patch(w.ctx(), "m", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		w.got("machine: patch "+body, got, err, "metadata/generation", "metadata/annotations")
		w.version("machine: patch "+body, m, got)
		m = got
	}

	s := w.secret("s")
	again, err := w.secretAPI().Update(w.ctx(), s, metav1.UpdateOptions{})
	w.did("secret: the same again", err)
	w.version("secret: the same again", s, again)
	again, err = w.secretAPI().Patch(w.ctx(), "s", types.MergePatchType, []byte(`{"metadata":{"labels":{}}}`), metav1.PatchOptions{})
	w.did("secret: patch with empty labels", err)
	w.version("secret: patch with empty labels", s, again)
}

func dryRuns(w *world) {
	all := []string{metav1.DryRunAll}
	m := w.machine("m", func(m *v1alpha1.Machine) { m.Finalizers = hold("a") })
	changed := m.DeepCopy()
	changed.Spec.ProviderID = "p"
	got, err := w.machineAPI().Update(w.ctx(), changed, metav1.UpdateOptions{DryRun: all})
	w.got("update", got, err, "spec/providerID", "metadata/generation")
	w.version("update", m, got)
	changed.Status.LastKnownState = "s"
	got, err = w.machineAPI().UpdateStatus(w.ctx(), changed, metav1.UpdateOptions{DryRun: all})
	w.got("status update", got, err, "status/lastKnownState", "metadata/generation")
	w.version("status update", m, got)
	got, err = w.machineAPI().Patch(w.ctx(), "m", types.MergePatchType, []byte(`{"spec":{"providerID":"p"}}`), metav1.PatchOptions{DryRun: all})
	w.got("patch", got, err, "spec/providerID", "metadata/generation")
	w.version("patch", m, got)
	changed.ResourceVersion = "1"
	_, err = w.machineAPI().Update(w.ctx(), changed, metav1.UpdateOptions{DryRun: all})
	w.did("update of a stale version", err)
	_, err = w.machineAPI().Create(w.ctx(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{DryRun: all})
	w.did("create of what is there", err)
	w.did("delete of another incarnation", w.machineAPI().Delete(w.ctx(), "m", metav1.DeleteOptions{DryRun: all, Preconditions: &metav1.Preconditions{UID: new(otherUID)}}))
	w.did("delete", w.machineAPI().Delete(w.ctx(), "m", metav1.DeleteOptions{DryRun: all}))
	w.did("delete of what is not there", w.machineAPI().Delete(w.ctx(), "missing", metav1.DeleteOptions{DryRun: all}))
	got, err = w.machineAPI().Get(w.ctx(), "m", metav1.GetOptions{})
	w.got("get", got, err, "spec", "status", "metadata/deletionTimestamp")
	w.version("all of it", m, got)
	w.did("delete, for good", w.machineAPI().Delete(w.ctx(), "m", metav1.DeleteOptions{}))
	got, err = w.machineAPI().Patch(w.ctx(), "m", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{DryRun: all})
	w.got("patch without the last finalizer", got, err, "metadata/finalizers")
	got, err = w.machineAPI().Get(w.ctx(), "m", metav1.GetOptions{})
	w.got("get", got, err, "metadata/finalizers")
}
