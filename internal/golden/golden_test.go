// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// readers judge the vectors of the files of these names.
var readers = map[string]reader{
	"auto_preservation":            read(autoPreservation),
	"claim":                        read(claim),
	"deployment_progress":          read(deploymentProgress),
	"failed_machine_termination":   read(failedMachineTermination),
	"fenceposts":                   read(fencePosts),
	"get_proportion":               read(getProportion),
	"hash_names":                   read(hashNames),
	"history_cleanup":              read(historyCleanup),
	"inplace_step":                 read(inPlaceStep),
	"machinedeployment_status":     read(machineDeploymentStatus),
	"machineset_status":            read(machineSetStatus),
	"manage_replicas":              read(manageReplicas),
	"marked_for_deletion":          read(markedForDeletion),
	"max_surge_unavailable":        read(maxSurgeUnavailable),
	"new_ms_new_replicas":          read(newSetReplicas),
	"revisions":                    read(revisions),
	"rollback":                     read(rollback),
	"rolling_step":                 read(rollingStep),
	"rollout_status":               read(rolloutStatus),
	"rollout_traces":               read(rolloutTraces),
	"safety_freeze":                read(safetyFreeze),
	"scale":                        read(scale),
	"scale_down_order":             read(scaleDownOrder),
	"scaling_event":                read(scalingEvent),
	"set_new_ms_annotations":       read(setNewAnnotations),
	"slow_start":                   read(slowStart),
	"sync_existing_new_ms":         read(syncExistingNewSet),
	"template_equality":            read(templateEquality),
	"trigger_deletion":             read(triggerDeletion),
	"validation_machinedeployment": read(validation),
}

// A reader judges one vector. The deviations are the numbers of the defects that
// show in it; none and no error means that the vector is equal.
type reader func(in, out []byte) (deviations []string, err error)

// read makes a reader of a function over typed values. Fields that are not known
// are errors, so that no part of a vector is passed over in silence.
func read[In, Out any](judge func(in In, out Out) ([]string, error)) reader {
	return func(in, out []byte) (deviations []string, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		var i In
		var o Out
		if err := strict(in, &i); err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
		if err := strict(out, &o); err != nil {
			return nil, fmt.Errorf("output: %w", err)
		}
		return judge(i, o)
	}
}

func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// same is an error unless both values are equal; nil and empty are.
func same(what string, want, got any) error {
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		return fmt.Errorf("%s (-want +got):\n%s", what, d)
	}
	return nil
}

// builtIn is the folder of the vectors that come with this module.
const builtIn = "testdata"

// folder is where the vectors are: that of the environment variable, relative to
// the root of the module, or the one that comes with it.
func folder() string {
	other := os.Getenv("MACHINIST_GOLDEN")
	switch {
	case other == "":
		return builtIn
	case filepath.IsAbs(other):
		return other
	default:
		return filepath.Join("..", "..", other)
	}
}

// TestVectors demands a reader for each file of another folder, but no file for each reader.
func TestVectors(t *testing.T) {
	dir := folder()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors in %s: %v", dir, err)
	}
	var all tally
	missing := maps.Clone(readers)
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		t.Run(name, func(t *testing.T) {
			judge := readers[name]
			if judge == nil {
				t.Fatalf("%s has no reader", path)
			}
			all.add(name, walk(t, path, judge))
		})
		delete(missing, name)
	}
	for name := range missing {
		if dir == builtIn {
			t.Errorf("%s.jsonl is missing", name)
		}
	}
	t.Log(all.String())
}

// counts are the verdicts on the vectors of one file.
type counts struct {
	n, equal, failed int
	deviations       map[string]int
}

func (c counts) deviating() int { return c.n - c.equal - c.failed }

func walk(t *testing.T, path string, judge reader) counts {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	if !lines.Scan() || !bytes.Contains(lines.Bytes(), []byte(`"functionUnderTest"`)) {
		t.Fatalf("%s has no header", path)
	}
	c := counts{deviations: map[string]int{}}
	for lines.Scan() {
		var v struct {
			ID      int
			In, Out json.RawMessage
		}
		err := strict(lines.Bytes(), &v)
		var deviations []string
		if err == nil {
			deviations, err = judge(v.In, v.Out)
		}
		c.count(deviations, err)
		if err != nil {
			complain(t, c.failed, v.ID, err)
		}
	}
	if err := lines.Err(); err != nil || c.n == 0 {
		t.Fatalf("%s: %d vectors: %v", path, c.n, err)
	}
	return c
}

func (c *counts) count(deviations []string, err error) {
	c.n++
	switch {
	case err != nil:
		c.failed++
	case len(deviations) == 0:
		c.equal++
	default:
		slices.Sort(deviations)
		c.deviations[strings.Join(slices.Compact(deviations), "+")]++
	}
}

// complain fails the test, and shows the first failures only.
func complain(t *testing.T, n, id int, err error) {
	t.Helper()
	switch shown := 5; {
	case n <= shown:
		t.Errorf("vector %d: %v", id, err)
	case n == shown+1:
		t.Error("further failures are counted, not shown")
	}
}

// A tally is what became of all vectors.
type tally struct {
	total counts
	lines []string
}

func (a *tally) add(name string, c counts) {
	a.total.n += c.n
	a.total.equal += c.equal
	a.total.failed += c.failed
	for _, numbers := range slices.Sorted(maps.Keys(c.deviations)) {
		a.lines = append(a.lines, fmt.Sprintf("%s: %s %d", name, numbers, c.deviations[numbers]))
	}
	if c.failed > 0 {
		a.lines = append(a.lines, fmt.Sprintf("%s: failed %d", name, c.failed))
	}
}

func (a *tally) String() string {
	last := fmt.Sprintf("%d vectors: %d equal, %d deviations (listed), %d failed", a.total.n, a.total.equal, a.total.deviating(), a.total.failed)
	return "\n" + strings.Join(append(a.lines, last), "\n")
}

// mended are the defects that a model does not have.
type mended map[string]bool

func without(defects ...string) mended {
	m := mended{}
	for _, d := range defects {
		m[d] = true
	}
	return m
}

// explain judges by a model, a naive model of MCM in which each
// of the defects can be mended. With none mended it has to reproduce the vector,
// with all of them mended it has to agree with us. The deviations are those
// defects that make a difference, alone or at last.
func explain[T any](defects []string, model func(mended) T, vector, ours T) ([]string, error) {
	if err := same("the model does not reproduce the vector", vector, model(nil)); err != nil {
		return nil, err
	}
	all := model(without(defects...))
	if err := same("the model without defects does not agree with us", all, ours); err != nil {
		return nil, err
	}
	if equal(vector, ours) {
		return nil, nil
	}
	var deviations []string
	for i, d := range defects {
		others := append(append([]string{}, defects[:i]...), defects[i+1:]...)
		if !equal(vector, model(without(d))) || !equal(all, model(without(others...))) {
			deviations = append(deviations, d)
		}
	}
	if len(deviations) == 0 {
		return nil, fmt.Errorf("several defects are needed to tell %v from %v", vector, ours)
	}
	return deviations, nil
}

func equal(a, b any) bool { return cmp.Equal(a, b, cmpopts.EquateEmpty()) }
