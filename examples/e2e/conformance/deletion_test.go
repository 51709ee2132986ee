// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var deletionScenarios = []scenario{
	{"deletion-preconditions", deletionPreconditions},
	{"deletion-of-collections", deletionOfCollections},
}

var ownerScenarios = []scenario{
	{"owners-background", func(w *world) { ownersGo(w, metav1.DeletePropagationBackground) }},
	{"owners-foreground", func(w *world) { ownersGo(w, metav1.DeletePropagationForeground) }},
	{"owners-in-patches", ownerReferencesInPatches},
	{"owners-of-running-pods", ownersOfRunningPods},
	{"owners-that-had-gone-before", ownersThatHadGoneBefore},
	{"owners-and-finalizers", ownersAndFinalizers},
}

func deletionPreconditions(w *world) {
	m := w.machine("m")
	wrongVersion := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new("1")}}
	w.did("machine: wrong uid", w.machineAPI().Delete(w.ctx(), "m", *metav1.NewPreconditionDeleteOptions(string(otherUID))))
	w.did("machine: wrong version", w.machineAPI().Delete(w.ctx(), "m", wrongVersion))
	w.did("machine: not there", w.machineAPI().Delete(w.ctx(), "missing", *metav1.NewPreconditionDeleteOptions(string(otherUID))))
	w.did("machine: dry run", w.machineAPI().Delete(w.ctx(), "m", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
	w.did("machine: right uid and version", w.machineAPI().Delete(w.ctx(), "m", metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion},
	}))
	w.did("machine: once more", w.machineAPI().Delete(w.ctx(), "m", *metav1.NewPreconditionDeleteOptions(string(m.UID))))

	s := w.secret("s")
	w.did("secret: wrong uid", w.secretAPI().Delete(w.ctx(), "s", *metav1.NewPreconditionDeleteOptions(string(otherUID))))
	w.did("secret: wrong version", w.secretAPI().Delete(w.ctx(), "s", wrongVersion))
	w.did("secret: right uid", w.secretAPI().Delete(w.ctx(), "s", *metav1.NewPreconditionDeleteOptions(string(s.UID))))

	node := w.node("n")
	p := w.running("p", node.Name, nil, true)
	w.did("pod: wrong uid", w.podAPI().Delete(w.ctx(), "p", *metav1.NewPreconditionDeleteOptions(string(otherUID))))
	w.did("pod: wrong version", w.podAPI().Delete(w.ctx(), "p", wrongVersion))
	w.did("pod: right uid, no grace", w.podAPI().Delete(w.ctx(), "p", metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &p.UID},
	}))
	_, err := w.podAPI().Get(w.ctx(), "p", metav1.GetOptions{})
	w.did("pod: get", err)
	w.did("node: delete", w.nodeAPI().Delete(w.ctx(), node.Name, metav1.DeleteOptions{}))
	_, err = w.nodeAPI().Get(w.ctx(), node.Name, metav1.GetOptions{})
	w.did("node: get", err)
}

func (w *world) machineNames(opts metav1.ListOptions) string {
	list, err := w.machineAPI().List(w.ctx(), opts)
	if err != nil {
		return outcome(err)
	}
	names := []string{}
	for _, m := range list.Items {
		name := m.Name
		if m.DeletionTimestamp != nil {
			name += "(going)"
		}
		names = append(names, name)
	}
	return "[" + strings.Join(names, " ") + "]"
}

