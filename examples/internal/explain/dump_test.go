// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/internal/explain"
)

// at is the time of the decisions on dumps without a time.
var at = time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC)

const (
	oneMachine = `
apiVersion: machine.sapcloud.io/v1alpha1
kind: Machine
metadata: {name: m, namespace: shop, uid: u, creationTimestamp: "2026-01-01T00:00:00Z", finalizers: [machine.sapcloud.io/machine-controller-manager]}
spec: {class: {kind: MachineClass, name: small}}
status: {currentStatus: {lastUpdateTime: "2026-01-01T00:01:00Z"}, conditions: [{lastHeartbeatTime: "2026-01-01T00:02:00Z"}]}
`
	emptyClasses = `{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineClassList","items":[]}`
)

// explained returns the text about machine m in the dump of files.
func explained(t *testing.T, files map[string]string, at time.Time) (string, error) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		file := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	v, err := explain.Dump(t.Context(), folder, "", at)
	if err != nil {
		return "", err
	}
	r, err := v.Explain(t.Context(), "machine/m")
	return r.String(), err
}

func TestDump_NoClasses_SaysNotInTheDumpAndGuessesNothing(t *testing.T) {
	text, err := explained(t, map[string]string{"a/m.yaml": oneMachine, "notes.txt": "no object"}, time.Time{})
	require.NoError(t, err)
	require.Contains(t, text, "machine/shop/m, at 2026-01-01T00:02:00Z, from a dump\n", "the newest time")
	require.Contains(t, text, "\nnot in the dump: machinedeployments, machinesets, machineclasses, secrets, nodes, pods, poddisruptionbudgets, volumeattachments, persistentvolumeclaims, secrets of kube-system\n")
	require.Contains(t, text, "the class was not read")
}

func TestDump_EmptyListOfClasses_ClassIsMissing(t *testing.T) {
	text, err := explained(t, map[string]string{"m.yml": "# 2026-01-01T00:10:00Z\n---" + oneMachine, "c.json": emptyClasses}, time.Time{})
	require.NoError(t, err)
	require.Contains(t, text, "machine/shop/m, at 2026-01-01T00:10:00Z, from a dump\n", "the time of the comment")
	require.NotContains(t, text, "machineclasses")
	require.Contains(t, text, `ClassMissing: machine class "small" does not exist`)
}

func TestDump_FreezeInTheStatus_DecidesAsTheFrozenController(t *testing.T) {
	const deployment = `
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata: {name: workers, namespace: %s, uid: d, creationTimestamp: "2026-01-01T00:00:00Z"}
status: {conditions: [{type: ControllerFrozen, status: "True", lastTransitionTime: "2026-01-01T00:05:00Z", message: "Deletions go on; deletions go on: it is away"}]}
`
	text, err := explained(t, map[string]string{"m.yaml": oneMachine, "d.yaml": fmt.Sprintf(deployment, "shop")}, at)
	require.NoError(t, err)
	require.Contains(t, text, "waits for   api-server: Frozen: nothing is created, failed or replaced: it is away, since 2026-01-01T00:05:00Z (5m)")
	text, err = explained(t, map[string]string{"m.yaml": oneMachine, "d.yaml": fmt.Sprintf(deployment, "other")}, at)
	require.NoError(t, err)
	require.NotContains(t, text, "Frozen")
}

func TestDump_OtherDocuments_AreNamed(t *testing.T) {
	text, err := explained(t, map[string]string{"m.yaml": oneMachine + "---\napiVersion: v1\nkind: ConfigMap\n---\n- 1\n---\na: b\n---\napiVersion: v9\nkind: Node\nmetadata: {name: n}\n"}, at)
	require.NoError(t, err)
	require.Regexp(t, `\nnot used: ConfigMap of v1, Node of v9, a document that is no object in .*m.yaml\n`, text)
}

