// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// postProcess writes the package comments, and takes structured-merge-diff out of the apply configurations.
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
	if err := edit(path,
		"\tinternal \""+clientPkg+"/applyconfiguration/internal\"\n", "",
		"func NewTypeConverter(scheme *runtime.Scheme) managedfields.TypeConverter {\n"+
			"\treturn managedfields.NewSchemeTypeConverter(scheme, internal.Parser())\n",
		"// NewTypeConverter returns the converter by which the fake clientset merges what\n"+
			"// is applied. It deduces the fields from the objects and needs no scheme; the\n"+
			"// argument is there for the signature only.\n"+
			"func NewTypeConverter(_ *runtime.Scheme) managedfields.TypeConverter {\n"+
			"\treturn managedfields.NewDeducedTypeConverter()\n",
	); err != nil {
		return err
	}
	return writeComments(filepath.Join(scratch, clientDir))
}

// comments are the package comments of the generated packages, by their folders. The generators write none, or one that
// does not name the package.
var comments = map[string]string{
	"applyconfiguration":                              "Package applyconfiguration returns the apply configuration of a kind, and the type converter of the fake clientset.",
	"applyconfiguration/machine/v1alpha1":             "Package v1alpha1 has the apply configurations of the group machine.sapcloud.io/v1alpha1, for server-side apply.",
	"clientset/versioned":                             "Package versioned has the typed clientset of the group machine.sapcloud.io.",
	"clientset/versioned/fake":                        "Package fake has a clientset for tests, which keeps its objects in memory.",
	"clientset/versioned/scheme":                      "Package scheme has the scheme of the clientset: its kinds, and how they are encoded.",
	"clientset/versioned/typed/machine/v1alpha1":      "Package v1alpha1 has the clients of the kinds of machine.sapcloud.io/v1alpha1.",
	"clientset/versioned/typed/machine/v1alpha1/fake": "Package fake has the clients of the fake clientset.",
	"informers/externalversions":                      "Package externalversions has the informer factory of the group machine.sapcloud.io.",
	"informers/externalversions/internalinterfaces":   "Package internalinterfaces has the interfaces that the informer factory and its informers share.",
	"informers/externalversions/machine":              "Package machine has the informers of the group machine.sapcloud.io, by version.",
	"informers/externalversions/machine/v1alpha1":     "Package v1alpha1 has the informers of the kinds of machine.sapcloud.io/v1alpha1.",
	"listers/machine/v1alpha1":                        "Package v1alpha1 has the listers of the kinds of machine.sapcloud.io/v1alpha1. They read the caches of informers.",
}

// writeComments writes the package comments into the files doc.go of the packages below a folder.
func writeComments(dir string) error {
	var found int
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		files, err := filepath.Glob(filepath.Join(name, "*.go"))
		if err != nil || len(files) == 0 {
			return err
		}
		folder, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		text := comments[filepath.ToSlash(folder)]
		words := strings.Fields(text)
		if len(words) < 3 {
			return fmt.Errorf("%s/%s: no package comment", clientDir, folder)
		}
		found++
		return os.WriteFile(filepath.Join(name, "doc.go"), []byte(header+generatedHeader+"\n// "+text+"\npackage "+words[1]+"\n"), 0o600)
	})
	if err == nil && found != len(comments) {
		err = fmt.Errorf("%s has %d packages, and %d have a comment", clientDir, found, len(comments))
	}
	return err
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
