// SPDX-License-Identifier: Apache-2.0

package machinist_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const sdk = "github.com/machinist-dev/machinist"

// importRule is what one package may import outside of tests.
type importRule struct {
	// pkg is relative to the module; a trailing /... covers the whole folder.
	pkg string
	// direct are the import paths, each with everything below it, that the
	// package itself may name. Of this module only what is listed exactly. The
	// standard library is always allowed, but for what noStd names.
	direct []string
	// modules are those from which packages may come in by way of others.
	modules []string
	// why is the reason for the widest import.
	why string
}

// underAPI are the modules that k8s.io/api and k8s.io/apimachinery bring along, the lowest that work and the newest.
var underAPI = []string{
	"github.com/fxamacker/cbor/v2", "github.com/go-logr/logr", "github.com/gogo/protobuf", "github.com/json-iterator/go",
	"github.com/modern-go/concurrent", "github.com/modern-go/reflect2", "github.com/x448/float16",
	"go.yaml.in/yaml/v2", "golang.org/x/net", "golang.org/x/text", "gopkg.in/inf.v0",
	"k8s.io/api", "k8s.io/apimachinery", "k8s.io/klog/v2", "k8s.io/kube-openapi", "k8s.io/utils",
	"sigs.k8s.io/json", "sigs.k8s.io/randfill", "sigs.k8s.io/structured-merge-diff/v6",
}

// underClientGo are the modules that the typed clients of k8s.io/client-go bring along.
var underClientGo = append([]string{
	"github.com/davecgh/go-spew", "github.com/emicklei/go-restful/v3",
	"github.com/go-openapi/jsonpointer", "github.com/go-openapi/jsonreference", "github.com/go-openapi/swag",
	"github.com/go-openapi/swag/cmdutils", "github.com/go-openapi/swag/conv", "github.com/go-openapi/swag/fileutils",
	"github.com/go-openapi/swag/jsonutils", "github.com/go-openapi/swag/loading", "github.com/go-openapi/swag/mangling",
	"github.com/go-openapi/swag/netutils", "github.com/go-openapi/swag/pools", "github.com/go-openapi/swag/stringutils",
	"github.com/go-openapi/swag/typeutils", "github.com/go-openapi/swag/yamlutils",
	"github.com/google/gnostic-models", "github.com/google/uuid", "github.com/josharian/intern", "github.com/mailru/easyjson",
	"github.com/munnerz/goautoneg", "github.com/pkg/errors",
	"go.yaml.in/yaml/v3", "golang.org/x/oauth2", "golang.org/x/sys", "golang.org/x/term", "golang.org/x/time",
	"google.golang.org/protobuf", "gopkg.in/evanphx/json-patch.v4", "gopkg.in/yaml.v3", "k8s.io/client-go", "sigs.k8s.io/yaml",
}, underAPI...)

// underPatches are the modules that a JSON merge patch brings along.
var underPatches = append([]string{"github.com/davecgh/go-spew", "github.com/pkg/errors", "gopkg.in/evanphx/json-patch.v4", "sigs.k8s.io/yaml"}, underAPI...)

// underFakes are the modules that the fake clients of client-go bring along.
var underFakes = append([]string{"github.com/pmezard/go-difflib"}, underClientGo...)

const (
	api          = "k8s.io/api"
	apimachinery = "k8s.io/apimachinery"
	clock        = "k8s.io/utils/clock"
	pointers     = "k8s.io/utils/ptr"
	clientGo     = "k8s.io/client-go"
	clients      = "k8s.io/client-go/kubernetes"
)

