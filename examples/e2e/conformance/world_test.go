// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
)

// world is what a scenario sees of a cluster, and where it writes down what it saw.
type world struct {
	t        testing.TB
	kube     kubernetes.Interface
	machines versioned.Interface
	// ns is a namespace of the scenario's own. Names of cluster-scoped objects start with it.
	ns string
	// patience is how long the world may take to do what it does by itself: nothing in memory, where controllers act
	// within the write; some seconds on a real cluster.
	patience time.Duration
	// tick lets what is due happen in memory; a real cluster ticks by itself.
	tick func()

	lines []string
	uids  map[types.UID]string
}

func (w *world) ctx() context.Context { return w.t.Context() }

// own makes the name of a cluster-scoped object.
func (w *world) own(name string) string { return w.ns + "-" + name }

// say adds one line to the transcript.
func (w *world) say(format string, args ...any) {
	w.lines = append(w.lines, w.normal(fmt.Sprintf(format, args...)))
}

// did records how a call ended.
func (w *world) did(what string, err error) { w.say("%s: %s", what, outcome(err)) }

// refused records the code and the reason of an error, but not its causes, which differ between releases.
func (w *world) refused(what string, err error) {
	code, _, _ := strings.Cut(outcome(err), " [")
	w.say("%s: %s", what, code)
}

// got records how a call ended and, if it went well, fields of the object that it returned. A field is a path with
// slashes, such as metadata/labels.
func (w *world) got(what string, obj runtime.Object, err error, fields ...string) {
	w.know(obj)
	line := what + ": " + outcome(err)
	if err == nil {
		line += w.fields(obj, fields...)
	}
	w.say("%s", line)
}

// version records whether a write made a new resource version.
func (w *world) version(what string, before, after runtime.Object) {
	if versionOf(w, before) == versionOf(w, after) {
		w.say("%s: resource version kept", what)
		return
	}
	w.say("%s: resource version changed", what)
}

func versionOf(w *world, obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	require.NoError(w.t, err)
	return m.GetResourceVersion()
}

// eventually records what look returns as soon as it says that it is what the scenario waits for.
func (w *world) eventually(what string, look func() (seen string, done bool)) {
	w.t.Helper()
	deadline := time.Now().Add(w.patience)
	for {
		w.tick()
		seen, done := look()
		if done {
			w.say("eventually %s: %s", what, seen)
			return
		}
		if !time.Now().Before(deadline) {
			w.say("eventually %s: NEVER, but %s", what, seen)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// know gives the uid of an object a name, in the order of appearance.
func (w *world) know(obj runtime.Object) {
	m, err := meta.Accessor(obj)
	if err != nil || m.GetUID() == "" {
		return
	}
	if w.uids == nil {
		w.uids = map[types.UID]string{}
	}
	if _, known := w.uids[m.GetUID()]; !known {
		w.uids[m.GetUID()] = "uid-" + strconv.Itoa(len(w.uids)+1)
	}
}

var (
	volatileTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	volatileUID  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// normal replaces what differs between two runs.
func (w *world) normal(line string) string {
	for uid, name := range w.uids {
		line = strings.ReplaceAll(line, string(uid), name)
	}
	line = strings.ReplaceAll(line, w.ns, "NS")
	return volatileUID.ReplaceAllString(volatileTime.ReplaceAllString(line, "TIME"), "UID")
}

// transcript is what happened, a line for each call.
func (w *world) transcript() string { return strings.Join(w.lines, "\n") + "\n" }

// outcome is what clients rely on of an answer: the code, the reason, the types and fields of the causes, what a
// budget says, and when to come again.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "not an API status: " + err.Error()
	}
	s := status.Status()
	text := fmt.Sprintf("%d %s", s.Code, s.Reason)
	if s.Details == nil {
		return text
	}
	causes := make([]string, 0, len(s.Details.Causes))
	for _, cause := range s.Details.Causes {
		c := string(cause.Type)
		if cause.Field != "" {
			c += " " + cause.Field
		}
		if cause.Type == "DisruptionBudget" {
			c += " " + strconv.Quote(cause.Message)
		}
		causes = append(causes, c)
	}
	slices.Sort(causes)
	causes = slices.Compact(causes) // some are said twice
	if len(causes) > 0 {
		text += " [" + strings.Join(causes, ", ") + "]"
	}
	if s.Details.RetryAfterSeconds > 0 {
		text += fmt.Sprintf(" retry after %d s", s.Details.RetryAfterSeconds)
	}
	return text
}

// fields renders fields of an object as JSON; what is absent is a dash.
func (w *world) fields(obj runtime.Object, paths ...string) string {
	data, err := json.Marshal(obj)
	require.NoError(w.t, err)
	var whole any
	require.NoError(w.t, json.Unmarshal(data, &whole))
	var text strings.Builder
	for _, path := range paths {
		value, short := whole, path
		for step := range strings.SplitSeq(path, "/") {
			inner, _ := value.(map[string]any)
			value, short = inner[step], step
		}
		rendered := []byte("-")
		if value != nil {
			rendered, err = json.Marshal(value)
			require.NoError(w.t, err)
		}
		text.WriteString(" " + short + "=" + string(rendered))
	}
	return text.String()
}
