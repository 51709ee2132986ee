// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var update = flag.Bool("update", false, "write the dumps and the texts of the situations")

// situation is what operators ask about. play leads to it, and returns the object to explain.
type situation struct {
	name string
	play func(w *world) string
}

// situations are in the order of docs/operations.md.
var situations = []situation{
	{"budget", func(w *world) string {
		w.budget = true // the pod that is evicted first finds no other Node
		w.running(1)
		w.patch(`{"spec":{"replicas":0}}`)
		sleep(5 * time.Minute)
		return w.first()
	}},
	{"quota", func(w *world) string {
		w.cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Kind: drivertest.Refuse, Code: codes.ResourceExhausted, Message: "quota of small VMs in zone here-1: 40 of 40"})
		w.create(secret("small"), class("small"), workers(1))
		w.run()
		sleep(5 * time.Minute)
		return w.first()
	}},
	{"secret", func(w *world) string {
		w.create(secret("other"), class("small"), workers(1))
		w.run()
		sleep(5 * time.Minute)
		return w.first()
	}},
	{"class", func(w *world) string {
		w.create(secret("other"), class("other"), workers(1))
		w.run()
		sleep(5 * time.Minute)
		return w.first()
	}},
	{"paused", func(w *world) string {
		w.running(2)
		w.create(secret("large"), class("large"))
		w.patch(`{"spec":{"template":{"spec":{"class":{"name":"large"}}}}}`)
		sleep(5 * time.Second)
		w.patch(`{"spec":{"paused":true}}`)
		sleep(5 * time.Minute)
		return "machinedeployment/workers"
	}},
	{"frozen", func(w *world) string {
		d, s := workers(2), &v1alpha1.MachineSet{}
		s.Namespace, s.Name, s.Labels = shop, "workers", map[string]string{v1alpha1.FreezeLabelKey: "True"}
		s.Spec.Replicas, s.Spec.Selector, s.Spec.Template = 2, d.Spec.Selector, d.Spec.Template
		w.run()
		sleep(5 * time.Second) // after the first look at all sets
		w.create(secret("small"), class("small"), s)
		sleep(500 * time.Millisecond) // the controller unfreezes it after a second
		return "machineset/workers"
	}},
	{"stuck", func(w *world) string {
		w.running(2)
		w.cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Kind: drivertest.Refuse, Code: codes.InvalidArgument, Message: "there is no image 2.0"})
		w.create(secret("large"), class("large"))
		w.patch(`{"spec":{"progressDeadlineSeconds":300,"template":{"spec":{"class":{"name":"large"}}}}}`)
		sleep(10 * time.Minute)
		return "machinedeployment/workers"
	}},
	{"permit", func(w *world) string {
		w.running(3)
		fleet := w.fleet()
		for _, m := range fleet[:2] {
			w.silence(m.Labels[v1alpha1.NodeLabelKey])
		}
		w.cloud.Inject(drivertest.Fault{Operation: driver.OpDeleteMachine, Kind: drivertest.Refuse, Code: codes.Unavailable, Message: "the zone does not answer"})
		sleep(14 * time.Minute)
		for _, m := range w.fleet() {
			if m.Status.CurrentStatus.Phase == v1alpha1.MachineUnknown {
				return "machine/" + m.Name
			}
		}
		return ""
	}},
	{"join", func(w *world) string {
		w.kubelets.SilenceNext(1)
		w.create(secret("small"), class("small"), workers(1))
		w.run()
		sleep(12 * time.Minute)
		return w.first()
	}},
	{"preserved", func(w *world) string {
		w.running(2)
		m := w.fleet()[0]
		w.patchMachine(m.Name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.PreserveMachineAnnotationKey, v1alpha1.PreserveMachineAnnotationValueWhenFailed))
		w.silence(m.Labels[v1alpha1.NodeLabelKey])
		sleep(30 * time.Minute)
		return "machine/" + m.Name
	}},
}

