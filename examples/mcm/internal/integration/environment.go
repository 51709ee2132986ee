// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/machinist-dev/machinist/examples/programs/manager/apptest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var errNoTracker = errors.New("NewIntegrationTestFramework: the tracker is nil")

// The variables of the environment.
const (
	controlKubeconfig = "CONTROL_KUBECONFIG"
	targetKubeconfig  = "TARGET_KUBECONFIG"
	controlNamespace  = "CONTROL_CLUSTER_NAMESPACE"
	clusterName       = "TARGET_CLUSTER_NAME"
	firstClass        = "MACHINECLASS_V1"
	nextClass         = "MACHINECLASS_V2"
	tagsAreStrings    = "TAGS_ARE_STRINGS"
	isSeed            = "IS_CONTROL_CLUSTER_SEED"
	deploymentName    = "MACHINE_CONTROLLER_MANAGER_DEPLOYMENT_NAME"
	agentSecret       = "GNA_SECRET_NAME"
	preserve          = "PRESERVE_CRD_AT_END"
)

// The files of a provider project, from the folder of its go.mod.
const (
	program   = "cmd/machine-controller"
	logs      = ".ci/controllers-test/logs"
	patchFile = ".ci/controllers-test/machine-class-patch.json"
)

// agentLabel is the label of Nodes whose value is the name of the Secret of Gardener's node agent.
const agentLabel = "worker.gardener.cloud/gardener-node-agent-secret-name"

// environment is what the variables say.
type environment struct {
	options apptest.Options
	cluster string // TARGET_CLUSTER_NAME
	patch   []byte // a merge patch of both classes
}

// readEnvironment reads the variables, and the files that they name. The error has a line for each variable
// that is missing or wrong.
func readEnvironment() (*environment, error) {
	r := reader{}
	e := &environment{cluster: r.required(clusterName)}
	seed := r.bool(isSeed)
	e.options = apptest.Options{
		ControlKubeconfig: r.required(controlKubeconfig), TargetKubeconfig: cmp.Or(os.Getenv(targetKubeconfig), os.Getenv(controlKubeconfig)),
		Namespace: cmp.Or(os.Getenv(controlNamespace), "default"), KeepDefinitions: r.bool(preserve),
		Class: r.class(firstClass), NextClass: r.class(nextClass),
	}
	switch {
	case seed && e.options.Namespace == "default":
		r.wrong(controlNamespace, errors.New("the namespace default is none of a seed"))
	case seed:
		e.options.Deployment = r.required(deploymentName)
	case os.Getenv(firstClass) == "":
		r.wrong(firstClass, errors.New("a file with a MachineClass is required"))
	}
	if name := os.Getenv(agentSecret); name != "" {
		e.options.NodeLabels = map[string]string{agentLabel: name}
	}
	root, err := projectRoot()
	if err != nil {
		return nil, err
	}
	e.options.Program, e.options.LogDir = filepath.Join(root, program), filepath.Join(root, logs)
	if e.patch, err = tagsPatch(e.cluster); !r.bool(tagsAreStrings) {
		e.patch, err = os.ReadFile(filepath.Join(root, patchFile))
	}
	if err = errors.Join(append(r.errs, err)...); err != nil {
		return nil, err
	}
	return e, os.Setenv(controlNamespace, e.options.Namespace) // trackers and tests of providers read it
}

// reader collects what is wrong.
type reader struct{ errs []error }

// wrong returns the error of a variable.
func wrong(name string, err error) error {
	return fmt.Errorf("environment variable %s: %w", name, err)
}

func (r *reader) wrong(name string, err error) { r.errs = append(r.errs, wrong(name, err)) }

func (r *reader) required(name string) string {
	value := os.Getenv(name)
	if value == "" {
		r.wrong(name, errors.New("a value is required"))
	}
	return value
}

func (r *reader) bool(name string) bool {
	value := os.Getenv(name)
	if !slices.Contains([]string{"", "true", "false"}, value) {
		r.wrong(name, fmt.Errorf("%q is not true or false", value))
	}
	return value == "true"
}

// class reads the file of a class. It returns nil if the variable is empty.
func (r *reader) class(name string) *v1alpha1.MachineClass {
	file := os.Getenv(name)
	if file == "" {
		return nil
	}
	data, err := os.ReadFile(file)
	class := &v1alpha1.MachineClass{}
	if err == nil {
		err = yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), len(data)).Decode(class)
	}
	if err == nil && class.Kind != v1alpha1.MachineClassKind {
		err = fmt.Errorf("%s: the first object has the kind %q, not %s", file, class.Kind, v1alpha1.MachineClassKind)
	}
	if err != nil {
		r.wrong(name, err)
	}
	return class
}

// projectRoot returns the folder of the go.mod of the project.
func projectRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output() //nolint:noctx // it ends at once
	file := string(bytes.TrimSpace(out))
	if err != nil || file == "" || file == os.DevNull {
		return "", fmt.Errorf("go env GOMOD names no module: %w", cmp.Or(err, os.ErrNotExist))
	}
	return filepath.Dir(file), nil
}

// tagsPatch returns the tags of a cloud whose tags are strings.
func tagsPatch(cluster string) ([]byte, error) {
	tags := []string{cluster, "kubernetes-io-cluster-" + cluster, "kubernetes-io-role-integration-test"}
	return json.Marshal(map[string]map[string][]string{"providerSpec": {"tags": tags}})
}

// complete reads what the variables name in the control cluster, and patches both classes.
func (e *environment) complete(ctx context.Context, control *Cluster) error {
	o := &e.options
	if _, err := control.Clientset.CoreV1().Namespaces().Get(ctx, o.Namespace, metav1.GetOptions{}); err != nil {
		return wrong(controlNamespace, err)
	}
	if o.Deployment != "" {
		if _, err := control.Clientset.AppsV1().Deployments(o.Namespace).Get(ctx, o.Deployment, metav1.GetOptions{}); err != nil {
			return wrong(deploymentName, err)
		}
	}
	if o.Class == nil { // the first one of a seed
		list, err := control.McmClient.MachineV1alpha1().MachineClasses(o.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		list.Items = slices.DeleteFunc(list.Items, func(c v1alpha1.MachineClass) bool {
			return c.Name == apptest.ClassName || c.Name == apptest.NextClassName // of a test that was killed
		})
		if len(list.Items) == 0 {
			return wrong(firstClass, fmt.Errorf("a file is required, as namespace %s has no MachineClass", o.Namespace))
		}
		o.Class = &list.Items[0]
	}
	for _, class := range []*v1alpha1.MachineClass{o.Class, o.NextClass} {
		if err := patchClass(class, e.patch); err != nil {
			return fmt.Errorf("%s: %w", patchFile, err)
		}
	}
	return nil
}

// patchClass applies a JSON merge patch to a class. Nil stays.
func patchClass(class *v1alpha1.MachineClass, patch []byte) error {
	if class == nil {
		return nil
	}
	data, err := json.Marshal(class)
	if err != nil {
		return err
	}
	if data, err = jsonpatch.MergePatch(data, patch); err != nil {
		return err
	}
	*class = v1alpha1.MachineClass{}
	return json.Unmarshal(data, class)
}
