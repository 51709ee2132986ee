// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"go/ast"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mainNames are the functions and types that a package is used by. Its comment names them in
// its first ten lines.
var mainNames = map[string]string{
	"codes":                     "Of Code Backoff",
	"codes/status":              "Error",
	"deployment":                "Decide Observation Decision",
	"deployment/deploymenttest": "World",
	"deployment/runner":         "Executor Reconcile Observe Informers",
	"drain":                     "Step State Observation Decision",
	"drain/draintest":           "New",
	"drain/runner":              "Executor Run",
	"drain/runner/informers":    "New OnChange",
	"driver":                    "Driver WithDeadline",
	"driver/drivertest":         "Run NewCloud",
	"machine":                   "Decide Observation Decision",
	"machine/client":            "Requests",
	"machine/machinetest":       "New",
	"machine/runner":            "Executor Reconcile Informers Finalizers",
	"safety/runner":             "Executor Reconcile Prober Guard",
	"machine/v1alpha1":          "Machine MachineSet MachineDeployment MachineClass",
	"machineset":                "Decide Observation Decision",
	"machineset/runner":         "Executor Reconcile Informers",
	"nodeops":                   "Cordon Index SyncTemplate",
	"nodeops/runner":            "CordonNode UncordonNode UpdateNode",
	"permits":                   "Ledger Acquire Release",
	"permits/runner":            "Lock Run Release",
	"safety":                    "Step Observation Decision StepOvershoot StepUnmanaged StepFreeze DecideGuard",
}

// mostLines returns how many lines go doc prints of a package: two screens, and more for the types
// of the API.
func mostLines(dir string) int {
	if dir == "machine/v1alpha1" {
		return 120
	}
	return 100
}

func goDoc(t *testing.T, dir string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "doc", "./"+dir)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.Split(strings.TrimRight(string(out), "\n"), "\n")
}

func TestPackages_GoDoc_FitsOnTwoScreens(t *testing.T) {
	for _, dir := range packages(t) {
		lines := goDoc(t, dir)
		if most := mostLines(dir); len(lines) > most {
			t.Errorf("go doc ./%s prints %d lines, and may print %d", dir, len(lines), most)
		}
	}
}

func TestPackages_Comment_BeginsWithTheMainNames(t *testing.T) {
	require.ElementsMatch(t, packages(t), append(slices.Collect(maps.Keys(mainNames)), "."))
	for dir, names := range mainNames {
		first := strings.Join(goDoc(t, dir)[2:12], "\n")
		for name := range strings.FieldsSeq(names) {
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(first) {
				t.Errorf("%s: the first ten lines of the package comment do not name %s", dir, name)
			}
		}
	}
}

// packages returns the folders of the packages of the SDK that people wrote and import.
func packages(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}}", "./...")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	require.NoError(t, err)
	var dirs []string
	for path := range strings.FieldsSeq(string(out)) {
		dir := strings.TrimPrefix(strings.TrimPrefix(path, sdk), "/")
		if strings.HasPrefix(dir, "internal/") || strings.HasPrefix(dir, "machine/client/") {
			continue
		}
		if dir == "" {
			dir = "."
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// packageComment returns the text of the package comment of a folder.
func packageComment(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*.go"))
	require.NoError(t, err)
	var text string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.PackageClauseOnly)
		require.NoError(t, err)
		if file.Doc != nil && !strings.HasSuffix(name, "_test.go") && !ast.IsGenerated(file) {
			text += file.Doc.Text()
		}
	}
	return text
}

// programOf returns the first code in a package comment, if it is a whole file. Later code is
// a fragment or a table.
func programOf(text string) (string, bool) {
	for _, b := range new(comment.Parser).Parse(text).Content {
		if code, ok := b.(*comment.Code); ok {
			return code.Text, strings.HasPrefix(code.Text, "package main\n")
		}
	}
	return "", false
}

// withoutProgram are packages whose comments have no program, each with the reason.
var withoutProgram = map[string]string{
	".":                "it is the map of the packages",
	"machine/v1alpha1": "it has types",
}

// TestPackages_FirstCode_IsAProgramThatBuilds asserts that the comment of each package has a
// program, before any other code.
func TestPackages_FirstCode_IsAProgramThatBuilds(t *testing.T) {
	var all []program
	for _, dir := range append(packages(t), "examples/samples/controllerruntime") {
		source, found := programOf(packageComment(t, dir))
		if !found {
			if withoutProgram[dir] == "" {
				t.Errorf("%s: the package comment does not have a program as its first code", dir)
			}
			continue
		}
		formatted, err := format.Source([]byte(source))
		require.NoError(t, err, dir)
		require.Equal(t, string(formatted), source, dir)
		all = append(all, program{from: dir, source: source})
	}
	require.NotEmpty(t, all)
	checkAll(t, all)
}

func TestProgramOf_FirstCodeOnly(t *testing.T) {
	source, found := programOf("Package p is.\n\n\tpackage main\n\n\tfunc main() {}\n\nText.\n\n\ta  b\n")
	require.True(t, found)
	require.Equal(t, "package main\n\nfunc main() {}\n", source)
	_, found = programOf("Package p is.\n\n\tx := 1\n\n# More\n\n\tpackage main\n")
	require.False(t, found)
}
