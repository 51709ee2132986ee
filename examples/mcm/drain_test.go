// SPDX-License-Identifier: Apache-2.0

package mcm_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/drain"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/machinist-dev/machinist/drain/draintest"
)

// drained drains a Node with a bare pod, a pod of a DaemonSet and one with an emptyDir. It returns the names of the pods
// that are left, the requests with their grace periods, and the error.
func drained(t *testing.T, edit func(*drain.Options)) (left, sent []string, _ error) {
	t.Helper()
	cluster := draintest.New(draintest.Options{})
	require.NoError(t, cluster.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
	require.NoError(t, cluster.Add(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ds", UID: "ds"}}))
	for _, name := range []string{"bare", "daemon", "local"} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{NodeName: "n"}}
		switch name {
		case "daemon":
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "ds", UID: "ds", Controller: ptr.To(true)}}
		case "local":
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}
		require.NoError(t, cluster.Add(p))
	}
	client := cluster.Clientset()
	o := drain.NewDrainOptions(client, nil, 5*time.Minute, 1, 0, 0, "n", -1, false, true, true, true, io.Discard, io.Discard, nil, nil, nil, nil, nil, nil, nil, nil)
	edit(o)
	err := o.RunDrain(t.Context())
	node, read := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	require.NoError(t, read)
	require.False(t, node.Spec.Unschedulable, "the caller cordons")
	pods, read := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, read)
	for _, p := range pods.Items {
		left = append(left, p.Name)
	}
	for _, a := range client.Actions() {
		var o *metav1.DeleteOptions
		switch a := a.(type) {
		case clienttesting.DeleteActionImpl:
			o = &a.DeleteOptions
		case clienttesting.CreateActionImpl:
			if e, is := a.Object.(*policyv1.Eviction); is {
				o = e.DeleteOptions
			}
		}
		if o != nil {
			text := a.GetVerb()
			if o.GracePeriodSeconds != nil {
				text += fmt.Sprint(" ", *o.GracePeriodSeconds)
			}
			sent = append(sent, text)
		}
	}
	slices.Sort(sent)
	return left, sent, err
}

func TestRunDrain_Settings_AsInMCM(t *testing.T) {
	for name, tt := range map[string]struct {
		edit       func(*drain.Options)
		left, sent string
		fails      bool
	}{
		"grace of the pods": {func(*drain.Options) {}, "daemon", "2 create", false},
		"grace of zero":     {func(o *drain.Options) { o.GracePeriodSeconds = 0 }, "daemon", "2 create 0", false},
		"forced":            {func(o *drain.Options) { o.ForceDeletePods, o.GracePeriodSeconds = true, 30 }, "daemon", "2 delete 0", false},
		"DaemonSets":        {func(o *drain.Options) { o.IgnoreDaemonsets = false }, "bare daemon local", "", true},
		"local data":        {func(o *drain.Options) { o.DeleteLocalData = false }, "bare daemon local", "", true},
		"bare pods":         {func(o *drain.Options) { o.IgnorePodsWithoutControllers = false }, "bare daemon local", "", true},
		"filters": {func(o *drain.Options) {
			o.AdditionalPodFilters = []drain.AdditionalPodFilter{nil, func(p corev1.Pod) bool { return p.Name == "bare" }}
		}, "daemon local", "1 create", false},
	} {
		t.Run(name, func(t *testing.T) {
			left, sent, err := drained(t, tt.edit)
			require.Equal(t, tt.left, strings.Join(left, " "))
			text := ""
			if kinds := slices.Compact(slices.Clone(sent)); len(kinds) > 0 {
				text = fmt.Sprint(len(sent), " ", strings.Join(kinds, " "))
			}
			require.Equal(t, tt.sent, text)
			require.Equal(t, tt.fails, err != nil, err)
		})
	}
	require.Error(t, (&drain.Options{}).RunDrain(t.Context()))
}

// TestRunDrain_DoesNotEnd_FailsAfterTheTimeout drains a Node with an evictable pod whose evictions are refused, and one with a
// volume that stays attached.
func TestRunDrain_DoesNotEnd_FailsAfterTheTimeout(t *testing.T) {
	vm := driver.NewFakeDriver(true, "id", "n", "", nil, nil, nil)
	for name, tt := range map[string]struct {
		object runtime.Object
		edit   func(*drain.Options)
		said   string
		took   time.Duration
	}{
		"eviction": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bare"}, Spec: corev1.PodSpec{NodeName: "n"}}, func(*drain.Options) {}, "pod/default/bare", 5 * time.Minute},
		"volume":   {attached(), func(*drain.Options) {}, "", 5 * time.Minute},
		"skipped":  {attached(), func(o *drain.Options) { o.SkipVolumeDetach = true }, "", 0},
		"forced":   {attached(), func(o *drain.Options) { o.ForceDeletePods = true }, "", 0},
		"no VM":    {attached(), func(o *drain.Options) { o.Driver = nil }, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := draintest.New(draintest.Options{})
				require.NoError(t, cluster.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, tt.object))
				cluster.Inject(draintest.Fault{Kind: draintest.TooManyRequests, Resource: "pods", Subresource: "eviction"})
				var refusals bytes.Buffer
				o := drain.NewDrainOptions(cluster.Client(), nil, 5*time.Minute, 1, 0, 0, "n", -1, false, true, true, true, io.Discard, &refusals, vm, nil, nil, nil, nil, nil, nil, nil)
				tt.edit(o)
				began := time.Now()
				err := o.RunDrain(t.Context())
				require.Equal(t, tt.took > 0, err != nil, err)
				require.Equal(t, tt.took, time.Since(began))
				require.Equal(t, tt.said != "", refusals.Len() > 0)
				require.Contains(t, refusals.String(), tt.said)
			})
		})
	}
}

// attached returns a volume that is attached to the Node.
func attached() runtime.Object {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "va"},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv")}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true},
	}
}
