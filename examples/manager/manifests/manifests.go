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

// Installation says which program is installed, and where.
type Installation struct {
	// Program is the service account of the program: [ServiceAccount], [MachineController] or
	// [MachineControllerManager]. Empty means [ServiceAccount].
	Program string
	// Machines is the namespace of the machine objects.
	Machines string
	// Manager is the namespace of the manager, its service account and its lease.
	// Empty means the other one followed by "-machinist". If both are the same, the
	// deletion of the namespace ends the manager before the machines.
	Manager string
}

// folders are where the files of a program are, by its service account.
var folders = map[string]string{ServiceAccount: "manager", MachineController: MachineController, MachineControllerManager: MachineControllerManager}

// complete fills in what is empty. What is no name of a namespace is [ErrNamespace], and an
// unknown program is [ErrProgram].
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

// ErrNamespace says that a text is no name of a namespace.
var ErrNamespace = errors.New("not the name of a namespace")

// ErrProgram says that a text is not the name of a program.
var ErrProgram = errors.New("not one of the programs")

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

// Access returns the namespace and the service account of a program, and what the program may
// do. The caller owns them. Errors are [ErrNamespace] and [ErrProgram].
func Access(of Installation) ([]*unstructured.Unstructured, error) {
	return of.objects(inCommon("namespace"), inProgram("serviceaccount"), inProgram("control"), inCommon("shards"), inProgram("target"))
}

// Deployment returns the Deployment of a program and what belongs to it: its budget, its network
// policy, its priorities in the cluster and at the API server, and who may read its metrics. Its
// image has no registry. The caller owns them. Errors are those of [Access].
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

// YAML returns objects as one stream of documents, for kubectl apply -f -.
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

// move puts the namespaces in place of the default ones: in every field and list of that
// name, in the names that carry one, in the flags of a program, and in what admission policies
// say of the service account.
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

// moved is what move makes of one field.
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