func TestDump_Invalid_ErrorNamesTheDocument(t *testing.T) {
	for name, test := range map[string]struct{ text, says string }{
		"no YAML":         {oneMachine + "---\na: [\n", "m.yaml: document 2: "},
		"a wrong type":    {"apiVersion: v1\nkind: Pod\nmetadata: {name: 1}\n", "m.yaml: document 1: "},
		"no name":         {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod}]\n", "m.yaml: document 1: item 1: Pod without metadata.name"},
		"no time":         {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "no object has a time"},
		"no machine":      {"apiVersion: v1\nkind: Pod\nmetadata: {name: p, creationTimestamp: \"2026-01-01T00:00:00Z\"}\n", "not in the dump: machines"},
		"no such machine": {`{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineList","items":[{"metadata":{"name":"other","creationTimestamp":"2026-01-01T00:00:00Z"}}]}`, "machine/m does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := explained(t, map[string]string{"m.yaml": test.text}, time.Time{})
			require.ErrorContains(t, err, test.says)
		})
	}
	_, err := explain.Dump(t.Context(), filepath.Join(t.TempDir(), "none"), "", at)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestExplain_InvalidSubject_Error(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.yaml")
	require.NoError(t, os.WriteFile(file, []byte(oneMachine+"---\n"+emptyClasses), 0o600))
	v, err := explain.Dump(t.Context(), file, "", at)
	require.NoError(t, err)
	for subject, says := range map[string]string{
		"": "want KIND/NAME", "machine": "want KIND/NAME", "machine/": "want KIND/NAME", "pod/p": "want KIND/NAME", "machine/a/b/c": "want KIND/NAME",
		"machine/x": "does not exist", "machine/other/m": "does not exist", "mcc/small": "does not exist", "node/n": "not in the dump: nodes",
	} {
		_, err := v.Explain(t.Context(), subject)
		require.ErrorContains(t, err, says, subject)
	}
	_, err = v.Explain(t.Context(), "MC/shop/m")
	require.NoError(t, err)
}

// TestLive_NoRightToReadSecrets_SaysSo refuses the lists of Secrets and of PodDisruptionBudgets.
func TestLive_NoRightToReadSecrets_SaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.budget = true
		w.running(1)
		for _, resource := range []string{"secrets", "poddisruptionbudgets"} {
			w.cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "list", Resource: resource})
		}
		r, err := w.live().Explain(t.Context(), w.first())
		require.NoError(t, err)
		text := r.String()
		require.Contains(t, text, "\nnot readable: secrets: ")
		require.Contains(t, text, "\nnot readable: poddisruptionbudgets: ")
		require.Contains(t, text, "decides     nothing (NodeReady)")
		w.cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "list", Resource: "machines"})
		_, err = explain.Live(t.Context(), explain.Clients{Machines: w.machines, Control: w.core}, "")
		require.ErrorContains(t, err, "not readable: machines: ")
	})
}

func TestLive_NoClientOrNoTime_Error(t *testing.T) {
	_, err := explain.Live(t.Context(), explain.Clients{}, "")
	require.Error(t, err)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w := newWorld(t)
		_, err := explain.Live(ctx, explain.Clients{Machines: w.machines, Control: w.core}, "")
		require.ErrorIs(t, err, context.Canceled)
	})
}

// FuzzDump asserts that no dump makes the reader panic, and that what it reads can be shown.
func FuzzDump(f *testing.F) {
	f.Add([]byte(oneMachine), true)
	f.Add([]byte(emptyClasses+"\n---"+oneMachine), false)
	f.Add([]byte("kind: List\nitems: [{kind: Node, apiVersion: v1, metadata: {name: n}}, null, 1]"), true)
	f.Add([]byte("a: &a [*a]\n---\n{\"kind\": \"PodList\", \"items\": [{}]}"), true)
	for _, name := range []string{"budget", "stuck"} {
		raw, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		require.NoError(f, err)
		f.Add(raw, true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, show bool) {
		file := filepath.Join(t.TempDir(), "dump")
		require.NoError(t, os.WriteFile(file, raw, 0o600))
		v, err := explain.Dump(t.Context(), file, "", at)
		if err != nil || !show {
			return
		}
		r, err := v.Tree(t.Context(), "")
		require.NoError(t, err)
		require.NotEmpty(t, r.String())
		_, err = json.Marshal(r)
		require.NoError(t, err)
	})
}
