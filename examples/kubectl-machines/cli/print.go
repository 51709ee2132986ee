// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/scheme"
)

// Printer prints objects in the format of -o. Without it, it prints the name and what was done.
type Printer struct{ flags *genericclioptions.PrintFlags }

// NewPrinter adds the flags of a printer to a command.
func NewPrinter(cmd *cobra.Command) Printer {
	p := Printer{genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)}
	p.flags.AddFlags(cmd)
	cmd.PreRunE = func(*cobra.Command, []string) error { // before anything is changed
		if _, err := p.flags.ToPrinter(); err != nil {
			return Refuse("%w", err)
		}
		return nil
	}
	return p
}

// Asked reports whether -o is set.
func (p Printer) Asked() bool { return *p.flags.OutputFormat != "" }

// Print prints an object, and what was done with it.
func (p Printer) Print(out io.Writer, o runtime.Object, done string) error {
	p.flags.NamePrintFlags.Operation = done
	printer, err := p.flags.ToPrinter()
	if err != nil {
		return err
	}
	if *p.flags.OutputFormat == "name" && meta.IsListType(o) {
		return meta.EachListItem(o, func(item runtime.Object) error { return printer.PrintObj(item, out) })
	}
	return printer.PrintObj(o, out)
}

// Data returns a value as JSON or YAML, for values that are not API objects.
func Data(format string, v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	switch {
	case err != nil:
		return nil, err
	case format == "yaml":
		return yaml.JSONToYAML(data)
	}
	return append(data, '\n'), nil
}

// Table returns rows of equally many cells as aligned columns. The last cell of a row may have several lines.
func Table(rows [][]string) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		text := strings.Join(row, "\t")
		_, _ = fmt.Fprintln(t, strings.ReplaceAll(text, "\n", "\n"+strings.Repeat("\t", len(row)-1)))
	}
	_ = t.Flush() // a Builder returns no error
	return trailing.ReplaceAllString(b.String(), "\n")
}

// trailing are the spaces of empty cells at the end of a line.
var trailing = regexp.MustCompile(` +\n`)

// Plural returns a number with its unit.
func Plural(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
