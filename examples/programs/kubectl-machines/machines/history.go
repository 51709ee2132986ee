// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// changeCause is the annotation that kubectl shows in a history.
const changeCause = "kubernetes.io/change-cause"

func newHistory(e *cli.Env) *cobra.Command {
	var revision int64
	cmd := &cobra.Command{
		Use: "history NAME", Short: "Show the revisions, and what changed in the template from each to the next",
		Example: "  kubectl machines rollout history workers\n  kubectl machines rollout history workers --revision 3   # its whole template",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: e.Complete(explain.Deployments),
	}
	cmd.Flags().Int64Var(&revision, "revision", 0, "show the template of this revision")
	printer := cli.NewPrinter(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, d, err := find(cmd.Context(), e, args[0])
		if err != nil {
			return err
		}
		sets, err := setsOf(cmd.Context(), c, d)
		if err != nil {
			return err
		}
		all := deployment.Revisions(d, sets)
		one := slices.IndexFunc(all, func(r deployment.Revision) bool { return r.Number == revision })
		switch {
		case revision != 0 && one < 0:
			return cli.Refuse("machinedeployment %s has no revision %d", d.Name, revision)
		case revision == 0 && !printer.Asked():
			return writeHistory(e.Out, d, all)
		case !printer.Asked():
			return writeTemplate(e.Out, d, all[one])
		case revision != 0:
			return printer.Print(e.Out, all[one].Set, "")
		}
		list := &v1alpha1.MachineSetList{}
		for _, r := range all {
			list.Items = append(list.Items, *r.Set)
		}
		return printer.Print(e.Out, list, "")
	}
	return cmd
}

// writeHistory writes a row for each revision, with a line for each difference from the one before.
func writeHistory(out io.Writer, d *v1alpha1.MachineDeployment, all []deployment.Revision) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(out, "machinedeployment %s has no revisions yet\n", d.Name)
		return err
	}
	rows := [][]string{{"REVISION", "SET", "CLASS", "MACHINES", "CHANGE"}}
	for i, r := range all {
		number := fmt.Sprint(r.Number)
		if r.Current {
			number += " (current)"
		}
		var lines []string
		if cause := r.Set.Annotations[changeCause]; cause != "" {
			lines = append(lines, cause)
		}
		if i > 0 {
			lines = append(lines, changes(all[i-1].Set.Spec.Template, r.Set.Spec.Template)...)
		}
		text := cmp.Or(strings.Join(lines, "\n"), "-")
		rows = append(rows, []string{number, r.Set.Name, r.Set.Spec.Template.Spec.Class.Name, fmt.Sprint(r.Set.Status.Replicas), text})
	}
	_, err := io.WriteString(out, explain.Table(rows))
	return err
}

func writeTemplate(out io.Writer, d *v1alpha1.MachineDeployment, r deployment.Revision) error {
	data, err := cli.Data("yaml", withoutHash(r.Set.Spec.Template))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "machinedeployment %s, template of revision %d:\n%s", d.Name, r.Number, data)
	return err
}

// withoutHash returns a template without the label that distinguishes the sets.
func withoutHash(t v1alpha1.MachineTemplateSpec) v1alpha1.MachineTemplateSpec {
	t.Labels = maps.Clone(t.Labels)
	delete(t.Labels, v1alpha1.DefaultMachineDeploymentUniqueLabelKey)
	return t
}

// changes returns a line for each field that differs between two templates.
func changes(before, after v1alpha1.MachineTemplateSpec) []string {
	old, now := fields(withoutHash(before)), fields(withoutHash(after))
	paths := maps.Clone(old)
	maps.Copy(paths, now)
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		was, had := old[path]
		is, has := now[path]
		switch {
		case !had:
			lines = append(lines, path+": added "+is)
		case !has:
			lines = append(lines, path+": removed "+was)
		case was != is:
			lines = append(lines, path+": "+was+" -> "+is)
		}
	}
	return lines
}

// fields returns the values of a template by their paths.
func fields(t v1alpha1.MachineTemplateSpec) map[string]string {
	data, err := json.Marshal(t)
	var tree any
	if err == nil {
		err = json.Unmarshal(data, &tree)
	}
	if err != nil {
		return map[string]string{"": cli.OneLine(err)}
	}
	out := map[string]string{}
	var visit func(path string, v any)
	visit = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				visit(strings.TrimPrefix(path+"."+key, "."), value)
			}
		case []any:
			for i, value := range v {
				visit(fmt.Sprintf("%s[%d]", path, i), value)
			}
		case nil:
		default:
			out[path] = fmt.Sprint(v)
		}
	}
	visit("", tree)
	return out
}
