// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// tokensOf holds when so many bootstrap tokens exist that were made for a machine.
func tokensOf(s *env.Env, uid types.UID, want int) env.Condition {
	return func(ctx context.Context) (string, error) {
		list, err := s.Client.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.TokenOwnerLabel + "=" + string(uid)})
		if err != nil || len(list.Items) != want {
			return fmt.Sprintf("not %d bootstrap tokens", want), err
		}
		return "", nil
	}
}

func TestJoin_Never_MachineFailsAndIsReplaced(t *testing.T) {
	t.Parallel()
	const patient = 10 // seconds
	s := cluster.Set(t, "joinless", fastOptions())
	s.Nodes.SilenceNext(1)
	s.StartManager(t, "manager")
	d := s.Deployment("workers", "small", 1, 1, 0)
	d.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineCreationTimeout: seconds(patient)}
	require.NoError(t, s.Class(t.Context(), "small"))
	_, err := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Create(t.Context(), d, metav1.CreateOptions{})
	require.NoError(t, err)

	var name string
	s.Wait(t, patience, "a VM is made", func(context.Context) (string, error) {
		silent := s.Nodes.Silent()
		if len(silent) == 0 {
			return "no VM", nil
		}
		name = strings.TrimPrefix(silent[0], s.NodeName(""))
		return "", nil
	})
	s.Wait(t, patience, "its machine waits for it", in(s, name, v1alpha1.MachinePending))
	m := machine(t, s, name)
	s.Wait(t, patience, "it has a token", tokensOf(s, m.UID, 1))
	s.Wait(t, patience, "the machine is gone", gone(s, name))
	s.Wait(t, patience, "its token too", tokensOf(s, m.UID, 0))
	s.Wait(t, patience, "it is replaced", s.Complete("workers"))
	s.Wait(t, patience, "its phases", went(s, m.UID, "Pending", "Failed", "Terminating"))
	for _, c := range s.AuditLog().Changes {
		seen, ok := c.Object.(*v1alpha1.Machine)
		if !ok || seen.UID != m.UID || seen.Status.CurrentStatus.Phase != v1alpha1.MachineFailed {
			continue
		}
		failed := seen.Status.CurrentStatus.LastUpdateTime.Sub(m.CreationTimestamp.Time)
		require.GreaterOrEqual(t, failed, (patient-1)*time.Second, "times are cut to seconds")
		require.Contains(t, seen.Status.LastOperation.Description, "failed to join the cluster")
		require.Equal(t, v1alpha1.MachineStateFailed, seen.Status.LastOperation.State)
	}
	s.Wait(t, patience, "how it went", tells(s, "Machine", name, "Failed"))
	removeAll(t, s)
}

func TestJoin_FailedMachineWithoutSet_KeepsVMWithoutToken(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "alone", fastOptions())
	s.Nodes.Silence(s.NodeName("a"), true)
	s.StartManager(t, "manager")
	require.NoError(t, s.Class(t.Context(), "small"))
	hurried := s.Machine("a", "small")
	hurried.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineCreationTimeout: seconds(5)}
	m := create(t, s, hurried)
	s.Wait(t, patience, "its VM has a token", func(context.Context) (string, error) {
		if s.TokenOf("a") == "" {
			return "no token in the user data", nil
		}
		return "", nil
	})
	s.Wait(t, patience, "it fails", in(s, "a", v1alpha1.MachineFailed))
	s.Wait(t, patience, "its token is gone", tokensOf(s, m.UID, 0))
	require.Len(t, s.Cloud.Snapshot().Of("a").VMs, 1)
	require.Equal(t, v1alpha1.MachineFailed, machine(t, s, "a").Status.CurrentStatus.Phase)
	removeAll(t, s)
}