func deletionOfCollections(w *world) {
	for i := range 4 {
		w.machine(fmt.Sprintf("m-%d", i), func(m *v1alpha1.Machine) {
			m.Labels = labeled("parity", []string{"even", "odd"}[i%2])
			if i == 3 {
				m.Finalizers = hold("a")
			}
		})
	}
	err := w.machineAPI().DeleteCollection(w.ctx(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "parity=even"})
	w.say("the even ones: %s, left %s", outcome(err), w.machineNames(metav1.ListOptions{}))
	err = w.machineAPI().DeleteCollection(w.ctx(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, metav1.ListOptions{})
	w.say("all, dry: %s, left %s", outcome(err), w.machineNames(metav1.ListOptions{}))
	err = w.machineAPI().DeleteCollection(w.ctx(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=m-1"})
	w.say("one by name: %s, left %s", outcome(err), w.machineNames(metav1.ListOptions{}))
	err = w.machineAPI().DeleteCollection(w.ctx(), metav1.DeleteOptions{}, metav1.ListOptions{})
	w.say("all: %s, left %s", outcome(err), w.machineNames(metav1.ListOptions{}))
	err = w.machineAPI().DeleteCollection(w.ctx(), metav1.DeleteOptions{}, metav1.ListOptions{})
	w.say("all again: %s, left %s", outcome(err), w.machineNames(metav1.ListOptions{}))
	_, err = w.machineAPI().Patch(w.ctx(), "m-3", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	w.say("no finalizer: %s, left %s", outcome(err), w.machineNames(metav1.ListOptions{}))
	err = w.machineAPI().DeleteCollection(w.ctx(), metav1.DeleteOptions{}, metav1.ListOptions{})
	w.did("of nothing", err)
}

func ownerOf(apiVersion, kind string, m metav1.Object) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: m.GetName(), UID: m.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes}
}

// ownersGo deletes a set with two machines, one of which has a second owner.
func ownersGo(w *world, policy metav1.DeletionPropagation) {
	api := v1alpha1.SchemeGroupVersion.String()
	set, other := w.machineSet("set", 2), w.machineSet("other", 0)
	w.machine("m-1", func(m *v1alpha1.Machine) {
		m.OwnerReferences = []metav1.OwnerReference{ownerOf(api, "MachineSet", set)}
	})
	second := ownerOf(api, "MachineSet", other)
	second.Controller = nil
	w.machine("m-2", func(m *v1alpha1.Machine) {
		m.OwnerReferences = []metav1.OwnerReference{ownerOf(api, "MachineSet", set), second}
	})
	w.secret("s", func(s *corev1.Secret) {
		s.OwnerReferences = []metav1.OwnerReference{ownerOf(api, "MachineSet", set)}
	})
	w.awaitCollector()
	w.did("delete of the set", w.setAPI().Delete(w.ctx(), "set", metav1.DeleteOptions{PropagationPolicy: &policy}))
	w.eventually("nothing more happens", func() (string, bool) {
		_, setErr := w.setAPI().Get(w.ctx(), "set", metav1.GetOptions{})
		seen := []string{"set " + outcome(setErr)}
		machines, err := w.machineAPI().List(w.ctx(), metav1.ListOptions{})
		if err != nil {
			return outcome(err), false
		}
		for _, m := range machines.Items {
			seen = append(seen, m.Name+" with owners "+ownerNames(&m))
		}
		secrets, err := w.secretAPI().List(w.ctx(), metav1.ListOptions{FieldSelector: "metadata.name=s"})
		if err != nil {
			return outcome(err), false
		}
		for _, s := range secrets.Items {
			seen = append(seen, "secret with owners "+ownerNames(&s))
		}
		story := strings.Join(seen, ", ")
		return story, strings.Contains(story, "set 404") && !strings.Contains(story, "/set")
	})
}

// awaitCollector waits until the garbage collector knows all machines and secrets that there are, by asking it to collect
// one of each. It learns of new kinds every half a minute, and of objects a moment after they are there; those which
// it does not know yet it cannot orphan.
func (w *world) awaitCollector() {
	w.t.Helper()
	owner, err := w.setAPI().Create(w.ctx(), &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "first"}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	dependent := metav1.ObjectMeta{
		Name: "first", OwnerReferences: []metav1.OwnerReference{ownerOf(v1alpha1.SchemeGroupVersion.String(), "MachineSet", owner)},
	}
	_, err = w.machineAPI().Create(w.ctx(), &v1alpha1.Machine{ObjectMeta: dependent}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	_, err = w.secretAPI().Create(w.ctx(), &corev1.Secret{ObjectMeta: dependent}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	require.NoError(w.t, w.setAPI().Delete(w.ctx(), "first", metav1.DeleteOptions{}))
	w.eventually("dependents go", func() (string, bool) {
		_, machine := w.machineAPI().Get(w.ctx(), "first", metav1.GetOptions{})
		_, secret := w.secretAPI().Get(w.ctx(), "first", metav1.GetOptions{})
		return outcome(machine) + ", " + outcome(secret), machine != nil && secret != nil
	})
}

func ownerNames(m metav1.Object) string {
	names := []string{}
	for _, ref := range m.GetOwnerReferences() {
		names = append(names, "/"+ref.Name)
	}
	slices.Sort(names)
	return "[" + strings.Join(names, " ") + "]"
}

func ownerReferencesInPatches(w *world) {
	set := w.machineSet("set", 0)
	ref := ownerOf(v1alpha1.SchemeGroupVersion.String(), "MachineSet", set)
	asJSON := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":true,"blockOwnerDeletion":true}`, ref.APIVersion, ref.Kind, ref.Name, ref.UID)
	w.machine("m", func(m *v1alpha1.Machine) { m.OwnerReferences = []metav1.OwnerReference{ref} })
	for _, body := range []string{
		`{"metadata":{"ownerReferences":null}}`,
		`{"metadata":{"ownerReferences":[` + asJSON + `]}}`,
		`{"metadata":{"uid":"` + string(otherUID) + `","ownerReferences":[]}}`,
		`{"metadata":{"ownerReferences":[]}}`,
		`{"metadata":{"ownerReferences":[` + asJSON + `]}}`,
	} {
		got, err := w.machineAPI().Patch(w.ctx(), "m", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		w.got("machine: "+body, got, err, "metadata/ownerReferences")
	}
	for _, body := range []string{
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"s","uid":""}]}}`,
		`{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"` + string(set.UID) + `"}]}}`,
	} {
		_, err := w.machineAPI().Patch(w.ctx(), "m", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		w.refused("machine: "+body, err)
	}
	_, err := w.machineAPI().Patch(w.ctx(), "m", types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"a":"1"}}}`), metav1.PatchOptions{})
	w.did("machine: strategic merge patch", err)

	w.secret("s", func(s *corev1.Secret) { s.OwnerReferences = []metav1.OwnerReference{ref} })
	other := w.machineSet("other", 0)
	second := fmt.Sprintf(`{"apiVersion":%q,"kind":"MachineSet","name":"other","uid":%q}`, ref.APIVersion, other.UID)
	for _, body := range []string{
		`{"metadata":{"ownerReferences":[` + second + `]}}`,
		`{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"` + string(set.UID) + `"}]}}`,
		`{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"` + string(set.UID) + `"}]}}`,
		`{"metadata":{"uid":"` + string(otherUID) + `","ownerReferences":[{"$patch":"delete","uid":"` + string(other.UID) + `"}]}}`,
		`{"metadata":{"ownerReferences":[{"$patch":"replace"},` + second + `]}}`,
		`{"metadata":{"ownerReferences":null}}`,
	} {
		got, err := w.secretAPI().Patch(w.ctx(), "s", types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{})
		w.got("secret: "+body, got, err, "metadata/ownerReferences")
	}
}

