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
	// ServiceAccount is the name of the service account of a manager that runs all controllers.
	ServiceAccount = "machinist"
	// MachineController is the name of the service account of a machine-controller.
	MachineController = "machine-controller"
	// MachineControllerManager is the name of the service account of a machine-controller-manager.
	MachineControllerManager = "machine-controller-manager"
	// MetricsReader is the ClusterRole of those that may read the metrics of any manager.
	MetricsReader = "machinist-metrics-reader"
	// AccessFinalizer is the finalizer of that RoleBinding: the manager takes it away
	// when nothing there needs the manager any more.
	AccessFinalizer = "machinist.dev/access"
	// ManagerSuffix follows the namespace of the machines in the name of that of the
	// manager, unless another is given.
	ManagerSuffix = "-machinist"
	// defaultNamespace and defaultOwn are those which the files state.
	defaultNamespace, defaultOwn = "default", "default-machinist"
)

// AccessBinding returns the name of the RoleBinding that lets a service account act in the
// namespace of the machines.
func AccessBinding(account string) string { return account + "-control" }

// Namespaces are those of a manager.
type Namespaces struct {
	// Machines is the namespace of the machine objects.
	Machines string
	// Manager is the namespace of the manager, its service account and its lease.
	// Empty means the other one followed by "-machinist". If both are the same, the
	// deletion of the namespace ends the manager before the machines.
	Manager string
}

// complete fills in what is empty. What is no name of a namespace is [ErrNamespace].
func (n Namespaces) complete() (Namespaces, error) {
	if n.Manager == "" {
		n.Manager = n.Machines + ManagerSuffix
	}
	for _, name := range []string{n.Machines, n.Manager} {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return n, fmt.Errorf("%q: %w", name, ErrNamespace)
		}
	}
	return n, nil
}

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

// Access returns the namespace and the service account of the manager, and what it
// may do. The caller owns them. What is no name of a namespace is [ErrNamespace].
func Access(of Namespaces) ([]*unstructured.Unstructured, error) {
	of, err := of.complete()
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, name := range []string{"serviceaccount.yaml", "control.yaml", "shards.yaml", "target.yaml"} {
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
		of.move(o.Object)
	}
	return all, nil
}

// YAML returns definitions and access as one stream of documents, for kubectl
// apply -f -.
func YAML(of Namespaces) ([]byte, error) {
	definitions, err := Definitions()
	if err != nil {
		return nil, err
	}
	access, err := Access(of)
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

// move puts the namespaces in place of the default ones: in every field of that
// name, in the names that carry one, and in what admission policies say of the
// service account.
func (n Namespaces) move(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if text, ok := value.(string); ok {
				v[key] = n.moved(key, text)
			} else {
				n.move(value)
			}
		}
	case []any:
		for _, item := range v {
			n.move(item)
		}
	}
}

// moved is what move makes of one field.
func (n Namespaces) moved(key, text string) string {
	switch key {
	case "namespace", "name", "policyName":
		switch {
		case text == defaultOwn:
			return n.Manager
		case text == defaultNamespace && key == "namespace":
			return n.Machines
		}
		for _, separator := range []string{":", "."} {
			if prefix, carries := strings.CutSuffix(text, separator+defaultNamespace); carries {
				return prefix + separator + n.Machines
			}
		}
	case "kubernetes.io/metadata.name": // of a selector
		if text == defaultNamespace {
			return n.Machines
		}
	case "expression":
		return strings.ReplaceAll(text, "system:serviceaccount:"+defaultOwn+":", "system:serviceaccount:"+n.Manager+":")
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