// importRules is the whole table: a package that is not in it fails the test. A
// wider row is a decision about what every importer of the package has to build.
var importRules = []importRule{
	{".", nil, nil, "words that all packages share must cost nothing"},
	{"internal/line", []string{sdk}, nil, "the text of a decision"},
	{"codes", nil, nil, "a provider's error handling must cost nothing"},
	{"codes/status", []string{sdk + "/codes"}, nil, "the error that carries a code"},
	{"permits", []string{sdk}, nil, "a ledger must cost nothing"},
	{"permits/runner", []string{api, apimachinery, clock, pointers, sdk + "/permits"}, underAPI, "it takes a part of the typed client"},
	{"nodeops", []string{api, apimachinery}, underAPI, "a Node, without a client"},
	{"nodeops/runner", []string{api, apimachinery, sdk + "/nodeops"}, underPatches, "it takes an interface that the typed client implements"},
	{"machine/v1alpha1", []string{api, apimachinery}, underAPI, "objects, without a client"},
	{"machine/client", []string{
		api, apimachinery, clients, sdk, sdk + "/machine/client/clientset/versioned", sdk + "/machine/v1alpha1",
	}, underClientGo, "requests over the typed clients"},
	{"machine/client/...", []string{
		api, apimachinery, clientGo, sdk + "/machine/v1alpha1", sdk + "/machine/client",
	}, underFakes, "generated clients and their fakes"},
	{"driver", []string{
		api, clock, sdk + "/codes", sdk + "/codes/status", sdk + "/machine/v1alpha1",
	}, underAPI, "calls are timed by a clock that tests can move"},
	{"driver/drivertest", []string{
		api, apimachinery, clock, sdk + "/codes", sdk + "/codes/status", sdk + "/driver", sdk + "/machine/v1alpha1",
	}, underAPI, "the kit runs in a provider's tests, with the standard testing package only"},
	{"machine", []string{
		api, apimachinery, sdk, sdk + "/internal/line", sdk + "/codes", sdk + "/codes/status", sdk + "/drain", sdk + "/driver", sdk + "/internal/facts", sdk + "/machine/v1alpha1", sdk + "/internal/reasons", sdk + "/internal/recorded", sdk + "/nodeops", sdk + "/permits",
	}, underAPI, "decisions, without a client"},
	{"internal/members", []string{
		api, apimachinery, sdk, sdk + "/internal/facts", sdk + "/machine", sdk + "/machine/v1alpha1",
	}, underAPI, "what a set and its deployment count and choose alike"},
	{"internal/rollout", []string{
		api, apimachinery, sdk + "/machine/v1alpha1",
	}, underAPI, "the arithmetic of a deployment"},
	{"machineset", []string{
		api, apimachinery, sdk, sdk + "/internal/line", sdk + "/internal/facts", sdk + "/internal/members", sdk + "/codes", sdk + "/machine", sdk + "/machine/v1alpha1", sdk + "/internal/recorded", sdk + "/nodeops", sdk + "/permits",
	}, underAPI, "decisions, without a client"},
	{"deployment", []string{
		api, apimachinery, sdk, sdk + "/internal/line", sdk + "/internal/facts", sdk + "/internal/members", sdk + "/internal/rollout", sdk + "/codes", sdk + "/machine", sdk + "/machine/v1alpha1", sdk + "/machineset", sdk + "/internal/recorded", sdk + "/nodeops", sdk + "/permits",
	}, underAPI, "decisions, without a client"},
	{"internal/objects", []string{api, apimachinery, sdk}, underAPI, "reads by name and index from any Reader"},
	{"internal/caches", []string{apimachinery, clientGo, sdk, sdk + "/internal/objects"}, underFakes, "the Reader of informers"},
	{"internal/runners", []string{
		api, apimachinery, clientGo, clock, sdk + "/internal/facts", sdk, sdk + "/internal/caches", sdk + "/internal/objects", sdk + "/machine", sdk + "/machine/client/informers/externalversions", sdk + "/machine/v1alpha1", sdk + "/machineset", sdk + "/nodeops",
	}, underFakes, "what the runners share: requests, informers and own writes"},
	{"machine/runner", []string{
		api, apimachinery, clientGo, clock, sdk, sdk + "/codes", sdk + "/drain", sdk + "/drain/runner", sdk + "/drain/runner/informers", sdk + "/driver", sdk + "/internal/caches", sdk + "/internal/facts", sdk + "/internal/objects", sdk + "/internal/members", sdk + "/internal/runners", sdk + "/machine",
		sdk + "/machine/client/informers/externalversions", sdk + "/machine/v1alpha1", sdk + "/nodeops", sdk + "/permits",
	}, underFakes, "it reads informers, and drains over the typed client"},
	{"machineset/runner", []string{
		api, apimachinery, clientGo, clock, sdk, sdk + "/internal/caches", sdk + "/internal/objects", sdk + "/internal/facts", sdk + "/internal/objects", sdk + "/internal/members", sdk + "/internal/runners", sdk + "/machine",
		sdk + "/machine/client/informers/externalversions", sdk + "/machine/v1alpha1", sdk + "/machineset",
	}, underFakes, "it reads informers"},
	{"deployment/runner", []string{
		api, apimachinery, clientGo, clock, sdk, sdk + "/deployment", sdk + "/internal/caches", sdk + "/internal/objects", sdk + "/internal/facts", sdk + "/internal/members", sdk + "/internal/rollout", sdk + "/internal/runners", sdk + "/machine",
		sdk + "/machine/client/informers/externalversions", sdk + "/machine/v1alpha1", sdk + "/machineset",
	}, underFakes, "it reads informers"},
	{"safety/runner", []string{
		api, apimachinery, clientGo, clock, sdk, sdk + "/codes", sdk + "/drain", sdk + "/driver", sdk + "/internal/caches", sdk + "/internal/objects", sdk + "/internal/runners", sdk + "/machine", sdk + "/machine/runner",
		sdk + "/machine/v1alpha1", sdk + "/nodeops", sdk + "/safety",
	}, underFakes, "it reads informers, and the guard is that of a machine runner"},
	{"deployment/deploymenttest", []string{
		api, apimachinery, sdk, sdk + "/codes", sdk + "/deployment", sdk + "/internal/facts", sdk + "/internal/members", sdk + "/internal/rollout", sdk + "/machine", sdk + "/machine/v1alpha1", sdk + "/machineset",
	}, underAPI, "a world that the planners of sets and deployments drive"},
	{"drain", []string{
		api, apimachinery, pointers, sdk, sdk + "/internal/claims", sdk + "/internal/line", sdk + "/internal/recorded", sdk + "/nodeops",
	}, underAPI, "decisions, without a client"},
	{"drain/runner", []string{
		api, apimachinery, sdk, clients + "/typed", clientGo + "/rest", clock, sdk + "/drain", sdk + "/internal/objects",
		sdk + "/internal/claims", sdk + "/nodeops", sdk + "/nodeops/runner",
	}, underClientGo, "the executor takes the typed clients; the cordon has owners"},
	{"drain/runner/informers", []string{
		api, apimachinery, sdk, clientGo, sdk + "/drain", sdk + "/drain/runner", sdk + "/internal/caches", sdk + "/internal/objects",
	}, underFakes, "the Reader of shared informers"},
	{"machine/machinetest", []string{
		sdk + "/machine/v1alpha1", sdk + "/machine/client/clientset/versioned/fake", sdk + "/drain/draintest", apimachinery, clientGo,
	}, underFakes, "the kinds of v1alpha1 in a cluster in memory"},
	{"drain/draintest", []string{
		api, apimachinery, clientGo, clock, pointers,
	}, underFakes, "the cluster in memory is a fake typed client"},
	{"safety", []string{
		api, apimachinery, sdk, sdk + "/internal/line", sdk + "/internal/facts", sdk + "/internal/members", sdk + "/codes", sdk + "/deployment", sdk + "/drain", sdk + "/driver", sdk + "/machine", sdk + "/machine/v1alpha1", sdk + "/machineset", sdk + "/nodeops", sdk + "/permits",
	}, underAPI, "decisions, without a client"},
	{"internal/apisurface", nil, nil, "tests only"},
	{"internal/claims", []string{api}, underAPI, "the claims of pods, for drain and its runner"},
	{"internal/golden", nil, nil, "tests only"},
	{"internal/decided", []string{sdk}, nil, "it reads actions in tests"},
	{"internal/facts", []string{
		api, apimachinery, sdk, sdk + "/internal/line", sdk + "/internal/recorded", sdk + "/machine/v1alpha1", sdk + "/nodeops",
	}, underAPI, "one machine and its Node, for all that decide about machines"},
	{"internal/reasons", []string{sdk}, nil, "what helps against a hold, for those that write it into a status or print it"},
	{"internal/recorded", nil, nil, "how times that were written down are read, for all that decide"},
}

