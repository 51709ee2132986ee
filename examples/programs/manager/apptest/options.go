// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Options say what is checked, and in which clusters.
type Options struct {
	// ControlKubeconfig is the kubeconfig file of the control cluster, which has the machine objects. Required.
	ControlKubeconfig string
	// TargetKubeconfig is the kubeconfig file of the target cluster, which machines join. Empty means the control cluster.
	TargetKubeconfig string
	// Namespace is an existing namespace of the control cluster. Empty means "default". The controllers act on all machine
	// objects in it.
	Namespace string

	// Class is the class of the first machines. Required. Its Secrets exist in the control cluster. It is created as [ClassName]: its own
	// name and namespace are ignored.
	Class *v1alpha1.MachineClass
	// NextClass is the class to which machines are updated, created as [NextClassName]. Nil means a copy of Class.
	NextClass *v1alpha1.MachineClass
	// NodeLabels are labels of the Nodes of all machines. Nil means none.
	NodeLabels map[string]string

	// Driver is the driver that is checked, in this process. Nil means Program.
	Driver driver.Driver
	// Program is the folder of the main package of a machine controller with the flags of package options, such as
	// "../../cmd/machine-controller". It is built with the go command and started with the environment of this process.
	// Empty means Driver.
	Program string

	// Orphans returns the names of the VMs and other resources that the cloud has for the class. secret has the data of both
	// Secrets of the class. It is called before the first machine is created, and in the end until it returns nothing else than at
	// first. Nil means the VMs and side resources that Driver lists; with Program it is required.
	Orphans func(ctx context.Context, class *v1alpha1.MachineClass, secret *corev1.Secret) ([]string, error)

	// Deployment is the name of a Deployment in Namespace that runs the controllers of an existing installation. It is scaled to 0 replicas for the time
	// of the checks. Empty means that there is none: then [Open] installs the definitions of the machine objects.
	Deployment string
	// KeepDefinitions leaves the definitions that Open has installed. Otherwise [Suite.Close] deletes those that did not exist
	// before, once they have no objects.
	KeepDefinitions bool

	// LogDir is the folder of the logs of the controllers, which stay. It is created. Empty means a new folder for temporary
	// files.
	LogDir string
	// Timeout limits each wait of a check. Zero or less means 5 minutes.
	Timeout time.Duration
	// Interval is the time between two looks at the clusters. Zero or less means 2 seconds.
	Interval time.Duration
}

// complete returns the options with their defaults, and an error that names each field that is missing or wrong.
func (o Options) complete() (Options, error) {
	var errs []error
	o.TargetKubeconfig = cmp.Or(o.TargetKubeconfig, o.ControlKubeconfig)
	for _, file := range []struct {
		field string
		path  *string
	}{{"ControlKubeconfig", &o.ControlKubeconfig}, {"TargetKubeconfig", &o.TargetKubeconfig}, {"Program", &o.Program}} {
		if *file.path == "" {
			continue
		}
		absolute, err := filepath.Abs(*file.path)
		if err == nil {
			_, err = os.Stat(absolute)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file.field, err))
		}
		*file.path = absolute
	}
	for _, wrong := range []struct {
		is   bool
		text string
	}{
		{o.ControlKubeconfig == "", "ControlKubeconfig: a file is required"},
		{o.Class == nil, "Class: a MachineClass is required"},
		{o.Orphans == nil && o.Program != "", "Orphans: a function is required with Program"},
		{o.Driver == nil && o.Program == "", "Driver or Program: one is required"},
		{o.Driver != nil && o.Program != "", "Driver and Program: only one is possible"},
	} {
		if wrong.is {
			errs = append(errs, errors.New(wrong.text))
		}
	}
	if o.Orphans == nil && o.Driver != nil {
		o.Orphans = listed(o.Driver)
	}
	o.Namespace = cmp.Or(o.Namespace, corev1.NamespaceDefault)
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Minute
	}
	if o.Interval <= 0 {
		o.Interval = 2 * time.Second
	}
	return o, errors.Join(errs...)
}