// who returns the user of a bootstrap token, as the API server says.
func who(ctx context.Context, t *testing.T, token string) (authenticationv1.UserInfo, error) {
	t.Helper()
	config := rest.AnonymousClientConfig(cluster.ControlPlane.Config())
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

func TestBootstrapToken_Joined_IsRevoked(t *testing.T) {
	t.Parallel()
	const group = "system:bootstrappers:workers"
	s := cluster.Set(t, "token", fastOptions())
	s.Nodes.Silence(s.NodeName("a"), true)
	s.StartManager(t, "manager", "--bootstrap-token-auth-extra-groups="+group)
	ctx := t.Context()
	require.NoError(t, s.Class(ctx, "small"))
	m := create(t, s, s.Machine("a", "small"))
	s.Wait(t, patience, "it waits for its VM", in(s, "a", v1alpha1.MachinePending))
	s.Wait(t, patience, "it has a token", tokensOf(s, m.UID, 1))

	token := s.TokenOf("a")
	require.NotEmpty(t, token, "the VM was made with it")
	id, _, _ := strings.Cut(token, ".")
	secret, err := s.Client.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, "bootstrap-token-"+id, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.SecretTypeBootstrapToken, secret.Type)
	require.Equal(t, m.UID, types.UID(secret.Labels[v1alpha1.TokenOwnerLabel]))
	expires, err := time.Parse(time.RFC3339, string(secret.Data["expiration"]))
	require.NoError(t, err)
	require.WithinDuration(t, m.CreationTimestamp.Add(20*time.Minute), expires, 3*time.Minute, "it ends with the time to join")

	user, err := who(ctx, t, token)
	require.NoError(t, err)
	require.Equal(t, "system:bootstrap:"+id, user.Username)
	require.Contains(t, user.Groups, "system:bootstrappers")
	require.Contains(t, user.Groups, group)
	_, err = who(ctx, t, token[:len(token)-1]+"!")
	require.True(t, apierrors.IsUnauthorized(err), "%v", err)

	s.Nodes.Silence(s.NodeName("a"), false)
	s.Wait(t, patience, "it joins", running(s, "a"))
	s.Wait(t, patience, "its token is gone", tokensOf(s, m.UID, 0))
	s.Wait(t, patience, "the door is closed", func(ctx context.Context) (string, error) { // the API server remembers for some seconds
		_, err := who(ctx, t, token)
		switch {
		case err == nil:
			return "the token still opens the door", nil
		case apierrors.IsUnauthorized(err):
			return "", nil
		default:
			return "nothing is known", err
		}
	})
	requests, err := s.Requests(ctx)
	require.NoError(t, err)
	for _, r := range requests {
		if r.Resource == "secrets" && r.Namespace == metav1.NamespaceSystem {
			require.Contains(t, []string{"list", "watch", "create", "delete"}, r.Verb, "%v", r)
		}
	}
	removeAll(t, s)
}

func TestBootstrapToken_ManyMachines_OneEach(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "tokens", fastOptions())
	seen := make(chan string, 100)
	t.Cleanup(s.Cloud.Subscribe(func(e drivertest.Event) {
		if e.Kind == drivertest.VMCreated {
			seen <- s.TokenOf(e.VM.Machine)
		}
	}))
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 8, 1, 0))
	own := map[string]bool{}
	for range 8 {
		own[<-seen] = true
	}
	require.Len(t, own, 8)
	require.NotContains(t, own, "")
	s.Wait(t, patience, "all tokens are gone", func(ctx context.Context) (string, error) {
		tokens, err := s.Tokens(ctx)
		if err != nil || len(tokens) > 0 {
			return fmt.Sprintf("%d tokens are left", len(tokens)), err
		}
		return "", nil
	})
	removeAll(t, s)
}

// TestMachine_SecretMissing_IsReportedAndGoesOn has a class whose Secret does not exist. Its machine
// says so, another one is deleted, and the first runs when the Secret exists.
func TestMachine_SecretMissing_IsReportedAndGoesOn(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "invalid", fastOptions())
	s.StartManager(t, "manager")
	_, err := s.Machines.MachineV1alpha1().MachineClasses(s.Namespace).Create(t.Context(), s.Cloud.MachineClass(s.Namespace, "small"), metav1.CreateOptions{})
	require.NoError(t, err)
	create(t, s, s.Machine("a", "small"))
	create(t, s, s.Machine("b", "small"))
	requested := func(m *v1alpha1.Machine) *corev1.NodeCondition {
		i := slices.IndexFunc(m.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == v1alpha1.MachineVMRequested })
		if i < 0 {
			return nil
		}
		return &m.Status.Conditions[i]
	}
	says := func(name string) env.Condition {
		return func(ctx context.Context) (string, error) {
			m, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "the machine", err
			}
			if c := requested(m); c == nil || c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, `secret "small" not found`) {
				return fmt.Sprintf("it says %v", c), nil
			}
			return "", nil
		}
	}
	s.Wait(t, patience, "the machine says what is missing", says("a"))
	s.Wait(t, patience, "and the other", says("b"))
	s.Wait(t, patience, "an event says so, too", func(ctx context.Context) (string, error) {
		list, err := s.Client.CoreV1().Events(s.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Machine,involvedObject.name=a"})
		if err != nil {
			return "nothing is known", err
		}
		for _, e := range list.Items {
			if e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, `secret "small" not found`) {
				return "", nil
			}
		}
		return fmt.Sprintf("none of %d events does", len(list.Items)), nil
	})
	require.NoError(t, s.Machines.MachineV1alpha1().Machines(s.Namespace).Delete(t.Context(), "b", metav1.DeleteOptions{}))
	s.Wait(t, patience, "one without a VM needs no Secret to go", func(ctx context.Context) (string, error) {
		_, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).Get(ctx, "b", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "it is still there", err
	})
	require.True(t, s.Cloud.Snapshot().Empty(), "no VM is made")

	_, err = s.Client.CoreV1().Secrets(s.Namespace).Create(t.Context(), s.Cloud.Secret(s.Namespace, "small"), metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "it runs", running(s, "a"))
	require.Nil(t, requested(machine(t, s, "a")), "nothing is missing any more")
	removeAll(t, s)
}
