// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/examples/rigs/audit"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// keepMachines has the API server refuse every deletion of a machine of an environment until the
// returned function is called.
func keepMachines(t *testing.T, s *env.Env) (end func()) {
	t.Helper()
	ctx, api := t.Context(), s.Client.AdmissionregistrationV1()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Delete},
			Rule:       admissionv1.Rule{APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"machines"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: fmt.Sprintf("request.namespace != %q", s.Namespace)}},
	}}
	_, err := api.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = api.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: s.Namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	after := context.WithoutCancel(ctx) // it is also called when the test is over
	end = func() {
		for _, err := range []error{
			api.ValidatingAdmissionPolicyBindings().Delete(after, s.Namespace, metav1.DeleteOptions{}),
			api.ValidatingAdmissionPolicies().Delete(after, s.Namespace, metav1.DeleteOptions{}),
		} {
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	}
	t.Cleanup(end)
	name := machines(t, s)[0].Name
	s.Wait(t, patience, "no machine can be deleted", func(ctx context.Context) (string, error) {
		err := s.Machines.MachineV1alpha1().Machines(s.Namespace).Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return "a deletion is allowed", nil
		}
		return "", nil
	})
	return end
}

// frozen holds when label and condition of the one set and of the deployment report whether
// they are frozen.
func frozen(s *env.Env, deployment string, want bool) env.Condition {
	return func(ctx context.Context) (string, error) {
		d, err := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Get(ctx, deployment, metav1.GetOptions{})
		if err != nil {
			return "the deployment", err
		}
		sets, err := s.Machines.MachineV1alpha1().MachineSets(s.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(sets.Items) != 1 {
			return "not one set", err
		}
		set := &sets.Items[0]
		said := []bool{
			d.Labels[v1alpha1.FreezeLabelKey] == "True", set.Labels[v1alpha1.FreezeLabelKey] == "True",
			slices.ContainsFunc(d.Status.Conditions, func(c v1alpha1.MachineDeploymentCondition) bool {
				return c.Type == v1alpha1.MachineDeploymentFrozen && c.Status == v1alpha1.ConditionTrue
			}),
			slices.ContainsFunc(set.Status.Conditions, func(c v1alpha1.MachineSetCondition) bool {
				return c.Type == v1alpha1.MachineSetFrozen && c.Status == v1alpha1.ConditionTrue
			}),
		}
		if slices.Contains(said, !want) {
			return fmt.Sprintf("frozen %t is not what labels and conditions say: %v", want, said), nil
		}
		return "", nil
	}
}

func TestOvershoot_MachinesAddedByHand_FrozenRepairedUnfrozen(t *testing.T) {
	t.Parallel()
	o := fastOptions()
	o.Bounds = audit.Options{ByHand: 4}
	o.Flags = append(o.Flags, "--machine-safety-overshooting-period=2s")
	o.AllowDenied = func(r controlplane.Request) bool { // the policy of this scenario
		return r.Verb == "delete" && r.Resource == "machines" && (r.Code == http.StatusUnprocessableEntity || r.Code == http.StatusForbidden)
	}
	s := cluster.Set(t, "overshoot", o)
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 1, 1, 0))
	complete := time.Now()
	s.Wait(t, patience, "requests under way have ended", func(context.Context) (string, error) {
		if time.Since(complete) < 15*time.Second {
			return "15 s are not over", nil
		}
		return "", nil
	})

	end := keepMachines(t, s)
	sets, err := s.Machines.MachineV1alpha1().MachineSets(s.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, sets.Items, 1)
	set := sets.Items[0]
	for i := range 4 {
		m := s.Machine(fmt.Sprint("byhand-", i), "small")
		m.Labels = set.Spec.Template.Labels
		create(t, s, m)
	}
	s.Wait(t, patience, "set and deployment are frozen", frozen(s, "workers", true))
	change(t, s, "workers", `{"spec":{"template":{"metadata":{"annotations":{"generation":"two"}}}}}`)
	s.Wait(t, patience, "the deployment says why it does not go on", func(ctx context.Context) (string, error) {
		have, err := told(ctx, s, "MachineDeployment", "workers")
		if err != nil || !slices.Contains(have, "FrozeMachineDeployment") {
			return fmt.Sprintf("told: %v", have), err
		}
		return "", nil
	})
	require.Len(t, machines(t, s), 5)

	end()
	s.Wait(t, patience, "it is repaired and goes on", func(ctx context.Context) (string, error) {
		d, err := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Get(ctx, "workers", metav1.GetOptions{})
		if err != nil || d.Labels[v1alpha1.FreezeLabelKey] != "" {
			return "the deployment is frozen", err
		}
		return "", nil
	})
	s.Wait(t, patience, "the roll-out that waited", s.Complete("workers"))
	s.Wait(t, patience, "the set tells of both", func(ctx context.Context) (string, error) {
		have, err := told(ctx, s, "MachineSet", set.Name)
		if err != nil || !slices.Contains(have, "FrozeMachineSet") || !slices.Contains(have, "UnfrozeMachineSet") {
			return fmt.Sprintf("told: %v", have), err
		}
		return "", nil
	})
	removeAll(t, s)
}

// TestUnmanaged_NodeJoinedByHand_MarkedUntilItsMachineAppears is not parallel: Nodes have
// no namespace, and the time-out of its manager is short.
func TestUnmanaged_NodeJoinedByHand_MarkedUntilItsMachineAppears(t *testing.T) { //nolint:paralleltest // see above
	o := fastOptions()
	o.Flags = append(o.Flags, "--machine-creation-timeout=10s")
	s := cluster.Set(t, "unmanaged", o)
	s.StartManager(t, "manager")
	_, err := s.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: s.NodeName("late"), Annotations: map[string]string{"example.com/theirs": "theirs"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	joined := time.Now()
	marked := func(want bool) env.Condition {
		return func(ctx context.Context) (string, error) {
			n, err := s.Client.CoreV1().Nodes().Get(ctx, s.NodeName("late"), metav1.GetOptions{})
			if err != nil {
				return "the Node", err
			}
			if n.Annotations["example.com/theirs"] != "theirs" {
				t.Error("an annotation of another is lost")
			}
			if _, have := n.Annotations[v1alpha1.NotManagedByMCM]; have != want {
				return fmt.Sprintf("marked: %t", have), nil
			}
			return "", nil
		}
	}
	s.Wait(t, patience, "the Node is marked", marked(true))
	require.Greater(t, time.Since(joined), 9*time.Second, "times are cut to seconds")
	require.NoError(t, s.Class(t.Context(), "small"))
	create(t, s, s.Machine("late", "small"))
	s.Wait(t, patience, "its machine runs", running(s, "late"))
	s.Wait(t, patience, "the mark is taken back", marked(false))
	removeAll(t, s)
}
