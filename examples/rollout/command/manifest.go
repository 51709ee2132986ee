// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	// maxBytes is the maximum size of a file.
	maxBytes = 8 << 20
	// maxMachines is the maximum number of machines.
	maxMachines = 100_000
)

// readDeployment reads the MachineDeployment of a file, or of standard input if the file is "-".
// The name selects one of several; it may be empty if there is only one.
func (c Command) readDeployment(file, name string) (*v1alpha1.MachineDeployment, error) {
	in, source := c.In, "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		in, source = f, file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%s: larger than %d MiB", source, maxBytes>>20)
	}
	d, err := parseDeployment(data, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", source, oneLine(err))
	}
	return d, nil
}

// parseDeployment returns the only MachineDeployment of YAML documents, or the one with the name. It
// returns an error if that is not valid. Documents of other kinds are skipped.
func parseDeployment(data []byte, name string) (*v1alpha1.MachineDeployment, error) {
	found, err := decodeAll(data)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errors.New("no MachineDeployment in it")
	}
	names := make([]string, 0, len(found))
	for _, d := range found {
		names = append(names, d.Name)
	}
	if name != "" {
		found = slices.DeleteFunc(found, func(d *v1alpha1.MachineDeployment) bool { return d.Name != name && d.Namespace+"/"+d.Name != name })
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("no MachineDeployment %s in it, but %s", name, strings.Join(names, ", "))
	case len(found) > 1 && name == "":
		return nil, fmt.Errorf("%d MachineDeployments in it (%s): select one with --name", len(found), strings.Join(names, ", "))
	case len(found) > 1:
		return nil, fmt.Errorf("%d MachineDeployments %s in it: select one with --name NAMESPACE/NAME", len(found), name)
	}
	return found[0], check(found[0])
}

// decodeAll returns the MachineDeployments of YAML documents, in their order.
func decodeAll(data []byte) ([]*v1alpha1.MachineDeployment, error) {
	var found []*v1alpha1.MachineDeployment
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for i := 1; ; i++ {
		doc, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		var in []*v1alpha1.MachineDeployment
		if err == nil {
			in, err = decode(doc)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		found = append(found, in...)
	}
}

// decode returns the MachineDeployments of a document, which may be a list.
func decode(doc []byte) ([]*v1alpha1.MachineDeployment, error) {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Items           []any `json:"items"`
	}
	if err := yaml.Unmarshal(doc, &head); err != nil {
		return nil, err
	}
	switch head.Kind {
	case "MachineDeployment":
		if want := v1alpha1.SchemeGroupVersion.String(); head.APIVersion != want {
			return nil, fmt.Errorf("a MachineDeployment of %q, want %s", head.APIVersion, want)
		}
		d, err := decodeDeployment(doc)
		if err != nil {
			return nil, err
		}
		return []*v1alpha1.MachineDeployment{d}, nil
	case "List", "MachineDeploymentList":
		return decodeItems(head.Items)
	}
	return nil, nil
}

// decodeItems returns the MachineDeployments of a list.
func decodeItems(items []any) ([]*v1alpha1.MachineDeployment, error) {
	var found []*v1alpha1.MachineDeployment
	for i, item := range items {
		doc, err := yaml.Marshal(item)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
		in, err := decode(doc)
		if err != nil {
			return nil, err
		}
		found = append(found, in...)
	}
	return found, nil
}

// strict decodes MachineDeployments. Unknown fields are errors.
var strict = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(v1alpha1.SchemeGroupVersion, &v1alpha1.MachineDeployment{})
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
}()

// decodeDeployment decodes a MachineDeployment without its status. Unknown and repeated fields are
// errors.
func decodeDeployment(doc []byte) (*v1alpha1.MachineDeployment, error) {
	var fields map[string]any
	if err := yaml.UnmarshalStrict(doc, &fields); err != nil { // repeated keys are errors
		return nil, err
	}
	delete(fields, "status")
	doc, err := yaml.Marshal(fields)
	if err != nil {
		return nil, err
	}
	object, _, err := strict.Decode(doc, nil, &v1alpha1.MachineDeployment{})
	d, ok := object.(*v1alpha1.MachineDeployment)
	if err == nil && !ok {
		err = fmt.Errorf("decoded as %T", object)
	}
	switch {
	case runtime.IsStrictDecodingError(err):
		return nil, fmt.Errorf("%w: correct the name of the field, or delete the field", err)
	case err != nil:
		return nil, err
	}
	return d, nil
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
