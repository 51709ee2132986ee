// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/scheme"
)

// Printer prints objects in the format of -o. Without it, it prints the name and what was done.
type Printer struct {
	flags   *genericclioptions.PrintFlags
	printer printers.ResourcePrinter // since the first object
}

// NewPrinter adds the flags of a printer to a command.
func NewPrinter(cmd *cobra.Command) *Printer {
	p := &Printer{flags: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)}
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
func (p *Printer) Asked() bool { return *p.flags.OutputFormat != "" }

// Print prints an object, and what was done with it, which is the same for all objects of a command. The name
// of a report is those of its objects.
func (p *Printer) Print(out io.Writer, o runtime.Object, done string) (err error) {
	if p.flags.NamePrintFlags.Operation = done; p.printer == nil {
		if p.printer, err = p.flags.ToPrinter(); err != nil {
			return err
		}
	}
	if report, is := o.(*explain.Report); is && *p.flags.OutputFormat == "name" {
		o = report.Names()
	}
	if *p.flags.OutputFormat == "name" && meta.IsListType(o) {
		return meta.EachListItem(o, func(item runtime.Object) error { return p.printer.PrintObj(item, out) })
	}
	return p.printer.PrintObj(o, out)
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

// Plural returns a number with its unit.
func Plural(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
