// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var listScenarios = []scenario{
	{"lists-and-selectors", listsAndSelectors},
	{"lists-of-versions", listsOfVersions},
}

func listsAndSelectors(w *world) {
	for i, name := range []string{"c", "a", "b"} {
		w.machine(name, func(m *v1alpha1.Machine) { m.Labels = map[string]string{"n": fmt.Sprint(i), name: "x"} })
	}
	for _, opts := range []metav1.ListOptions{
		{}, {LabelSelector: "n=1"}, {LabelSelector: "n in (0,2)"}, {LabelSelector: "!a"}, {LabelSelector: "n!=0,b"}, {LabelSelector: "missing"},
		{FieldSelector: "metadata.name=a"}, {FieldSelector: "metadata.name!=a"}, {FieldSelector: "metadata.namespace=" + w.ns},
		{FieldSelector: "metadata.namespace=other"}, {FieldSelector: "status.currentStatus.phase=Running"}, {FieldSelector: "spec.providerID="},
		{FieldSelector: "metadata.uid=x"}, {FieldSelector: "metadata.name=a", LabelSelector: "n=2"},
	} {
		w.say("machines %q %q: %s", opts.LabelSelector, opts.FieldSelector, w.machineNames(opts))
	}

	node := w.node("n")
	w.pod("bound", node.Name, labeled("a", "1"))
	w.pod("unbound", "", labeled("a", "1"))
	w.running("running", node.Name, labeled("a", "2"), true)
	for _, opts := range []metav1.ListOptions{
		{}, {FieldSelector: "spec.nodeName=" + node.Name}, {FieldSelector: "spec.nodeName="}, {FieldSelector: "spec.nodeName!="},
		{FieldSelector: "spec.nodeName=" + node.Name + ",status.phase=Running"}, {FieldSelector: "status.phase!=Running"},
		{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"},
		{FieldSelector: "spec.unheardOf=x"}, {FieldSelector: "metadata.name=bound", LabelSelector: "a"},
	} {
		list, err := w.podAPI().List(w.ctx(), opts)
		if err != nil {
			w.did(fmt.Sprintf("pods %q %q", opts.LabelSelector, opts.FieldSelector), err)
			continue
		}
		names := []string{}
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		w.say("pods %q %q: %v", opts.LabelSelector, opts.FieldSelector, names)
	}
	everywhere, err := w.kube.CoreV1().Pods("").List(w.ctx(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node.Name})
	w.say("pods everywhere: %s %d", outcome(err), len(everywhere.Items))
	_, err = w.nodeAPI().List(w.ctx(), metav1.ListOptions{FieldSelector: "spec.providerID=x"})
	w.did("nodes by provider id", err)
	_, err = w.secretAPI().List(w.ctx(), metav1.ListOptions{FieldSelector: "data.k=v"})
	w.did("secrets data.k=v", err)
	_, err = w.kube.StorageV1().VolumeAttachments().List(w.ctx(), metav1.ListOptions{FieldSelector: "spec.nodeName=x"})
	w.did("volume attachments by node", err)
	_, err = w.kube.PolicyV1().PodDisruptionBudgets(w.ns).List(w.ctx(), metav1.ListOptions{FieldSelector: "status.disruptionsAllowed=1"})
	w.did("budgets by status", err)
}

func listsOfVersions(w *world) {
	m := w.machine("m")
	w.machine("n")
	list, err := w.machineAPI().List(w.ctx(), metav1.ListOptions{})
	w.say("list: %s, has a version: %v, items have one: %v", outcome(err), list.ResourceVersion != "", list.Items[0].ResourceVersion == m.ResourceVersion)
	for _, opts := range []metav1.ListOptions{
		{ResourceVersion: "0"}, {ResourceVersion: list.ResourceVersion}, {ResourceVersion: list.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
	} {
		got, err := w.machineAPI().List(w.ctx(), opts)
		version := opts.ResourceVersion
		if version == list.ResourceVersion {
			version = "of the list"
		}
		w.say("list version %q match %q: %s %d", version, opts.ResourceVersionMatch, outcome(err), len(got.Items))
	}
	got, err := w.machineAPI().Get(w.ctx(), "m", metav1.GetOptions{ResourceVersion: "0"})
	w.got("get of any version", got, err, "metadata/name")
}
