// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/json"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// maxMachines is the maximum number of machines.
const maxMachines = 100_000

// readDeployment reads the MachineDeployment of a file, or of in if the file is "-". The name selects
// one of several; it may be empty if there is only one. Objects of other kinds are skipped.
func readDeployment(in io.Reader, file, name string) (*v1alpha1.MachineDeployment, error) {
	source, from := file, resource.NewLocalBuilder().Unstructured()
	if file == "-" {
		source, from = "standard input", from.Stream(in, "standard input")
	} else {
		from = from.FilenameParam(false, &resource.FilenameOptions{Filenames: []string{file}})
	}
	objects, err := from.Flatten().Do().Infos()
	d := (*v1alpha1.MachineDeployment)(nil)
	if err == nil {
		d, err = only(objects, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s", source, cli.OneLine(err))
	}
	return d, nil
}

// only returns the only MachineDeployment of objects, or the one with the name. It returns an error if
// that is not valid.
func only(objects []*resource.Info, name string) (*v1alpha1.MachineDeployment, error) {
	var found []*v1alpha1.MachineDeployment
	var names []string
	for _, o := range objects {
		u, ok := o.Object.(*unstructured.Unstructured)
		if !ok || u.GetKind() != "MachineDeployment" {
			continue
		}
		if want := v1alpha1.SchemeGroupVersion.String(); u.GetAPIVersion() != want {
			return nil, fmt.Errorf("a MachineDeployment of %q, want %s", u.GetAPIVersion(), want)
		}
		names = append(names, u.GetName())
		if name != "" && u.GetName() != name && u.GetNamespace()+"/"+u.GetName() != name {
			continue
		}
		delete(u.Object, "status")
		d := &v1alpha1.MachineDeployment{}
		data, err := u.MarshalJSON()
		var unknown []error
		if err == nil {
			unknown, err = json.UnmarshalStrict(data, d)
		}
		switch {
		case err != nil:
			return nil, err
		case len(unknown) > 0:
			return nil, fmt.Errorf("%w: correct the name of the field, or delete the field", unknown[0])
		}
		found = append(found, d)
	}
	switch {
	case len(names) == 0:
		return nil, errors.New("no MachineDeployment in it")
	case len(found) == 0:
		return nil, fmt.Errorf("no MachineDeployment %s in it, but %s", name, strings.Join(names, ", "))
	case len(found) > 1 && name == "":
		return nil, fmt.Errorf("%d MachineDeployments in it (%s): select one by its name", len(found), strings.Join(names, ", "))
	case len(found) > 1:
		return nil, fmt.Errorf("%d MachineDeployments %s in it: select one by NAMESPACE/NAME", len(found), name)
	}
	return found[0], check(found[0])
}

// check returns why a deployment cannot be simulated, or nil.
func check(d *v1alpha1.MachineDeployment) error {
	switch {
	case d.Name == "":
		return errors.New("metadata.name is missing")
	case len(validation.IsDNS1123Subdomain(d.Name)) > 0: // its machines would never be created
		return fmt.Errorf("metadata.name %q: %s", d.Name, validation.IsDNS1123Subdomain(d.Name)[0])
	case d.Spec.Replicas > maxMachines:
		return fmt.Errorf("spec.replicas is %d, want at most %d", d.Spec.Replicas, maxMachines)
	}
	return deployment.Validate(d).ToAggregate()
}
