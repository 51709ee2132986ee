// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/simulation"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var update = flag.Bool("update", false, "write golden files")

// pool is a deployment of five machines, with at most two more and at most one unavailable.
const pool = "testdata/pool.yaml"

// run runs the command without standard input.
func run(t *testing.T, args ...string) (status int, out, errOut string) {
	t.Helper()
	return runWith(t, "", args...)
}

// runWith runs the command with standard input.
func runWith(t *testing.T, in string, args ...string) (status int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	env := cli.New(strings.NewReader(in), &o, &e)
	status = env.Run(t.Context(), simulation.New(env), args)
	return status, o.String(), e.String()
}

// rollout is the document of -o json as another program reads it.
type rollout struct {
	simulation.Document
	Decision decision `json:"decision"`
	Frames   []frame  `json:"frames"`
}

// frame is a frame of the document as another program reads it.
type frame struct {
	simulation.Frame
	Decision decision `json:"decision"`
}

// decision is a deployment.Decision as another program reads it.
type decision struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Targets []struct {
		Name    string `json:"name"`
		UID     string `json:"uid"`
		From    int32  `json:"from"`
		To      int32  `json:"to"`
		Victims []struct {
			Machine string `json:"machine"`
			By      string `json:"by"`
		} `json:"victims"`
		Message string `json:"message"`
	} `json:"targets"`
	Actions []struct {
		Type    string   `json:"type"`
		Subject string   `json:"subject"`
		From    *int32   `json:"from"`
		To      *int32   `json:"to"`
		Changes []string `json:"changes"`
	} `json:"actions"`
	Status      v1alpha1.MachineDeploymentStatus `json:"status"`
	WriteStatus bool                             `json:"writeStatus"`
	Events      []machinist.Event                `json:"events"`
	Holds       []machinist.Hold                 `json:"holds"`
	NextCheck   time.Time                        `json:"nextCheck"`
}

// document runs the command and reads its JSON. Unknown fields are errors.
func document(t *testing.T, args ...string) (int, rollout) {
	t.Helper()
	status, out, errOut := run(t, append(args, "-o", "json")...)
	var d rollout
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&d), errOut)
	return status, d
}

// poolText returns the text of the pool.
func poolText(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(pool)
	require.NoError(t, err)
	return string(data)
}

// edited returns a file with the pool after replacements: old and new text, alternating.
func edited(t *testing.T, words ...string) string {
	t.Helper()
	before := poolText(t)
	text := strings.NewReplacer(words...).Replace(before)
	require.NotEqual(t, before, text, "nothing was replaced")
	file := filepath.Join(t.TempDir(), "pool.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// golden compares a text with a golden file, which -update writes.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
