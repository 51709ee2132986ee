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

	"github.com/machinist-dev/machinist/examples/cloud"
	"github.com/machinist-dev/machinist/examples/manager/app"
	"github.com/machinist-dev/machinist/examples/manager/install"
	"github.com/machinist-dev/machinist/examples/manager/manifests"
	"github.com/machinist-dev/machinist/examples/manager/options"
)

func main() { os.Exit(manager(os.Args[1:], os.Stdout, os.Stderr)) }

// errUsage says that the command line makes no sense; the status is 2 then, and 1
// for everything else.
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

// parse reads the flags of a command, which takes no arguments.
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
  manager install [flags]    puts the definitions of the machine objects into a cluster
  manager manifests [flags]  prints them, and what a manager may do, for kubectl`

// installInto applies definitions, and access if asked to.
func installInto(args []string, out io.Writer) error {
	fs := pflag.NewFlagSet("manager install", pflag.ContinueOnError)
	kubeconfig := fs.String("kubeconfig", "", "file that leads to the cluster; empty is $KUBECONFIG, ~/.kube/config, or the cluster that this runs in")
	rbac := fs.Bool("rbac", false, "also the namespace and the service account of the manager, and what it may do")
	of := installationFlags(fs)
	timeout := fs.Duration("timeout", time.Minute, "how long everything may take")
	if err := parse(fs, args, out, "Puts the definitions of the machine objects into a cluster, and waits until they are served.\n\n  manager install [flags]"); err != nil {
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
		tell(out, *of)
	}
	return nil
}

// installationFlags adds the flags of the commands that say what a manager may do.
func installationFlags(fs *pflag.FlagSet) *manifests.Installation {
	of := &manifests.Installation{}
	fs.StringVar(&of.Program, "program", manifests.ServiceAccount, "service account: "+manifests.ServiceAccount+" runs all controllers, "+
		manifests.MachineController+" and "+manifests.MachineControllerManager+" share them")
	fs.StringVar(&of.Machines, "namespace", "default", "of the machine objects; it has to exist")
	fs.StringVar(&of.Manager, "manager-namespace", "", `of the manager, its service account and its lease; empty is that of the machine objects followed by "-machinist"`)
	return of
}

// tell says how to start the manager, and in which order to delete.
func tell(out io.Writer, of manifests.Installation) {
	if of.Manager == "" {
		of.Manager = of.Machines + manifests.ManagerSuffix
	}
	_, _ = fmt.Fprintf(out, `service account %[2]s/%[3]s may do what a manager does; start it with
  --namespace=%[1]s --leader-elect-resource-namespace=%[2]s
to remove everything, delete the machines or the namespace %[1]s first, while the manager runs, and %[2]s when that is gone
`, of.Machines, of.Manager, of.Program)
	if of.Manager == of.Machines {
		_, _ = fmt.Fprintf(out, "warning: the deletion of the namespace %s ends the manager before the machines: their VMs stay\n", of.Machines)
	}
}

// printManifests prints definitions and access.
func printManifests(args []string, out io.Writer) error {
	fs := pflag.NewFlagSet("manager manifests", pflag.ContinueOnError)
	of := installationFlags(fs)
	deployment := fs.Bool("deployment", false, "also the Deployment, its PodDisruptionBudget, NetworkPolicy and priorities; its image has no registry")
	if err := parse(fs, args, out, "Prints the definitions of the machine objects, and what a manager may do.\n\n  manager manifests [flags] | kubectl apply -f -"); err != nil {
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
