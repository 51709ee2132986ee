// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// event is what go test -json writes.
type event struct {
	Action, Test, Output string
	Elapsed              float64 // seconds
}

// result is what became of a test.
type result struct {
	action  string // pass, fail or skip; empty while it runs
	elapsed float64
	output  []string
}

// text returns what the table says of a result.
func (r *result) text() string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%s %.1f s", cmp.Or(r.action, "no end"), r.elapsed)
}

// testRun are the results of a package with a version.
type testRun struct {
	version, pkg string
	wanted       []string // tests that have to pass; nil means those that are there
	tests        map[string]*result
	output       []string // of the package
	exit         error
	took         time.Duration
}

// read reads the events of a run to their end, and prints the output of failed tests.
func (r *testRun) read(events io.Reader, out io.Writer) error {
	r.tests = map[string]*result{}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.take(line, out)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take takes one line. What is no event, such as an error of the compiler, is output of the package.
func (r *testRun) take(line []byte, out io.Writer) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		r.output = append(r.output, string(line))
		return
	}
	if e.Test == "" {
		if e.Action == "output" || e.Action == "build-output" {
			r.output = append(r.output, e.Output)
		}
		return
	}
	t := r.tests[e.Test]
	if t == nil {
		t = &result{}
		r.tests[e.Test] = t
	}
	switch e.Action {
	case "output":
		t.output = append(t.output, e.Output)
	case "pass", "skip", "fail":
		t.action, t.elapsed = e.Action, e.Elapsed
		if e.Action == "fail" {
			fmt.Fprintf(out, "   FAIL %s\n      %s\n", e.Test, strings.Join(t.output, "      "))
		}
	}
}

// named returns the names of the tests with an action, sorted, without subtests if top.
func (r *testRun) named(action string, top bool) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(r.tests)) {
		if r.tests[name].action == action && !(top && strings.Contains(name, "/")) {
			names = append(names, name)
		}
	}
	return names
}

// err returns why a run is no success.
func (r *testRun) err() error {
	var errs []error
	if r.exit != nil {
		errs = append(errs, fmt.Errorf("go test: %w", r.exit))
	}
	if failed := append(r.named("fail", false), r.named("", false)...); len(failed) > 0 {
		errs = append(errs, fmt.Errorf("failed: %s", strings.Join(failed, ", ")))
	} else if r.exit != nil {
		errs = append(errs, errors.New(strings.Join(r.output, "")))
	}
	passed := r.named("pass", true)
	if len(passed) == 0 {
		errs = append(errs, errors.New("no test passed"))
	}
	for _, name := range r.wanted {
		if !slices.Contains(passed, name) {
			errs = append(errs, fmt.Errorf("%s did not pass", name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("kubernetes %s: %s: %w", r.version, r.pkg, err)
	}
	return nil
}

// summary returns the counts of a run: tests without subtests, and all that were skipped.
func (r *testRun) summary() string {
	return fmt.Sprintf("%s: %d passed, %d failed, %d skipped, in %s", r.pkg,
		len(r.named("pass", true)), len(r.named("fail", true))+len(r.named("", true)), len(r.named("skip", false)), r.took.Round(time.Second))
}

// verdict returns the failures of all runs, joined.
func verdict(runs []testRun) error {
	var errs []error
	for _, r := range runs {
		errs = append(errs, r.err())
	}
	return errors.Join(errs...)
}

// printTable prints a line for each test with its result for each version, then the reasons of what was
// skipped, and the counts.
func printTable(out io.Writer, runs []testRun) {
	var versions []string
	results := map[string]map[string]*result{} // by package and test, and by version
	for _, r := range runs {
		if !slices.Contains(versions, r.version) {
			versions = append(versions, r.version)
		}
		for name, of := range r.tests {
			if strings.Contains(name, "/") {
				continue
			}
			key := r.pkg + "\t" + name
			if results[key] == nil {
				results[key] = map[string]*result{}
			}
			results[key][r.version] = of
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nPACKAGE\tTEST\t%s\n", strings.Join(versions, "\t"))
	for _, key := range slices.Sorted(maps.Keys(results)) {
		line := []string{key}
		for _, v := range versions {
			line = append(line, results[key][v].text())
		}
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	_ = w.Flush() // as errors of fmt.Fprintln
	fmt.Fprintln(out)
	for _, r := range runs {
		fmt.Fprintf(out, "Kubernetes %s: %s\n", r.version, r.summary())
		for _, name := range r.named("skip", false) {
			fmt.Fprintf(out, "   skipped %s: %s\n", name, reason(r.tests[name].output))
		}
	}
}

// reason returns what a test logged before it was skipped.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}
