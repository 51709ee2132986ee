// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var update = flag.Bool("update", false, "write testdata/fields.txt anew")

// A field that is renamed, retyped or lost is a break for everybody who has
// stored objects. It has to be seen in a diff of this file.
func TestJSONFieldsOfTheKindsAreThoseOnRecord(t *testing.T) {
	var b strings.Builder
	for _, kind := range kinds {
		listFields(&b, kind, reflect.TypeOf(newObject(t, kind)).Elem())
	}
	const path = "testdata/fields.txt"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "run go test ./machine/v1alpha1 -update if that is what you want")
}

// listFields writes a line for each field: its path in JSON, the options of its
// tag and its Go type. It descends into the types of this package only.
func listFields(b *strings.Builder, path string, t reflect.Type) {
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if options == "inline" {
			listFields(b, path, elem(field.Type))
			continue
		}
		below := path + "." + name
		fmt.Fprintf(b, "%s %s %s\n", below, field.Type, options)
		if e := elem(field.Type); e.Kind() == reflect.Struct && e.PkgPath() == reflect.TypeFor[v1alpha1.Machine]().PkgPath() {
			listFields(b, below, e)
		}
	}
}

// elem strips pointers and lists off a type.
func elem(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}
