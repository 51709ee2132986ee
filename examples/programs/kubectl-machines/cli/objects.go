// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Object is an object of a cluster.
type Object interface {
	metav1.Object
	runtime.Object
}

// Named returns the kind and the name of an argument KIND/NAME, or NAME for the first of the kinds.
func Named(arg string, kinds ...explain.Kind) (explain.Kind, string, error) {
	kind, name, found := strings.Cut(arg, "/")
	if !found {
		kind, name = kinds[0].Names[0], arg
	}
	at := slices.IndexFunc(kinds, func(k explain.Kind) bool { return k.Has(kind) })
	if at < 0 {
		var want []string
		for _, k := range kinds {
			want = append(want, k.Names[0])
		}
		return explain.Kind{}, "", Refuse("%q is not a %s", arg, strings.Join(want, ", "))
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return explain.Kind{}, "", Refuse("%q is not a valid name of a %s", name, kinds[at].Names[0])
	}
	return kinds[at], name, nil
}

// Get reads an object.
func (c Clients) Get(ctx context.Context, kind explain.Kind, name string) (Object, error) {
	got, err := client.New(c.Machines, nil).Get(ctx, kind.New(metav1.ObjectMeta{Namespace: c.Namespace, Name: name}))
	if err != nil {
		return nil, err
	}
	return got.(Object), nil //nolint:forcetypeassert // of the type of New
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
func (e *Env) Complete(kinds ...explain.Kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []cobra.Completion
		another := len(args) == 0 || cmd.ValidateArgs(append(slices.Clone(args), "another")) == nil
		if c, err := e.Connect(); err == nil && another {
			for i, kind := range kinds {
				all, _ := client.New(c.Machines, c.Target).List(cmd.Context(), kind.New(metav1.ObjectMeta{Namespace: c.Namespace}), "")
				for _, o := range all {
					name := kind.Names[0] + "/" + o.GetName()
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