// running creates the deployment workers, and waits until its machines run.
func (w *world) running(replicas int32) {
	w.t.Helper()
	w.create(secret("small"), class("small"), workers(replicas))
	w.run()
	sleep(2 * time.Minute)
	for _, m := range w.fleet() {
		require.Equal(w.t, v1alpha1.MachineRunning, m.Status.CurrentStatus.Phase)
	}
}

// silence stops the heartbeats of a Node.
func (w *world) silence(node string) {
	w.cluster.SetNodeSilent(node, true)
	w.kubelets.Silence(node, true)
}

func (w *world) first() string { return "machine/" + w.fleet()[0].Name }

// command is the beginning of a golden text, before the name of the dump.
const command = "$ kubectl machines explain %s -f examples/internal/explain/testdata/%s.yaml\n"

// TestSituations_World_TheTextIsThatOfTheLog plays each situation. With -update it writes its dump.
func TestSituations_World_TheTextIsThatOfTheLog(t *testing.T) {
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				subject := s.play(w)
				require.NotEmpty(t, subject)
				kind, name, _ := strings.Cut(subject, "/")
				says := w.told()[kind+"/"+shop+"/"+name]
				dump := w.dump()
				v := w.dumped(time.Now())
				r, err := v.Explain(t.Context(), subject)
				require.NoError(t, err)
				text := r.String()
				require.Equal(t, says, decided(text), "%s\n%s", text, w.told())
				if *update {
					text = strings.Replace(string(dump), "---\n", header(subject), 1)
					require.NoError(t, os.WriteFile(filepath.Join("testdata", s.name+".yaml"), []byte(text), 0o600))
				}
			})
		})
	}
}

// header returns the comment of a dump: its time, and the object to explain.
func header(subject string) string {
	return fmt.Sprintf("# %s: explain %s\n---\n", time.Now().UTC().Format(time.RFC3339), subject)
}

// TestSituations_Dump_Golden explains the dumps.
func TestSituations_Dump_Golden(t *testing.T) {
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			dump := filepath.Join("testdata", s.name+".yaml")
			raw, err := os.ReadFile(dump)
			require.NoError(t, err)
			first, _, _ := strings.Cut(string(raw), "\n")
			_, subject, _ := strings.Cut(first, ": explain ")
			v, err := explain.Dump(t.Context(), dump, shop, time.Time{})
			require.NoError(t, err)
			one, err := v.Explain(t.Context(), subject)
			require.NoError(t, err)
			tree, err := v.Tree(t.Context(), "")
			require.NoError(t, err)
			golden(t, s.name+".txt", fmt.Sprintf(command, subject, s.name)+one.String())
			golden(t, s.name+".tree.txt", tree.String())
			if s.name == "budget" || s.name == "stuck" { // with pods, and with several sets
				golden(t, s.name+".json", indented(t, one))
				golden(t, s.name+".tree.json", indented(t, tree))
			}
		})
	}
}

// indented returns a report as kubectl machines prints it with -o json.
func indented(t *testing.T, r explain.Report) string {
	t.Helper()
	text, err := json.MarshalIndent(r, "", "    ")
	require.NoError(t, err)
	return string(text) + "\n"
}

// golden compares a text with a file, or writes the file with -update.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

// TestSituations_Documented asserts that docs/operations.md begins with the golden texts, in this order.
func TestSituations_Documented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operations.md"))
	require.NoError(t, err)
	rest, _, _ := strings.Cut(string(page), "\n## Programs\n")
	require.Contains(t, rest, "\n## What does it wait for?\n")
	for _, s := range situations {
		text, err := os.ReadFile(filepath.Join("testdata", s.name+".txt"))
		require.NoError(t, err)
		shown := "\n    " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    ") + "\n"
		before, after, found := strings.Cut(rest, shown)
		require.True(t, found, "docs/operations.md does not show this after the situation before:%s", shown)
		require.NotContains(t, before, "\n    $ ", "a text that is no golden")
		rest = after
	}
	require.NotContains(t, rest, "\n    $ ", "a text that is no golden")
}
