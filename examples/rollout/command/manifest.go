// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

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
	// mostBytes is how much of a file is read.
	mostBytes = 8 << 20
	// mostMachines is how many machines are played.
	mostMachines = 100_000
)

// readDeployment reads the first MachineDeployment of a file, or of standard input if its name
// is "-".
func (c Command) readDeployment(file string) (*v1alpha1.MachineDeployment, error) {
	in, name := c.In, "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		in, name = f, file
	}
	data, err := io.ReadAll(io.LimitReader(in, mostBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > mostBytes {
		return nil, fmt.Errorf("%s: larger than %d MiB", name, mostBytes>>20)
	}
	d, err := parseDeployment(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", name, oneLine(err))
	}
	return d, nil
}

// parseDeployment returns the first MachineDeployment of the documents, which has to be valid.
// Documents of other kinds are skipped.
func parseDeployment(data []byte) (*v1alpha1.MachineDeployment, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for i := 1; ; i++ {
		doc, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("no MachineDeployment in it")
		}
		var d *v1alpha1.MachineDeployment
		if err == nil {
			d, err = decode(doc)
		}
		if err == nil && d != nil {
			err = check(d)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		if d != nil {
			return d, nil
		}
	}
}

// decode returns the MachineDeployment of a document, or of a list in it; nil if there is none.
func decode(doc []byte) (*v1alpha1.MachineDeployment, error) {
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
		return decodeDeployment(doc)
	case "List", "MachineDeploymentList":
		for i, item := range head.Items {
			doc, err := yaml.Marshal(item)
			if err != nil {
				return nil, fmt.Errorf("item %d: %w", i+1, err)
			}
			if d, err := decode(doc); err != nil || d != nil {
				return d, err
			}
		}
	}
	return nil, nil
}

// strict decodes MachineDeployments, and names the fields that they do not have.
var strict = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(v1alpha1.SchemeGroupVersion, &v1alpha1.MachineDeployment{})
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
}()

// decodeDeployment decodes strictly, so that no field is lost by a slip of the pen. The status
// is not read: it is of a world that is not played.
func decodeDeployment(doc []byte) (*v1alpha1.MachineDeployment, error) {
	var fields map[string]any
	if err := yaml.UnmarshalStrict(doc, &fields); err != nil { // finds keys that are there twice
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
		err = fmt.Errorf("it became a %T", object)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// check says why a deployment cannot be played.
func check(d *v1alpha1.MachineDeployment) error {
	switch {
	case d.Name == "":
		return errors.New("metadata.name is missing")
	case len(validation.IsDNS1123Subdomain(d.Name)) > 0: // its machines are never created then
		return fmt.Errorf("metadata.name %q: %s", d.Name, validation.IsDNS1123Subdomain(d.Name)[0])
	case d.Spec.Replicas > mostMachines:
		return fmt.Errorf("spec.replicas is %d, want at most %d", d.Spec.Replicas, mostMachines)
	}
	return deployment.Validate(d).ToAggregate()
}
