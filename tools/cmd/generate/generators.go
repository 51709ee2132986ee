// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

const (
	module     = "github.com/machinist-dev/machinist"
	typesDir   = "machine/v1alpha1"
	clientDir  = "machine/client"
	typesPkg   = module + "/" + typesDir
	clientPkg  = module + "/" + clientDir
	deepCopies = "zz_generated.deepcopy.go"
	// header is the first line of every generated Go file.
	header = "// SPDX-License-Identifier: Apache-2.0\n"
)

// generator is one call of a generator, in the scratch module.
type generator struct {
	tool string
	args []string
}

// folder returns the folder of tools/ whose go.mod pins the generator. Clients come from the code-generator of the
// lowest k8s.io that the SDK works with, because those of a newer one call what client-go does not have there.
func (g generator) folder() string {
	if g.tool == "controller-gen" {
		return "tools"
	}
	return filepath.Join("tools", "clients")
}

// externalTypes are the types of k8s.io/api inside ours for which client-go has
// apply configurations. Without them the apply configurations of a Node's spec
// would set every field of it.
var externalTypes = []string{"NodeAddress", "NodeCondition", "NodeSpec", "SecretReference"}

// generators lists the calls; they write to different folders and may run side
// by side.
func generators(scratch string) []generator {
	boiler := "--go-header-file=" + filepath.Join(scratch, "header.txt")
	out := func(name string) []string {
		return []string{
			boiler,
			"--output-dir=" + filepath.Join(scratch, clientDir, name),
			"--output-pkg=" + clientPkg + "/" + name,
		}
	}
	return []generator{
		{"controller-gen", []string{
			"crd:crdVersions=v1,generateEmbeddedObjectMeta=false,maxDescLen=512",
			"paths=./" + typesDir,
			"output:crd:dir=" + filepath.Join(scratch, typesDir, "crds"),
		}},
		{"deepcopy-gen", []string{boiler, "--output-file=" + deepCopies, typesPkg}},
		{"applyconfiguration-gen", append(out("applyconfiguration"),
			"--external-applyconfigurations="+externals(), typesPkg)},
		{"client-gen", append(out("clientset"),
			"--clientset-name=versioned",
			"--apply-configuration-package="+clientPkg+"/applyconfiguration",
			"--input-base="+module,
			"--input="+typesDir)},
		{"lister-gen", append(out("listers"), typesPkg)},
		{"informer-gen", append(out("informers"),
			"--versioned-clientset-package="+clientPkg+"/clientset/versioned",
			"--listers-package="+clientPkg+"/listers", typesPkg)},
	}
}

func externals() string {
	var pairs []string
	for _, t := range externalTypes {
		pairs = append(pairs, "k8s.io/api/core/v1."+t+":k8s.io/client-go/applyconfigurations/core/v1")
	}
	return strings.Join(pairs, ",")
}

// generate fills the scratch module, and runs all generators and what has to be done after them.
func generate(ctx context.Context, root, scratch string) error {
	if err := prepare(root, scratch); err != nil {
		return err
	}
	var (
		wg   sync.WaitGroup
		errs = make([]error, len(generators(scratch)))
	)
	for i, g := range generators(scratch) {
		wg.Go(func() { errs[i] = g.run(ctx, root, scratch) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return postProcess(scratch)
}

// run builds the generator at the version that is pinned, and runs it.
func (g generator) run(ctx context.Context, root, scratch string) error {
	path, err := command(ctx, filepath.Join(root, g.folder()), "go", "tool", "-n", g.tool)
	if err != nil {
		return err
	}
	_, err = command(ctx, scratch, strings.TrimSpace(path), g.args...)
	return err
}

// command runs one program outside of any workspace and returns its output; it
// is quiet unless the program fails.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+dir)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String(), nil
}
