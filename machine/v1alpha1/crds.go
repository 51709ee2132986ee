// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed crds/*.yaml
var crdFiles embed.FS

// CRD is one CustomResourceDefinition of the group, ready to be applied.
type CRD struct {
	// Name of the definition, such as "machines.machine.sapcloud.io".
	Name string
	// YAML is the definition as an apiextensions.k8s.io/v1 object.
	YAML []byte
}

// CRDs returns the definitions of the four kinds, in the order of their names.
// The caller owns what it gets.
//
// Their rules refuse a new object that neither MCM nor this module ever acts upon: a class
// without name or kind, an unknown strategy, a strategy without readable bounds. An object
// that is stored already stays usable: Kubernetes 1.30 and later checks a rule only when the
// fields of the rule change, and warns otherwise. Before 1.30, an API server refuses each
// update of such an object until it is corrected.
func CRDs() []CRD {
	entries, err := fs.ReadDir(crdFiles, "crds")
	if err != nil {
		return nil // cannot happen: the folder is embedded
	}
	var crds []CRD
	for _, e := range entries {
		data, err := crdFiles.ReadFile(path.Join("crds", e.Name()))
		if err != nil {
			continue // cannot happen: the file is embedded
		}
		plural := e.Name()[len(GroupName)+1 : len(e.Name())-len(".yaml")]
		crds = append(crds, CRD{Name: plural + "." + GroupName, YAML: data})
	}
	slices.SortFunc(crds, func(a, b CRD) int { return strings.Compare(a.Name, b.Name) })
	return crds
}