// testKits are the packages that may import testing, as they run in the tests of importers.
var testKits = []string{"driver/drivertest", "drain/draintest", "machine/machinetest"}

// noStd are the packages of the standard library that no package may import. A package that
// needs one takes it as an argument, or belongs to the examples.
var noStd = []string{"flag", "log", "os", "os/exec", "os/signal", "net/http", "plugin", "unsafe", "C"}

// listedPackage is what the test reads of go list.
type listedPackage struct {
	ImportPath string
	Imports    []string
	Standard   bool
	DepOnly    bool
	Module     *struct{ Path string }
}

func TestImports_EveryPackage_OnlyItsRow(t *testing.T) {
	all := listPackages(t)
	for _, p := range all {
		if p.DepOnly {
			continue
		}
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, sdk), "/")
		rule, ok := findRule(name)
		if !ok {
			t.Errorf("package %q has no row in importRules: say there what it may import, and why", name)
			continue
		}
		for _, path := range p.Imports {
			if !rule.allows(name, path, all) {
				t.Errorf("%s imports %s, which its row does not allow (%s)", name, path, rule.why)
			}
		}
		checkClosure(t, p, rule, all)
	}
}

// allows reports whether a package may name an import.
func (r importRule) allows(name, path string, all map[string]listedPackage) bool {
	switch {
	case strings.HasPrefix(path, sdk+"/"):
		return slices.Contains(r.direct, path) ||
			r.pkg == "machine/client/..." && strings.HasPrefix(path, sdk+"/machine/client/")
	case all[path].Standard:
		return generatedPackage(name) ||
			(path != "testing" || slices.Contains(testKits, name)) &&
				(!slices.Contains(noStd, path) || slices.Contains(testKits, name) && path == "net/http")
	}
	return slices.ContainsFunc(r.direct, func(allowed string) bool {
		return path == allowed || strings.HasPrefix(path, allowed+"/")
	})
}

