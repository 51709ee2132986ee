// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestLog_Verbosity_Filters(t *testing.T) {
	notes := []controllers.Note{
		{Text: "acts", Acts: true, Waits: true},
		{Text: "fails", Err: errors.New("no")},
		{Text: "waits", Waits: true},
		{Text: "rests"},
	}
	for verbosity, want := range map[int]string{
		-1: "acts fails", 0: "acts fails", 1: "acts fails", 2: "acts fails waits", 3: "acts fails waits", 4: "acts fails waits rests",
	} {
		var out bytes.Buffer
		log := observer(NewLogger(&out, "json", verbosity))
		for _, n := range notes {
			log(n)
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			var entry struct{ Decision string }
			require.NoError(t, json.Unmarshal([]byte(line), &entry))
			got = append(got, entry.Decision)
		}
		require.Equal(t, want, strings.Join(got, " "), verbosity)
	}
}

func TestLog_Line_NamesTheObject(t *testing.T) {
	var out bytes.Buffer
	observer(NewLogger(&out, "text", 0))(controllers.Note{Kind: "machine", Key: "n/m", Err: errors.New("no")})
	require.Contains(t, out.String(), "level=ERROR msg=failed kind=machine key=n/m err=no\n")
}

func TestLog_ClientGo_SameLog(t *testing.T) {
	before, level := slog.Default(), klog.NewKlogr()
	defer func() {
		slog.SetDefault(before)
		klog.SetLogger(level)
		klog.ClearLogger()
	}()
	var out bytes.Buffer
	setUpLogs(NewLogger(&out, "json", 2), 2)
	klog.Background().V(2).Info("two")
	klog.Background().V(3).Info("three")
	klog.Errorf("old %s", "style")
	require.Contains(t, out.String(), `"msg":"two"`)
	require.NotContains(t, out.String(), "three")
	require.Contains(t, out.String(), `"msg":"old style"`)
}

func TestRunContext_LoggerInContext_IsUsed(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	require.Equal(t, log, loggerOf(logr.NewContextWithSlogLogger(t.Context(), log)))
	require.Equal(t, slog.Default(), loggerOf(t.Context()))
}

func TestRun_End_EventsAreFlushed(t *testing.T) {
	client := fake.NewClientset()
	e := newEvents(t.Context(), client, "c")
	var recorder record.EventRecorder = e.recorder
	m := &v1alpha1.Machine{}
	m.Namespace, m.Name, m.UID = "n", "m", "1"
	for _, reason := range []string{"Pending", "Running", "Running"} {
		recorder.Event(m, "Normal", reason, "text")
	}
	e.close()
	var verbs []string
	for _, a := range client.Actions() {
		verbs = append(verbs, a.GetVerb())
	}
	require.Equal(t, []string{"create", "create", "patch"}, verbs, "the last one is counted")
	recorder.Event(m, "Normal", "Late", "is lost, and no harm")
}

// TestEvents_ManyMachinesFail_EventOfTheSetIsWritten lets more machines fail than a queue holds, while no Event can be
// written.
func TestEvents_ManyMachinesFail_EventOfTheSetIsWritten(t *testing.T) {
	client := fake.NewClientset()
	var written atomic.Int32
	var set atomic.Bool
	answers := make(chan struct{})
	client.PrependReactor("create", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
		<-answers
		e := a.(clienttesting.CreateAction).GetObject().(*corev1.Event)
		set.CompareAndSwap(false, e.InvolvedObject.Kind == "MachineSet")
		written.Add(1)
		return true, e, nil
	})
	e := newEvents(t.Context(), client, "c")
	const machines = 2000
	for i := range machines {
		e.recorder.Event(&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", i), UID: types.UID(fmt.Sprint(i))}}, "Warning", "Failed", "text")
	}
	e.recorder.Event(&v1alpha1.MachineSet{}, "Warning", "ReplacementsHeld", "a zone fails")
	close(answers)
	e.close()
	require.True(t, set.Load())
	require.Less(t, written.Load(), int32(machines))
}

func TestLog_AnyVerbosity_NoRequestBodies(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { setUpLogs(before, 0) })
	for _, verbosity := range []int{7, 8, 10, 1 << 20} {
		setUpLogs(slog.New(slog.DiscardHandler), verbosity)
		require.True(t, klog.V(7).Enabled())
		require.False(t, klog.V(8).Enabled(), "bodies hold Secrets")
	}
}
