// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
)

// events returns the output of go test -json, with a failure to compile among it.
func events(lines ...string) io.Reader { return strings.NewReader(strings.Join(lines, "\n")) }

const (
	passed  = `{"Action":"pass","Test":"TestA","Elapsed":1.5}`
	sub     = `{"Action":"pass","Test":"TestA/row","Elapsed":1}`
	failed  = `{"Action":"fail","Test":"TestB","Elapsed":0.1}`
	because = `{"Action":"output","Test":"TestB","Output":"    b_test.go:1: it broke\n"}`
	begun   = `{"Action":"run","Test":"TestC"}`
	why     = `{"Action":"output","Test":"TestD","Output":"    lacks.go:1: it lacks something\n"}`
	skipped = `{"Action":"skip","Test":"TestD","Elapsed":0}`
	broken  = `{"ImportPath":"x","Action":"build-output","Output":"x.go:1: undefined: y\n"}`
)

func TestRun_Results_DecideTheVerdict(t *testing.T) {
	status := errors.New("exit status 1")
	for name, tc := range map[string]struct {
		events []string
		exit   error
		wanted []string
		errs   []string // empty means success
		said   string   // while the tests run
	}{
		"passed":                {events: []string{passed, sub}},
		"passed as wanted":      {events: []string{passed}, wanted: []string{"TestA"}},
		"passed and skipped":    {events: []string{passed, why, skipped}},
		"failed":                {events: []string{passed, because, failed}, exit: status, errs: []string{"failed: TestB", "exit status 1"}, said: "it broke"},
		"failed, status 0":      {events: []string{passed, because, failed}, errs: []string{"failed: TestB"}, said: "FAIL TestB"},
		"never ended":           {events: []string{passed, begun}, exit: status, errs: []string{"failed: TestC"}},
		"does not compile":      {events: []string{broken}, exit: status, errs: []string{"undefined: y", "no test passed"}},
		"no go package":         {events: []string{"no such folder"}, exit: status, errs: []string{"no such folder"}},
		"no tests":              {errs: []string{"no test passed"}},
		"all skipped":           {events: []string{why, skipped}, errs: []string{"no test passed"}},
		"a wanted test skipped": {events: []string{passed, why, skipped}, wanted: []string{"TestA", "TestD"}, errs: []string{"TestD did not pass"}},
		"a wanted test missing": {events: []string{passed}, wanted: []string{"TestA", "TestE"}, errs: []string{"TestE did not pass"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := testRun{version: "v1.0.0", pkg: "p", exit: tc.exit, wanted: tc.wanted}
			var said strings.Builder
			require.NoError(t, r.read(events(tc.events...), &said))
			require.Contains(t, said.String(), tc.said)
			err := verdict([]testRun{{version: "v2", pkg: "q", tests: map[string]*result{"TestA": {action: "pass"}}}, r})
			if len(tc.errs) == 0 {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "kubernetes v1.0.0: p: ")
			for _, part := range tc.errs {
				require.ErrorContains(t, err, part)
			}
		})
	}
}

func TestTable_Tests_EachVersionAndReason(t *testing.T) {
	first := testRun{version: "v1", pkg: "p", took: 2 * time.Second}
	require.NoError(t, first.read(events(passed, sub, why, skipped), io.Discard))
	second := testRun{version: "v2", pkg: "p", took: 3 * time.Second}
	require.NoError(t, second.read(events(passed, because, failed, begun), io.Discard))
	var out strings.Builder
	printTable(&out, []testRun{first, second})
	require.Equal(t, `
PACKAGE  TEST   v1          v2
p        TestA  pass 1.5 s  pass 1.5 s
p        TestB  -           fail 0.1 s
p        TestC  -           no end 0.0 s
p        TestD  skip 0.0 s  -

Kubernetes v1: p: 1 passed, 0 failed, 1 skipped, in 2s
   skipped TestD: lacks.go:1: it lacks something
Kubernetes v2: p: 1 passed, 2 failed, 0 skipped, in 3s
`, out.String())
}

func TestPart_Names_AreTests(t *testing.T) {
	for pkg, names := range part {
		require.Contains(t, packages, pkg)
		files, err := filepath.Glob(filepath.Join("..", pkg, "*_test.go"))
		require.NoError(t, err)
		var text strings.Builder
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			text.Write(data)
		}
		for _, name := range names {
			require.Contains(t, text.String(), "\nfunc "+name+"(t *testing.T)", pkg)
		}
	}
}

func TestFlags_Versions_OldestAndNewest(t *testing.T) {
	known := controlplane.Versions()
	o, err := parse(nil)
	require.NoError(t, err)
	require.Equal(t, options{versions: []string{known[0], known[len(known)-1]}}, o)
	o, err = parse([]string{"-part", "-versions=" + controlplane.DefaultVersion})
	require.NoError(t, err)
	require.Equal(t, options{versions: []string{controlplane.DefaultVersion}, part: true}, o)
	o, err = parse([]string{"-part"})
	require.NoError(t, err)
	require.Equal(t, options{versions: known[len(known)-1:], part: true}, o)
	for _, args := range [][]string{{"-versions=v1.2.3"}, {"-versions=,"}, {"x"}} {
		_, err := parse(args)
		require.Error(t, err, args)
	}
	_, err = parse([]string{"-versions=v1.2.3"})
	for _, v := range slices.Concat(known, []string{"v1.2.3"}) {
		require.ErrorContains(t, err, v)
	}
}
