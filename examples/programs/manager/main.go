// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/machinist-dev/machinist/examples/programs/manager/app"
	"github.com/machinist-dev/machinist/examples/programs/manager/install"
	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
	"github.com/machinist-dev/machinist/examples/rigs/cloud"
)

func main() { os.Exit(manager(os.Args[1:], os.Stdout, os.Stderr)) }

// errUsage means that the command line is invalid. The exit status is 2.
var errUsage = errors.New("bad command line, -h lists the flags")

// manager runs a command and returns the exit status.
func manager(args []string, out, errOut io.Writer) int {
	command := runControllers
	if len(args) > 0 {
		switch args[0] {
		case "install":
			command, args = installInto, args[1:]
		case "manifests":
			command, args = printManifests, args[1:]
		}
	}
	err := command(args, out)
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
		return 0
	case errors.Is(err, errUsage), errors.Is(err, options.ErrInvalid), errors.Is(err, manifests.ErrNamespace), errors.Is(err, manifests.ErrProgram):
		_, _ = fmt.Fprintf(errOut, "manager: %v\n", err)
		return 2
	default:
		_, _ = fmt.Fprintf(errOut, "manager: %v\n", err)
		return 1
	}
}

// parse parses the flags of a command, which has no arguments.
func parse(fs *pflag.FlagSet, args []string, out io.Writer, usage string) error {
	fs.SetOutput(out)
	fs.Usage = func() { _, _ = fmt.Fprintf(out, "%s\n\n%s", usage, fs.FlagUsages()) }
	fs.SortFlags = false
	err := fs.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", errUsage, err)
	case fs.NArg() > 0:
		return fmt.Errorf("%w: %q is not a command", errUsage, fs.Arg(0))
	}
	return nil
}

// runControllers runs all controllers over a simulated cloud.
func runControllers(args []string, out io.Writer) error {
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	s := options.NewManagerServer()
	s.AddFlags(fs)
	address := fs.String("simulated-cloud", "", "URL of the simulated cloud; required")
	if err := parse(fs, args, out, usage); err != nil {
		return err
	}
	if *address == "" {
		return fmt.Errorf("%w: --simulated-cloud is required", errUsage)
	}
	driver, err := cloud.Dial(*address)
	if err != nil {
		return fmt.Errorf("%w: --simulated-cloud: %w", errUsage, err)
	}
	defer driver.Close()
	return app.Run(s, driver)
}

const usage = `Runs the machine controllers over a simulated cloud, all in one process.

  manager --simulated-cloud=URL [flags]
  manager install [flags]    applies the definitions of the machine objects to a cluster
  manager manifests [flags]  prints them, and the access of a manager, for kubectl`

// installInto applies the definitions, and the access if asked to.
func installInto(args []string, out io.Writer) error {
	fs := pflag.NewFlagSet("manager install", pflag.ContinueOnError)
	kubeconfig := fs.String("kubeconfig", "", "kubeconfig of the cluster; empty: $KUBECONFIG, ~/.kube/config, or the cluster that this runs in")
	rbac := fs.Bool("rbac", false, "also apply the namespace, the service account and the roles of the manager")
	of := installationFlags(fs)
	timeout := fs.Duration("timeout", time.Minute, "time limit")
	if err := parse(fs, args, out, "Applies the definitions of the machine objects to a cluster, and waits until they are served.\n\n  manager install [flags]"); err != nil {
		return err
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = *kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return err
	}
	config.UserAgent = "machinist/install"
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	if err := install.Definitions(ctx, client); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out, "the machine objects are served")
	if *rbac {
		if err := install.Access(ctx, client, *of); err != nil {
			return err
		}
		printNextSteps(out, *of)
	}
	return nil
}

// installationFlags adds the flags that select the installation.
func installationFlags(fs *pflag.FlagSet) *manifests.Installation {
	of := &manifests.Installation{}
	fs.StringVar(&of.Program, "program", manifests.ServiceAccount, "service account: "+manifests.ServiceAccount+" runs all controllers, "+
		manifests.MachineController+" and "+manifests.MachineControllerManager+" share them")
	fs.StringVar(&of.Machines, "namespace", "default", "namespace of the machine objects; it has to exist")
	fs.StringVar(&of.Manager, "manager-namespace", "", `namespace of the manager, its service account and its lease; empty: the namespace of the machine objects followed by "-machinist"`)
	return of
}

// printNextSteps prints how to start the manager, and in which order to delete.
func printNextSteps(out io.Writer, of manifests.Installation) {
	if of.Manager == "" {
		of.Manager = of.Machines + manifests.ManagerSuffix
	}
	_, _ = fmt.Fprintf(out, `service account %[2]s/%[3]s has the access of a manager; start the manager with
  --namespace=%[1]s --leader-elect-resource-namespace=%[2]s
to remove everything, delete the machines or the namespace %[1]s while the manager runs, and then the namespace %[2]s
`, of.Machines, of.Manager, of.Program)
	if of.Manager == of.Machines {
		_, _ = fmt.Fprintf(out, "warning: the deletion of the namespace %s ends the manager before the machines: their VMs stay\n", of.Machines)
	}
}

// printManifests prints the definitions and the access.
func printManifests(args []string, out io.Writer) error {
	fs := pflag.NewFlagSet("manager manifests", pflag.ContinueOnError)
	of := installationFlags(fs)
	deployment := fs.Bool("deployment", false, "also print the Deployment, its PodDisruptionBudget, NetworkPolicy and priorities; its image has no registry")
	if err := parse(fs, args, out, "Prints the definitions of the machine objects, and the access of a manager.\n\n  manager manifests [flags] | kubectl apply -f -"); err != nil {
		return err
	}
	objects, err := manifests.Definitions()
	if err != nil {
		return err
	}
	access, err := manifests.Access(*of)
	if err != nil {
		return err
	}
	objects = append(objects, access...)
	if *deployment {
		running, err := manifests.Deployment(*of)
		if err != nil {
			return err
		}
		objects = append(objects, running...)
	}
	data, err := manifests.YAML(objects)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}
