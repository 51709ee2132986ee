// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes"
	k8sscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/drain/draintest"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newCluster returns a cluster on a fake clock, with a client.
func newCluster(t *testing.T, change ...func(*draintest.Options)) (*draintest.Cluster, kubernetes.Interface, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(start)
	scheme := runtime.NewScheme()
	require.NoError(t, k8sscheme.AddToScheme(scheme))
	scheme.AddKnownTypes(widgetGV, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, widgetGV)
	opts := draintest.Options{Clock: clock, Scheme: scheme, Kinds: []draintest.Kind{widgetKind}}
	for _, f := range change {
		f(&opts)
	}
	c := draintest.New(opts)
	return c, c.Client(), clock
}

// Widget is a custom kind with a status subresource, like those of generated API packages.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec,omitempty"`
	Status            WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Size  int               `json:"size,omitempty"`
	Parts map[string]string `json:"parts,omitempty"`
}

type WidgetStatus struct {
	Phase string      `json:"phase,omitempty"`
	Since metav1.Time `json:"since,omitempty"`
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

func (w *Widget) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if w.Spec.Parts != nil {
		out.Spec.Parts = map[string]string{}
		maps.Copy(out.Spec.Parts, w.Spec.Parts)
	}
	w.Status.Since.DeepCopyInto(&out.Status.Since)
	return &out
}

func (l *WidgetList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Widget, 0, len(l.Items))
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Widget))
	}
	return &out
}

var (
	widgetGV   = schema.GroupVersion{Group: "example.org", Version: "v1"}
	widgetKind = draintest.Kind{GroupVersionKind: widgetGV.WithKind("Widget")}
)

type widgetClient = gentype.FakeClientWithList[*Widget, *WidgetList]

// widgetsOf attaches a clientset of the custom kind, like those of client-gen.
func widgetsOf(c *draintest.Cluster, namespace string) *widgetClient {
	var f clienttesting.Fake
	c.Attach(&f)
	return gentype.NewFakeClientWithList[*Widget, *WidgetList](
		&f, namespace, widgetGV.WithResource("widgets"), widgetGV.WithKind("Widget"),
		func() *Widget { return &Widget{} }, func() *WidgetList { return &WidgetList{} },
		func(dst, src *WidgetList) { dst.ListMeta = src.ListMeta },
		func(list *WidgetList) []*Widget { return gentype.ToPointerSlice(list.Items) },
		func(list *WidgetList, items []*Widget) { list.Items = gentype.FromPointerSlice(items) },
	)
}

func widget(name string) *Widget {
	return &Widget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Spec: WidgetSpec{Size: 1}}
}

// runningPod returns a running pod of a node.
func runningPod(name, node string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: new(int64(30))},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func ownedBy(pod *corev1.Pod, owner metav1.Object, kind string) *corev1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true),
	}}
	return pod
}

func minAvailable(name string, value intstr.IntOrString, labels map[string]string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &value, Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
}

// exists reports whether a pod exists.
func exists(t *testing.T, client kubernetes.Interface, name string) bool {
	t.Helper()
	_, err := client.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{})
	require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	return err == nil
}

func eviction(name string) *policyv1.Eviction {
	return &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
}

var web = map[string]string{"app": "web"}

func TestClientset_Several_ShareOneStore(t *testing.T) {
	c, client, _ := newCluster(t)
	other := c.Client()
	_, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = other.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = widgetsOf(c, "ns").Create(t.Context(), widget("w"), metav1.CreateOptions{})
	require.NoError(t, err)
	got, err := widgetsOf(c, "ns").Get(t.Context(), "w", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, got.Spec.Size)
}

func TestClientset_ReturnedObject_IsACopy(t *testing.T) {
	c, _, _ := newCluster(t)
	widgets := widgetsOf(c, "ns")
	sent := widget("w")
	sent.Spec.Parts = map[string]string{"a": "1"}
	got, err := widgets.Create(t.Context(), sent, metav1.CreateOptions{})
	require.NoError(t, err)
	sent.Spec.Parts["a"] = "sent"
	got.Spec.Parts["a"] = "returned"
	read, err := widgets.Get(t.Context(), "w", metav1.GetOptions{})
	require.NoError(t, err)
	read.Spec.Parts["a"] = "read"
	list, err := widgets.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	list.Items[0].Spec.Parts["a"] = "listed"
	after, _ := c.History()[0].After.(*Widget)
	after.Spec.Parts["a"] = "history"
	read, err = widgets.Get(t.Context(), "w", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "1", read.Spec.Parts["a"])
	last, _ := c.History()[0].After.(*Widget)
	require.Equal(t, "1", last.Spec.Parts["a"])
}

func TestClientset_UnservedResource_NotFound(t *testing.T) {
	c, _, _ := newCluster(t, func(o *draintest.Options) { o.Kinds = nil })
	_, err := widgetsOf(c, "ns").Get(t.Context(), "w", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestCluster_SameSeed_SameHistory(t *testing.T) {
	run := func() []string {
		c, client, _ := newCluster(t, func(o *draintest.Options) { o.Seed = 7 })
		for i := range 5 {
			pod := runningPod(fmt.Sprint("web-", i), "n1", web)
			_, err := client.CoreV1().Pods("ns").Create(t.Context(), pod, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		var lines []string
		for _, w := range c.History() {
			lines = append(lines, w.String()+string(w.UID))
		}
		return lines
	}
	require.Equal(t, run(), run())
}

func TestAdd_Objects_AreUnchanged(t *testing.T) {
	c, client, _ := newCluster(t)
	require.NoError(t, c.Add(runningPod("p", "n1", web), &corev1.NodeList{Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u"}}}}, widget("w")))
	pod, err := client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.PodRunning, pod.Status.Phase)
	node, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, "u", node.UID)
	require.Error(t, c.Add(nil))
	require.Error(t, c.Add(&corev1.Node{}))
	require.Error(t, c.Add(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "x"}}))
}
