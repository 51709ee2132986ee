// SPDX-License-Identifier: Apache-2.0

// Program matrix runs the tests on a control plane with several versions of Kubernetes, one after the
// other, and prints which test ran with which version, the skipped ones with their reason:
//
//	go run ./matrix                  # all packages of the matrix with the oldest and the newest version
//	go run ./matrix -part            # few tests with the newest version
//
// The tests are those of the scenarios, of the roles and of the rights to drain. It exits with status 1 if a test
// fails with any version, if a package ran no test, and if -part names a test that did not pass.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
)

// packages of the matrix, below examples/e2e.
var packages = []string{"controlplane", "conformance", "nodetools", "machinesalone", "scenarios"}

// part are the tests that -part runs, by package: what a version can refuse to the roles, the
// definitions, the policies and a drain. Each takes seconds.
var part = map[string][]string{
	"controlplane": {"TestLacks_WatchList_AsTheServer", "TestVersions_Server_Matches"},
	"nodetools":    {"TestRights_EachCall_WithItsRightsAndWithoutOne"},
	"scenarios": {
		"TestDefinitions_InvalidObject_RefusedWithFieldAndRemedy",
		"TestDefinitions_ManifestsOfMCM_AreAccepted",
		"TestDefinitions_StoredBeforeTheRules_KeepsWorking",
		"TestDrain_BudgetFreed_EvictsAtOnce",
		"TestEviction_EachCase_ServersAnswer",
		"TestFlowSchema_RequestsOfPrograms_HaveTheirOwnPriority",
		"TestKustomize_EachFolder_AcceptedByTheAPIServer",
		"TestManager_SecretsOfKubeSystem_OnlyBootstrapTokens",
		"TestManifests_Printed_AreWhatInstallApplies",
		"TestRoll_UnavailableMachines_ReplacedFirst",
		"TestValidationManifest_OnAPIServer_DeniesWhatTheDefinitionsTake",
	},
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	versions []string
	part     bool
}

func parse(args []string) (o options, err error) {
	known := controlplane.Versions()
	flags := flag.NewFlagSet("matrix", flag.ContinueOnError)
	versions := flags.String("versions", "", "`versions` of Kubernetes, separated by commas; empty: the oldest and the newest, with -part the newest")
	flags.BoolVar(&o.part, "part", false, "run the tests of the roles, the definitions and the rights to drain, and few scenarios")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("no arguments are expected, but there is %q", flags.Arg(0))
	}
	if *versions == "" {
		if *versions = known[len(known)-1]; !o.part {
			*versions = known[0] + "," + *versions
		}
	}
	for v := range strings.SplitSeq(*versions, ",") {
		if !slices.Contains(known, v) {
			return options{}, fmt.Errorf("-versions: %q is not one of %s", v, strings.Join(known, ", "))
		}
		o.versions = append(o.versions, v)
	}
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	runs, err := o.runAll(ctx, out)
	printTable(out, runs) // of what was run, if that was ended
	return errors.Join(err, verdict(runs))
}

// runAll runs the tests with each version, until ctx ends.
func (o options) runAll(ctx context.Context, out io.Writer) (runs []testRun, err error) {
	for _, version := range o.versions {
		if err := build(ctx, version, !o.part, out); err != nil {
			return runs, err
		}
		for _, name := range packages {
			if o.part && part[name] == nil {
				continue
			}
			r := testRun{version: version, pkg: name}
			if o.part {
				r.wanted = part[name]
			}
			err := r.run(ctx, out)
			runs = append(runs, r)
			if err != nil {
				return runs, err
			}
		}
	}
	return runs, nil
}

// build chooses the version for this process and those that it starts, and builds its components, so
// that no test waits for that. Those of -part need no kubectl.
func build(ctx context.Context, version string, withKubectl bool, out io.Writer) error {
	if err := os.Setenv(controlplane.VersionEnv, version); err != nil {
		return err
	}
	_, err := controlplane.Build(ctx, out)
	_, kubemarkErr := controlplane.Kubemark(ctx, out)
	if !withKubectl {
		return errors.Join(err, kubemarkErr)
	}
	_, kubectlErr := controlplane.Kubectl(ctx, out)
	return errors.Join(err, kubemarkErr, kubectlErr)
}

// run runs the tests with the version that was built. The error is that of a go command that does not
// start, or of the end of ctx; the failure of a test is in the result.
func (r *testRun) run(ctx context.Context, out io.Writer) error {
	args := []string{"test", "-json", "-count=1", "-timeout=30m"}
	if r.wanted != nil {
		args = append(args, "-run=^("+strings.Join(r.wanted, "|")+")$")
	}
	fmt.Fprintf(out, "== Kubernetes %s: %s\n", r.version, r.pkg)
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+r.pkg)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	cmd.Stderr = out
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := r.read(events, out)
	r.exit = cmd.Wait()
	r.took = time.Since(began)
	fmt.Fprintf(out, "   %s\n", r.summary())
	return errors.Join(readErr, context.Cause(ctx))
}
