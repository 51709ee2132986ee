// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// postProcess takes structured-merge-diff out of the apply configurations.
//
// applyconfiguration-gen writes a package internal with the OpenAPI schema of
// the types, parsed by sigs.k8s.io/structured-merge-diff, for the type converter
// of the fake clientset. We give it no OpenAPI schema, so that package knows
// nothing of our types; and it would make structured-merge-diff a direct
// requirement of everybody who imports the SDK. The deduced converter of
// apimachinery, which knows the fields from the objects themselves and treats
// lists as atomic, does for a fake what the API server does for a custom
// resource whose lists have no merge keys, as ours have none.
func postProcess(scratch string) error {
	dir := filepath.Join(scratch, clientDir, "applyconfiguration")
	if err := os.RemoveAll(filepath.Join(dir, "internal")); err != nil {
		return err
	}
	path := filepath.Join(dir, "utils.go")
	return edit(path,
		"\tinternal \""+clientPkg+"/applyconfiguration/internal\"\n", "",
		"func NewTypeConverter(scheme *runtime.Scheme) managedfields.TypeConverter {\n"+
			"\treturn managedfields.NewSchemeTypeConverter(scheme, internal.Parser())\n",
		"// NewTypeConverter returns the converter by which the fake clientset merges what\n"+
			"// is applied. It deduces the fields from the objects and needs no scheme; the\n"+
			"// argument is there for the signature only.\n"+
			"func NewTypeConverter(_ *runtime.Scheme) managedfields.TypeConverter {\n"+
			"\treturn managedfields.NewDeducedTypeConverter()\n",
	)
}

// edit replaces texts of a file, given as pairs of old and new. Each old text has
// to be there once: a new version of the generator must not pass unnoticed.
func edit(path string, pairs ...string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if n := bytes.Count(data, []byte(pairs[i])); n != 1 {
			return fmt.Errorf("%s: %d times instead of once: %q", filepath.Base(path), n, pairs[i])
		}
		data = bytes.Replace(data, []byte(pairs[i]), []byte(pairs[i+1]), 1)
	}
	return os.WriteFile(path, data, 0o600)
}
