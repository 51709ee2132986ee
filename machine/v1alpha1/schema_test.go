// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// definition is what the tests read of a CustomResourceDefinition.
type definition struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Kind, ListKind, Plural, Singular string
			ShortNames                       []string
		} `json:"names"`
		Versions []struct {
			Name                     string
			Served, Storage          bool
			AdditionalPrinterColumns []struct {
				Name, JSONPath, Type string
				Priority             int
			}
			Subresources struct {
				Status *struct{}
				Scale  *struct{ SpecReplicasPath, StatusReplicasPath string }
			}
			Schema struct {
				OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
			}
		} `json:"versions"`
	} `json:"spec"`
}

// schema is the part of a structural schema that controller-gen writes for us.
// A keyword that is missing here fails the test instead of being ignored.
type schema struct {
	Description          string             `json:"description"`
	Type                 string             `json:"type"`
	Format               string             `json:"format"`
	Pattern              string             `json:"pattern"`
	MaxItems             *int               `json:"maxItems"`
	Required             []string           `json:"required"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties *schema            `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	AnyOf                []*schema          `json:"anyOf"`
	IntOrString          bool               `json:"x-kubernetes-int-or-string"`
	PreserveUnknown      bool               `json:"x-kubernetes-preserve-unknown-fields"`
	ListType             string             `json:"x-kubernetes-list-type"`
	ListMapKeys          []string           `json:"x-kubernetes-list-map-keys"`
	MapType              string             `json:"x-kubernetes-map-type"`
	// Validations are checked on a real API server.
	Validations []struct{ Rule, Message, FieldPath string } `json:"x-kubernetes-validations"`
}

// definitions returns the definitions by kind.
func definitions(t testing.TB) map[string]definition {
	t.Helper()
	out := map[string]definition{}
	for _, crd := range v1alpha1.CRDs() {
		data, err := yaml.ToJSON(crd.YAML)
		require.NoError(t, err)
		var d definition
		require.NoError(t, json.Unmarshal(data, &d))
		out[d.Spec.Names.Kind] = d
	}
	return out
}

// schemaOf returns the schema of a kind. It has no keyword that is not checked.
func schemaOf(t testing.TB, kind string) *schema {
	t.Helper()
	d, ok := definitions(t)[kind]
	require.True(t, ok, "no definition of %s", kind)
	decoder, s := json.NewDecoder(bytes.NewReader(d.Spec.Versions[0].Schema.OpenAPIV3Schema)), new(schema)
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(s), kind)
	return s
}

// check returns what an API server would refuse or, because it would silently
// drop it, not keep. It takes a null for absent, as an API server does with a
// property that is not nullable.
func (s *schema) check(path string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		return s.checkObject(path, v)
	case []any:
		return s.checkList(path, v)
	case string:
		return s.checkString(path, v)
	case bool:
		return s.checkType(path, "boolean")
	case json.Number:
		if _, err := v.Int64(); err != nil {
			return s.checkType(path, "number")
		}
		return s.checkType(path, "integer")
	}
	return []string{fmt.Sprintf("%s: unexpected %T", path, value)}
}

func (s *schema) checkType(path, is string) []string {
	if s.Type == is || s.Type == "number" && is == "integer" {
		return nil
	}
	if s.IntOrString && (is == "integer" || is == "string") {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s instead of %q", path, is, s.Type)}
}

func (s *schema) checkObject(path string, value map[string]any) []string {
	found := s.checkType(path, "object")
	for _, name := range s.Required {
		if value[name] == nil {
			found = append(found, path+"."+name+": required")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		below := s.Properties[name]
		if below == nil {
			below = s.AdditionalProperties
		}
		switch {
		case value[name] == nil:
		case below != nil:
			found = append(found, below.check(path+"."+name, value[name])...)
		case path == "" && name == "metadata", s.PreserveUnknown, path == ".metadata": // the API server knows that schema itself
		default:
			found = append(found, path+"."+name+": not in the schema")
		}
	}
	return found
}

func (s *schema) checkList(path string, value []any) []string {
	found := s.checkType(path, "array")
	if s.Items == nil {
		return append(found, path+": no schema of the items")
	}
	if s.MaxItems != nil && len(value) > *s.MaxItems {
		found = append(found, fmt.Sprintf("%s: %d items", path, len(value)))
	}
	for i, v := range value {
		found = append(found, s.Items.check(fmt.Sprintf("%s[%d]", path, i), v)...)
	}
	return found
}

func (s *schema) checkString(path, value string) []string {
	found := s.checkType(path, "string")
	if s.Format == "date-time" {
		if _, err := time.Parse(time.RFC3339, value); err != nil {
			found = append(found, path+": "+err.Error())
		}
	}
	if s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(value) {
		found = append(found, path+": does not match "+s.Pattern)
	}
	return found
}

// walk calls f for every schema with its path.
func (s *schema) walk(path string, f func(path string, s *schema)) {
	f(path, s)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		s.Properties[name].walk(path+"."+name, f)
	}
	if s.AdditionalProperties != nil {
		s.AdditionalProperties.walk(path+".*", f)
	}
	if s.Items != nil {
		s.Items.walk(path+"[]", f)
	}
}

func TestSchema_RandomObjects_AreAcceptedAndKept(t *testing.T) {
	for _, kind := range kinds {
		s := schemaOf(t, kind)
		for seed := range uint64(60) {
			data, err := json.Marshal(randomObject(t, kind, seed))
			require.NoError(t, err)
			problems := slices.DeleteFunc(s.check("", decodeGeneric(t, data)), func(p string) bool {
				return strings.HasSuffix(p, ".nodeTemplate.spec.podPreemptionPolicy: not in the schema") // a newer k8s.io/api has it
			})
			require.Empty(t, problems, "%s, seed %d", kind, seed)
		}
	}
}

func TestSchema_OwnFields_OptionalAndOpaqueKept(t *testing.T) {
	unknown := map[string][]string{
		"Machine":           {".spec.nodeTemplate.metadata"},
		"MachineClass":      {".providerSpec"},
		"MachineDeployment": {".spec.template.metadata", ".spec.template.spec.nodeTemplate.metadata"},
		"MachineSet":        {".spec.template.metadata", ".spec.template.spec.nodeTemplate.metadata"},
	}
	kept, required := map[string][]string{}, map[string][]string{}
	for kind := range definitions(t) {
		schemaOf(t, kind).walk("", func(path string, s *schema) {
			if s.PreserveUnknown {
				kept[kind] = append(kept[kind], path)
			}
			if ofKubernetes(path) {
				return
			}
			if len(s.Required) > 0 {
				required[kind+path] = s.Required
			}
			require.NotContains(t, []string{"set", "map"}, s.ListType, kind+path)
			require.Nil(t, s.MaxItems, kind+path)
			for _, v := range s.Validations {
				require.Contains(t, v.Message, ": write ", kind+path)
			}
		})
	}
	require.Equal(t, map[string][]string{"MachineClass": {"providerSpec"}}, required)
	require.Equal(t, unknown, kept)
}

// ofKubernetes reports whether the schema at a path is that of a type of
// Kubernetes: a label selector, the spec, an address or a condition of a Node.
func ofKubernetes(path string) bool {
	for _, part := range []string{".selector", ".nodeTemplate.spec", ".status.addresses"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return strings.HasPrefix(path, ".status.conditions[]")
}
