// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"encoding/json"
	"slices"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

var rolloutScenarios = []scenario{
	{"rollout-sets", setsOfARollOut},
	{"rollout-deployment", deploymentOfARollOut},
	{"rollout-owners", setsThatAreTakenAndLetGo},
	{"rollout-nodes", nodesOfARollOut},
}

// machineDeployment makes a deployment that selects sets by a label.
func (w *world) machineDeployment(name string) *v1alpha1.MachineDeployment {
	w.t.Helper()
	d, err := w.machines.MachineV1alpha1().MachineDeployments(w.ns).Create(w.ctx(), &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: hold("d")},
		Spec:       v1alpha1.MachineDeploymentSpec{Replicas: 3, Selector: &metav1.LabelSelector{MatchLabels: labeled("name", name)}},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.know(d)
	return d
}

// setsOfARollOut writes sets as a deployment and their own controller do: the size and
// who goes in one write, of which only one can win.
func setsOfARollOut(w *world) {
	old := w.machineSet("old", 3)
	_, err := w.setAPI().Create(w.ctx(), &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "old"}}, metav1.CreateOptions{})
	w.did("create what exists", err)

	stale := old.DeepCopy()
	cut := old.DeepCopy()
	cut.Spec.Replicas = 1
	cut.Annotations = map[string]string{"machinist.dev/delete-first": "a,b"}
	cut, err = w.setAPI().Update(w.ctx(), cut, metav1.UpdateOptions{})
	w.got("size and names in one write", cut, err, "spec/replicas", "metadata/annotations", "metadata/generation")
	stale.Spec.Replicas = 5
	_, err = w.setAPI().Update(w.ctx(), stale, metav1.UpdateOptions{})
	w.did("size by who has not seen it", err)
	stale.Status.Replicas, stale.Status.ObservedGeneration = 3, 1
	_, err = w.setAPI().UpdateStatus(w.ctx(), stale, metav1.UpdateOptions{})
	w.did("status by who has not seen it", err)

	cut.Status.Replicas, cut.Status.ObservedGeneration = 3, cut.Generation
	cut.Spec.Replicas = 9
	reported, err := w.setAPI().UpdateStatus(w.ctx(), cut, metav1.UpdateOptions{})
	w.got("status", reported, err, "status/replicas", "status/observedGeneration", "spec/replicas", "metadata/generation")
	cut.Spec.Replicas = 0
	_, err = w.setAPI().Update(w.ctx(), cut, metav1.UpdateOptions{})
	w.did("size by who has not seen the status", err)

	gone := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &cut.UID, ResourceVersion: &cut.ResourceVersion}}
	w.did("deletion by who has not seen the status", w.setAPI().Delete(w.ctx(), "old", gone))
	gone.Preconditions.ResourceVersion = &reported.ResourceVersion
	w.did("deletion", w.setAPI().Delete(w.ctx(), "old", gone))
	reported.Spec.Replicas = 0
	_, err = w.setAPI().Update(w.ctx(), reported, metav1.UpdateOptions{})
	w.did("size of what is gone", err)
	again := w.machineSet("old", 1)
	reported.ResourceVersion = again.ResourceVersion
	_, err = w.setAPI().Update(w.ctx(), reported, metav1.UpdateOptions{})
	w.did("size of another set of that name", err)
}

// deploymentOfARollOut writes a deployment as an autoscaler, a user and its controller
// do.
func deploymentOfARollOut(w *world) {
	api := w.machines.MachineV1alpha1().MachineDeployments(w.ns)
	d := w.machineDeployment("workers")
	user := d.DeepCopy()
	trigger := v1alpha1.TriggerDeletionByMCM
	named, err := api.Patch(w.ctx(), "workers", types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+trigger+`":"a~2026-01-02T03:04:05Z"}},"spec":{"replicas":2,"rollbackTo":{"revision":1}}}`), metav1.PatchOptions{})
	w.got("names and replicas in one patch", named, err, "spec/replicas", "spec/rollbackTo", "metadata/generation")
	user.Spec.Paused = true
	_, err = api.Update(w.ctx(), user, metav1.UpdateOptions{})
	w.did("pause by who has not seen it", err)

	named.Spec.RollbackTo = nil
	delete(named.Annotations, trigger)
	named.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "2"}
	named, err = api.Update(w.ctx(), named, metav1.UpdateOptions{})
	w.got("done with", named, err, "spec/rollbackTo", "metadata/annotations", "metadata/generation")
	named.Status.ObservedGeneration, named.Status.Replicas = named.Generation, 2
	named.Status.Conditions = []v1alpha1.MachineDeploymentCondition{{Type: v1alpha1.MachineDeploymentProgressing, Status: v1alpha1.ConditionTrue, Reason: v1alpha1.MachineSetUpdated}}
	after, err := api.UpdateStatus(w.ctx(), named, metav1.UpdateOptions{})
	w.got("status with the version of that write", after, err, "status/observedGeneration", "status/replicas", "metadata/generation")
	_, err = api.UpdateStatus(w.ctx(), named, metav1.UpdateOptions{})
	w.did("the same status with the version before", err)

	w.did("deletion", api.Delete(w.ctx(), "workers", metav1.DeleteOptions{}))
	going, err := api.Get(w.ctx(), "workers", metav1.GetOptions{})
	w.got("while it is guarded", going, err, "metadata/generation", "metadata/finalizers")
	going.Finalizers = nil
	_, err = api.Update(w.ctx(), going, metav1.UpdateOptions{})
	w.did("the last finalizer", err)
	_, err = api.UpdateStatus(w.ctx(), going, metav1.UpdateOptions{})
	w.did("status of what is gone", err)
}

