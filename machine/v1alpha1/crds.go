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
	// Name is the name of the definition, such as "machines.machine.sapcloud.io".
	Name string
	// YAML is the definition as an apiextensions.k8s.io/v1 object.
	YAML []byte
}

// CRDs returns the definitions of the four kinds, sorted by name. The caller owns the result.
//
// Their validation rules refuse a new object on which neither MCM nor this module acts: a class
// without name or kind, an unknown strategy, or a strategy without valid bounds. A stored object
// with such a fault stays usable on Kubernetes 1.33 and later: its API server checks a rule only
// when the fields of the rule change, and warns otherwise. An API server of 1.30 to 1.32 refuses each
// update of the status of such an object until the fault is corrected, and one before 1.30 each update.
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