// ownersOfRunningPods shows that the garbage collector deletes pods with their grace period.
func ownersOfRunningPods(w *world) {
	node, s := w.node("n"), w.secret("owner")
	owned := func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{ownerOf("v1", "Secret", s)} }
	w.running("running", node.Name, nil, true, owned)
	w.pod("unbound", "", nil, owned)
	w.did("delete of the owner", w.secretAPI().Delete(w.ctx(), "owner", metav1.DeleteOptions{}))
	w.eventually("the collector has come by", func() (string, bool) {
		p, err := w.podAPI().Get(w.ctx(), "running", metav1.GetOptions{})
		if err != nil {
			return outcome(err), false
		}
		_, err = w.podAPI().Get(w.ctx(), "unbound", metav1.GetOptions{})
		return "running" + w.fields(p, "metadata/deletionGracePeriodSeconds", "metadata/ownerReferences") + ", unbound " + outcome(err),
			p.DeletionTimestamp != nil && err != nil
	})
}

func ownersThatHadGoneBefore(w *world) {
	s, stays := w.secret("owner"), w.secret("stays")
	w.did("delete of the owner", w.secretAPI().Delete(w.ctx(), "owner", metav1.DeleteOptions{}))
	w.secret("owner")
	w.secret("late", func(late *corev1.Secret) { late.OwnerReferences = []metav1.OwnerReference{ownerOf("v1", "Secret", s)} })
	second := ownerOf("v1", "Secret", stays)
	second.Controller = nil
	w.secret("shared", func(late *corev1.Secret) {
		late.OwnerReferences = []metav1.OwnerReference{ownerOf("v1", "Secret", s), second}
	})
	w.eventually("the collector has come by", func() (string, bool) {
		_, late := w.secretAPI().Get(w.ctx(), "late", metav1.GetOptions{})
		shared, err := w.secretAPI().Get(w.ctx(), "shared", metav1.GetOptions{})
		if err != nil {
			return outcome(err), false
		}
		return "late " + outcome(late) + ", shared with owners " + ownerNames(shared), late != nil && len(shared.OwnerReferences) == 1
	})
}

// ownersAndFinalizers shows that an owner that waits for its finalizers still exists.
func ownersAndFinalizers(w *world) {
	s := w.secret("owner", func(s *corev1.Secret) { s.Finalizers = hold("a") })
	w.secret("dependent", func(d *corev1.Secret) {
		d.OwnerReferences, d.Finalizers = []metav1.OwnerReference{ownerOf("v1", "Secret", s)}, hold("b")
	})
	w.did("delete of the owner", w.secretAPI().Delete(w.ctx(), "owner", metav1.DeleteOptions{}))
	d, err := w.secretAPI().Get(w.ctx(), "dependent", metav1.GetOptions{})
	w.got("the dependent", d, err, deletion...)
	_, err = w.secretAPI().Patch(w.ctx(), "owner", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	w.did("the end of the owner", err)
	w.eventually("the collector has come by", func() (string, bool) {
		d, err := w.secretAPI().Get(w.ctx(), "dependent", metav1.GetOptions{})
		if err != nil {
			return outcome(err), true
		}
		return "dependent" + w.fields(d, deletion...), d.DeletionTimestamp != nil
	})
	_, err = w.secretAPI().Patch(w.ctx(), "dependent", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	w.did("the end of the dependent", err)
	_, err = w.secretAPI().Get(w.ctx(), "dependent", metav1.GetOptions{})
	w.did("get", err)
}