// setsThatAreTakenAndLetGo writes the owner references of claims, beside those of another owner.
func setsThatAreTakenAndLetGo(w *world) {
	owner := w.machineDeployment("workers")
	owner.Spec.Strategy.Type, owner.Spec.Template.Labels = v1alpha1.RecreateMachineDeploymentStrategyType, labeled("name", "workers")
	owner.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}
	other := w.secret("other")
	set := w.machineSet("set", 1)
	set.Labels = labeled("name", "workers")
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: other.Name, UID: other.UID}}
	set, err := w.setAPI().Update(w.ctx(), set, metav1.UpdateOptions{})
	w.got("it has an owner, and no controller", set, err, "metadata/ownerReferences")

	write := func(what string, changes []machinist.Update) *v1alpha1.MachineSet {
		require.Len(w.t, changes, 1)
		got, err := w.setAPI().Update(w.ctx(), changes[0].Object.(*v1alpha1.MachineSet), metav1.UpdateOptions{})
		w.got(what, got, err, "metadata/ownerReferences", "metadata/annotations", "metadata/generation")
		return got
	}
	claim := func(set *v1alpha1.MachineSet) machineset.Claims[*v1alpha1.MachineSet] {
		return deployment.Claim(owner, []*v1alpha1.MachineSet{set})
	}
	before := claim(set).Adopt
	set = write("taken", before)
	write("taken by who has not seen it", before)
	set.Labels = nil
	set, err = w.setAPI().Update(w.ctx(), set, metav1.UpdateOptions{})
	w.got("it is not selected any more", set, err, "metadata/labels")
	release := claim(set).Release
	set = write("let go", release)
	write("let go by who has not seen it", release)
	set.Labels = labeled("name", "workers")
	set, err = w.setAPI().Update(w.ctx(), set, metav1.UpdateOptions{})
	w.got("it is selected again", set, err, "metadata/labels")
	again := claim(set).Adopt
	w.did("deletion", w.setAPI().Delete(w.ctx(), "set", metav1.DeleteOptions{}))
	write("taken when it is gone", again)
	w.machineSet("set", 1)
	write("taken when there is another of that name", again)
}

// nodesOfARollOut marks a Node as a deployment does: what others write at the same
// time makes the write fail, and is kept when it is repeated.
func nodesOfARollOut(w *world) {
	stale := w.node("n", func(n *corev1.Node) {
		n.Labels = map[string]string{"a": "1", "c": "3"}
		n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
	})
	write := func(before *corev1.Node, edit func(*corev1.Node)) (*corev1.Node, error) {
		after := before.DeepCopy()
		edit(after)
		base := before.DeepCopy()
		base.UID, base.ResourceVersion = "", "" // they are preconditions
		old, err := json.Marshal(base)
		require.NoError(w.t, err)
		changed, err := json.Marshal(after)
		require.NoError(w.t, err)
		patch, err := strategicpatch.CreateTwoWayMergePatch(old, changed, base)
		require.NoError(w.t, err)
		return w.nodeAPI().Patch(w.ctx(), before.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	}
	marked := func(n *corev1.Node) {
		n.Annotations = map[string]string{v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey: "true"}
		n.Labels[v1alpha1.LabelKeyNodeCandidateForUpdate] = "true"
		delete(n.Labels, "c")
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: v1alpha1.PreferNoScheduleKey, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule})
		n.Spec.Unschedulable = true
	}
	free := func(n *corev1.Node) {
		n.Annotations = nil
		delete(n.Labels, v1alpha1.LabelKeyNodeCandidateForUpdate)
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.PreferNoScheduleKey })
		n.Spec.Unschedulable = false
	}
	_, err := w.nodeAPI().Patch(w.ctx(), stale.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"b":"2"}}}`), metav1.PatchOptions{})
	w.did("another client writes a label", err)
	_, err = write(stale, marked)
	w.did("marked by who has not seen it", err)
	for _, step := range []struct {
		what string
		edit func(*corev1.Node)
	}{{"marked", marked}, {"given back", free}} {
		var now *corev1.Node
		for range 10 { // the controllers of a real cluster write, too
			now, err = w.nodeAPI().Get(w.ctx(), stale.Name, metav1.GetOptions{})
			require.NoError(w.t, err)
			if now, err = write(now, step.edit); !apierrors.IsConflict(err) {
				break
			}
		}
		w.did(step.what, err)
		_, held := now.Annotations[v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey]
		w.say("labels a=%s b=%s c=%s candidate=%s, held %v, cordoned %v, taints%s", now.Labels["a"], now.Labels["b"], now.Labels["c"],
			now.Labels[v1alpha1.LabelKeyNodeCandidateForUpdate], held, now.Spec.Unschedulable, taintsOf(now))
	}
	w.did("deletion", w.nodeAPI().Delete(w.ctx(), stale.Name, metav1.DeleteOptions{}))
	_, err = write(stale, marked)
	w.did("marked when it is gone", err)
}
