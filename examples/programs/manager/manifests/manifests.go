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

//go:embed common/*.yaml manager/*.yaml machine-controller/*.yaml machine-controller-manager/*.yaml
var files embed.FS

const (
	// ServiceAccount is the name of the service account of a manager that runs all controllers.
	ServiceAccount = "machinist"
	// MachineController is the name of the service account of a machine-controller.
	MachineController = "machine-controller"
	// MachineControllerManager is the name of the service account of a machine-controller-manager.
	MachineControllerManager = "machine-controller-manager"
	// MetricsReader is the ClusterRole for access to the metrics of any manager.
	MetricsReader = "machinist-metrics-reader"
	// AccessFinalizer is the finalizer of that RoleBinding. The manager removes it when no object
	// in the namespace needs the manager.
	AccessFinalizer = "machinist.dev/access"
	// ManagerSuffix is the end of the default name of the manager's namespace. It follows the
	// namespace of the machines.
	ManagerSuffix = "-machinist"
	// defaultNamespace and defaultOwn are the namespaces in the files.
	defaultNamespace, defaultOwn = "default", "default-machinist"
)

// AccessBinding returns the name of the RoleBinding of a service account in the namespace of the
// machines.
func AccessBinding(account string) string { return account + "-control" }

// Installation selects a program and its namespaces.
type Installation struct {
	// Program is the service account of the program: [ServiceAccount], [MachineController] or
	// [MachineControllerManager]. Empty means [ServiceAccount].
	Program string
	// Machines is the namespace of the machine objects.
	Machines string
	// Manager is the namespace of the manager, its service account and its lease. Empty means
	// Machines followed by "-machinist". If it is the same as Machines, the deletion of the
	// namespace ends the manager before the machines.
	Manager string
}

// folders are the folders of the files of a program, by service account.
var folders = map[string]string{ServiceAccount: "manager", MachineController: MachineController, MachineControllerManager: MachineControllerManager}

// complete sets the defaults. It returns [ErrNamespace] for an invalid namespace, and [ErrProgram]
// for an unknown program.
func (n Installation) complete() (Installation, error) {
	if n.Program == "" {
		n.Program = ServiceAccount
	}
	if folders[n.Program] == "" {
		return n, fmt.Errorf("%q: %w: %s, %s, %s", n.Program, ErrProgram, ServiceAccount, MachineController, MachineControllerManager)
	}
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

// ErrNamespace means that a text is not the name of a namespace.
var ErrNamespace = errors.New("not the name of a namespace")

// ErrProgram means that a text is not the name of a program.
var ErrProgram = errors.New("not one of the programs")

// Definitions returns the definitions of the machine objects, sorted by name. The caller owns them.
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

// Access returns the namespace, the service account and the roles of a program. The caller owns
// them. Errors are [ErrNamespace] and [ErrProgram].
func Access(of Installation) ([]*unstructured.Unstructured, error) {
	return of.objects(inCommon("namespace"), inProgram("serviceaccount"), inProgram("control"), inCommon("shards"), inProgram("target"))
}

// Deployment returns the Deployment of a program, its budget, network policy and priorities, and
// the role for its metrics. Its image has no registry. The caller owns them. Errors are those of
// [Access].
func Deployment(of Installation) ([]*unstructured.Unstructured, error) {
	return of.objects(inCommon("priority"), inCommon("metrics"), inProgram("flowcontrol"), inProgram("deployment"))
}

// file returns the path of a file for the folder of a program.
type file func(folder string) string

func inCommon(name string) file { return func(string) string { return "common/" + name + ".yaml" } }

func inProgram(name string) file {
	return func(folder string) string { return folder + "/" + name + ".yaml" }
}

// objects reads files for an installation.
func (n Installation) objects(named ...file) ([]*unstructured.Unstructured, error) {
	n, err := n.complete()
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, f := range named {
		name := f(folders[n.Program])
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
		n.move(o.Object)
	}
	return all, nil
}

// YAML returns objects as a stream of documents, for kubectl apply -f -.
func YAML(objects []*unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	for _, o := range objects {
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(data)
	}
	return out.Bytes(), nil
}

// move replaces the default namespaces: in fields and lists, in names that contain one, in the
// flags of a program, and in the expressions of admission policies.
func (n Installation) move(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			switch value := value.(type) {
			case string:
				v[key] = n.moved(key, value)
			case []any:
				for i, item := range value {
					if text, ok := item.(string); ok {
						value[i] = n.moved(key, text)
					}
				}
				n.move(value)
			default:
				n.move(value)
			}
		}
	case []any:
		for _, item := range v {
			n.move(item)
		}
	}
}

// moved returns one field for move.
func (n Installation) moved(key, text string) string {
	switch key {
	case "args":
		text = strings.Replace(text, "--namespace="+defaultNamespace, "--namespace="+n.Machines, 1)
		return strings.Replace(text, "--leader-elect-resource-namespace="+defaultOwn, "--leader-elect-resource-namespace="+n.Manager, 1)
	case "namespaces", "namespace", "name", "policyName":
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
