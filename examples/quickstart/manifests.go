// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

//go:embed manifests/demo.yaml
var demoManifests []byte

// manifests are the objects that the demo applies.
type manifests struct {
	secrets     []*corev1.Secret
	classes     []*v1alpha1.MachineClass
	machines    []*v1alpha1.Machine
	sets        []*v1alpha1.MachineSet
	deployments []*v1alpha1.MachineDeployment
	// notes report what prepare changed or added.
	notes []string
}

func (m *manifests) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

// readManifests reads the file of the flags, or the built-in manifests.
func readManifests(file string) (*manifests, error) {
	var data []byte
	var err error
	switch file {
	case "":
		data = demoManifests
		file = "embedded manifests"
	case "-":
		data, err = io.ReadAll(os.Stdin)
		file = "standard input"
	default:
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	m, err := parseManifests(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// parseManifests decodes YAML documents strictly. Unknown fields and kinds are errors that name the
// document.
func parseManifests(data []byte) (*manifests, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	m := &manifests{}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for i := 1; ; i++ {
		doc, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = m.decode(decoder, doc)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %s", i, oneLine(err))
		}
	}
	if len(m.machines)+len(m.sets)+len(m.deployments)+len(m.classes) == 0 {
		return nil, errors.New("contains no Machine, MachineSet, MachineDeployment or MachineClass")
	}
	return m, nil
}

func (m *manifests) decode(decoder runtime.Decoder, doc []byte) error {
	if isBlank(doc) {
		return nil
	}
	object, _, err := decoder.Decode(doc, nil, nil)
	switch {
	case runtime.IsStrictDecodingError(err):
		return fmt.Errorf("%w: correct the name of the field, or delete the field", err)
	case err != nil:
		return err
	}
	switch o := object.(type) {
	case *corev1.List:
		for i, item := range o.Items {
			if err := m.decode(decoder, item.Raw); err != nil {
				return fmt.Errorf("item %d: %w", i+1, err)
			}
		}
	case *corev1.Secret:
		m.secrets = append(m.secrets, o)
	case *v1alpha1.MachineClass:
		m.classes = append(m.classes, o)
	case *v1alpha1.Machine:
		m.machines = append(m.machines, o)
	case *v1alpha1.MachineSet:
		m.sets = append(m.sets, o)
	case *v1alpha1.MachineDeployment:
		m.deployments = append(m.deployments, o)
	default:
		return fmt.Errorf("kind %s is not supported by this demo", object.GetObjectKind().GroupVersionKind().Kind)
	}
	return nil
}

// isBlank reports whether a document is empty except for comments.
func isBlank(doc []byte) bool {
	for line := range bytes.Lines(doc) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}

// oneLine returns the text of an error in one line.
func oneLine(err error) string { return oneLineOf(err.Error()) }
