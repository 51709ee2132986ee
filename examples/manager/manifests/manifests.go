// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

//go:embed *.yaml
var files embed.FS

const (
	// ServiceAccount is the name of the manager's service account.
	ServiceAccount = "machinist"
	// defaultNamespace is that which the files state.
	defaultNamespace = "default"
)

// ErrNamespace says that a text is no name of a namespace.
var ErrNamespace = errors.New("not the name of a namespace")

// Definitions returns the definitions of the machine objects, in the order of
// their names. The caller owns them.
func Definitions() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, crd := range v1alpha1.CRDs() {
		objects, err := decode(crd.YAML)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", crd.Name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// Access returns the service account of the manager and what it may do, for a
// manager in a namespace. The caller owns them. What is no name of a namespace is
// [ErrNamespace].
func Access(namespace string) ([]*unstructured.Unstructured, error) {
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return nil, fmt.Errorf("%q: %w", namespace, ErrNamespace)
	}
	var all []*unstructured.Unstructured
	for _, name := range []string{"serviceaccount.yaml", "control.yaml", "target.yaml"} {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, err // cannot happen: the file is embedded
		}
		objects, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, objects...)
	}
	for _, o := range all {
		move(o.Object, namespace)
	}
	return all, nil
}

// YAML returns definitions and access as one stream of documents, for kubectl
// apply -f -.
func YAML(namespace string) ([]byte, error) {
	definitions, err := Definitions()
	if err != nil {
		return nil, err
	}
	access, err := Access(namespace)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, o := range append(definitions, access...) {
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(data)
	}
	return out.Bytes(), nil
}

// move puts the namespace in place of the default one: in every field of that
// name, in the names that carry it, and in what admission policies say of the
// service account.
func move(v any, namespace string) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if text, ok := value.(string); ok {
				v[key] = moved(key, text, namespace)
			} else {
				move(value, namespace)
			}
		}
	case []any:
		for _, item := range v {
			move(item, namespace)
		}
	}
}

// moved is what move makes of one field.
func moved(key, text, namespace string) string {
	switch key {
	case "namespace":
		if text == defaultNamespace {
			return namespace
		}
	case "name", "policyName":
		for _, separator := range []string{":", "."} {
			if prefix, carries := strings.CutSuffix(text, separator+defaultNamespace); carries {
				return prefix + separator + namespace
			}
		}
	case "expression":
		return strings.ReplaceAll(text, "system:serviceaccount:"+defaultNamespace+":", "system:serviceaccount:"+namespace+":")
	}
	return text
}

// decode reads the documents of a YAML stream.
func decode(data []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := documents.Decode(&o.Object)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case len(o.Object) > 0:
			all = append(all, o)
		}
	}
}