func generatedPackage(name string) bool { return strings.HasPrefix(name, "machine/client/") }

// checkClosure walks everything that a package brings along and names, for each
// module which its row does not list, one chain of imports that leads there.
func checkClosure(t *testing.T, p listedPackage, rule importRule, all map[string]listedPackage) {
	t.Helper()
	from := map[string]string{p.ImportPath: ""}
	reported := map[string]bool{}
	for queue := []string{p.ImportPath}; len(queue) > 0; queue = queue[1:] {
		current := all[queue[0]]
		if m := current.Module; m != nil && m.Path != sdk && !slices.Contains(rule.modules, m.Path) {
			if !reported[m.Path] {
				t.Errorf("%s brings along the module %s, which its row does not list:\n\t%s", p.ImportPath, m.Path, chain(from, current.ImportPath))
			}
			reported[m.Path] = true
			continue
		}
		for _, next := range current.Imports {
			if _, seen := from[next]; !seen && !all[next].Standard {
				from[next] = current.ImportPath
				queue = append(queue, next)
			}
		}
	}
}

// chain shows how an import came in.
func chain(from map[string]string, path string) string {
	parts := []string{path}
	for p := from[path]; p != ""; p = from[p] {
		parts = append(parts, p)
	}
	slices.Reverse(parts)
	return strings.Join(parts, " -> ")
}

func findRule(name string) (importRule, bool) {
	if name == "" {
		name = "."
	}
	for _, r := range importRules {
		folder, whole := strings.CutSuffix(r.pkg, "/...")
		if r.pkg == name || whole && strings.HasPrefix(name, folder+"/") {
			return r, true
		}
	}
	return importRule{}, false
}

// listPackages returns all packages of the SDK and what they bring along, by
// import path, seen as a consumer sees them: without the workspace.
func listPackages(t *testing.T) map[string]listedPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-e", "-json=ImportPath,Imports,Standard,DepOnly,Module", "./...")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	all := map[string]listedPackage{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all[p.ImportPath] = p
	}
}
