// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Object is an object of a cluster.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind is a kind of objects with the names that users write.
type Kind struct {
	names []string // the first is the one of messages
	empty func(metav1.ObjectMeta) Object
}

// The kinds of objects that commands are about.
var (
	Nodes    = Kind{[]string{"node", "nodes", "no"}, func(m metav1.ObjectMeta) Object { return &corev1.Node{ObjectMeta: m} }}
	Machines = Kind{[]string{"machine", "machines", "mc"}, func(m metav1.ObjectMeta) Object {
		return &v1alpha1.Machine{ObjectMeta: m}
	}}
	Sets = Kind{[]string{"machineset", "machinesets", "mcs"}, func(m metav1.ObjectMeta) Object {
		return &v1alpha1.MachineSet{ObjectMeta: m}
	}}
	Deployments = Kind{[]string{"machinedeployment", "machinedeployments", "mcd"}, func(m metav1.ObjectMeta) Object {
		return &v1alpha1.MachineDeployment{ObjectMeta: m}
	}}
)

// Named returns the kind and the name of an argument KIND/NAME, or NAME for the first of the kinds.
func Named(arg string, kinds ...Kind) (Kind, string, error) {
	kind, name, found := strings.Cut(arg, "/")
	if !found {
		kind, name = kinds[0].names[0], arg
	}
	kind = strings.TrimSuffix(strings.ToLower(kind), "."+v1alpha1.GroupName)
	at := slices.IndexFunc(kinds, func(k Kind) bool { return slices.Contains(k.names, kind) })
	if at < 0 {
		var want []string
		for _, k := range kinds {
			want = append(want, k.names[0])
		}
		return Kind{}, "", Refuse("%q is not a %s", arg, strings.Join(want, ", "))
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return Kind{}, "", Refuse("%q is not a valid name of a %s", name, kinds[at].names[0])
	}
	return kinds[at], name, nil
}

// Get reads an object.
func (c Clients) Get(ctx context.Context, kind Kind, name string) (Object, error) {
	got, err := client.New(c.Machines, nil).Get(ctx, kind.empty(metav1.ObjectMeta{Namespace: c.Namespace, Name: name}))
	if err != nil {
		return nil, err
	}
	return got.(Object), nil //nolint:forcetypeassert // of the type of empty
}

// Patch writes the differences between two versions of an object, if it has not been changed since the
// first. Fields that this program does not know are kept.
func (c Clients) Patch(ctx context.Context, before, next Object) (Object, error) {
	unnamed := before.DeepCopyObject().(Object) //nolint:forcetypeassert // of the same type
	unnamed.SetUID("")                          // so that the patch has both, as preconditions
	unnamed.SetResourceVersion("")
	old, err := json.Marshal(unnamed)
	if err != nil {
		return nil, err
	}
	want, err := json.Marshal(next)
	if err != nil {
		return nil, err
	}
	data, err := jsonmergepatch.CreateThreeWayJSONMergePatch(old, want, old)
	if err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{FieldManager: "kubectl-machines"}
	switch api := c.Machines.MachineV1alpha1(); before.(type) {
	case *v1alpha1.Machine:
		return api.Machines(c.Namespace).Patch(ctx, before.GetName(), types.MergePatchType, data, options)
	case *v1alpha1.MachineSet:
		return api.MachineSets(c.Namespace).Patch(ctx, before.GetName(), types.MergePatchType, data, options)
	default:
		return api.MachineDeployments(c.Namespace).Patch(ctx, before.GetName(), types.MergePatchType, data, options)
	}
}

// Complete returns a completion of the first argument, and of others if the command has any number of them,
// with the names of objects of the kinds.
func (e *Env) Complete(kinds ...Kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []cobra.Completion
		another := len(args) == 0 || cmd.ValidateArgs(append(slices.Clone(args), "another")) == nil
		if c, err := e.Connect(); err == nil && another {
			for i, kind := range kinds {
				all, _ := client.New(c.Machines, c.Target).List(cmd.Context(), kind.empty(metav1.ObjectMeta{Namespace: c.Namespace}), "")
				for _, o := range all {
					name := kind.names[0] + "/" + o.GetName()
					if i == 0 {
						name = o.GetName()
					}
					if !slices.Contains(args, name) {
						names = append(names, name)
					}
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
