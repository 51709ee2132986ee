// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	corefake "k8s.io/client-go/kubernetes/fake"

	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// dump has the objects of a dump.
type dump struct {
	objects map[string]runtime.Object // by kind, namespace and name
	kinds   map[string]bool           // the kinds in the dump, also of empty lists
	unused  map[string]bool           // the kinds that no decision reads, and files without objects
	decoder runtime.Decoder
	// commented is the newest time in a comment at the begin of a file, newest that in an object.
	commented, newest time.Time
}

// resourceOf are the resources of the kinds that a dump may have.
var resourceOf = map[string]string{
	"MachineDeployment": deployments, "MachineSet": sets, "Machine": machines, "MachineClass": classes, "Secret": secrets, "Node": nodes,
	"Pod": pods, "PodDisruptionBudget": budgets, "VolumeAttachment": attachments, "PersistentVolumeClaim": claims,
}

// Dump returns the view of a dump: a file, or a folder with files whose names end with .yaml, .yml or .json.
// They have objects and lists as kubectl get -o yaml and -o json print them, one or several in a file. Of an
// object that is there twice, the last one counts. A resource without an object and without a list is
// not in the dump, which the output says. "-" is the standard input.
//
// The time of the decisions is at. Zero means the time in a comment at the begin of a file, such as
// "# 2026-01-02T03:04:05Z", or else the newest time in the metadata and status of the objects.
func Dump(ctx context.Context, path, namespace string, at time.Time) (*View, error) {
	d, err := newDump()
	if err != nil {
		return nil, err
	}
	if err := d.readPath(path); err != nil {
		return nil, err
	}
	if at = cmp.Or(at, d.commented, d.newest); at.IsZero() {
		return nil, fmt.Errorf("%s: no object has a time: say at which time to decide", path)
	}
	return d.view(ctx, namespace, at)
}

func newDump() (*dump, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(corev1.AddToScheme(scheme), policyv1.AddToScheme(scheme), storagev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
	return &dump{
		objects: map[string]runtime.Object{}, kinds: map[string]bool{}, unused: map[string]bool{}, decoder: serializer.NewCodecFactory(scheme).UniversalDeserializer(),
	}, err
}

// view returns the view of the objects.
func (d *dump) view(ctx context.Context, namespace string, at time.Time) (*View, error) {
	inMachines, inCore := fake.NewClientset(), corefake.NewClientset()
	for _, key := range slices.Sorted(maps.Keys(d.objects)) {
		o, add := d.objects[key], inCore.Tracker().Add
		if o.GetObjectKind().GroupVersionKind().Group == v1alpha1.SchemeGroupVersion.Group {
			add = inMachines.Tracker().Add
		}
		if err := add(o); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	known := map[string]bool{}
	for kind := range d.kinds {
		known[resourceOf[kind]] = true
	}
	known[tokens] = known[secrets]
	v, err := newView(ctx, Clients{Machines: inMachines, Control: inCore, Target: inCore}, namespace, func(_ context.Context, r resource) error {
		if !known[r.name] {
			return fmt.Errorf("not in the dump: %s", r.name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	v.Close() // nothing changes
	if len(v.missing) > 0 {
		v.missing = []string{"not in the dump: " + strings.ReplaceAll(strings.Join(v.missing, ", "), "not in the dump: ", "")}
	}
	v.dumped, v.unused, v.Now = true, slices.Sorted(maps.Keys(d.unused)), func() time.Time { return at }
	return v, nil
}

// readPath reads a file, a folder, or the standard input.
func (d *dump) readPath(path string) error {
	if path == "-" {
		return d.read("standard input", os.Stdin)
	}
	return filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		ext := strings.ToLower(filepath.Ext(name))
		switch {
		case err != nil:
			return err
		case entry.IsDir(), name != path && ext != ".yaml" && ext != ".yml" && ext != ".json":
			return nil
		}
		file, err := os.Open(name) //nolint:gosec // the user names the file
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		return d.read(name, file)
	})
}

// read reads the documents of a file.
func (d *dump) read(name string, from io.Reader) error {
	buffered := bufio.NewReader(from)
	begin, _ := buffered.Peek(len("# 2006-01-02T15:04:05Z"))
	if t, err := time.Parse("# "+time.RFC3339, string(begin)); err == nil && t.After(d.commented) {
		d.commented = t
	}
	documents := yaml.NewYAMLOrJSONDecoder(buffered, 4096)
	for i := 1; ; i++ {
		var raw runtime.RawExtension
		err := documents.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = d.add(raw.Raw, name, "", "")
		}
		if err != nil {
			return fmt.Errorf("%s: document %d: %w", name, i, err)
		}
	}
}

// add adds an object or the items of a list. version and kind are those of the objects in a typed list.
func (d *dump) add(raw []byte, file, version, kind string) error {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var o struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   any               `json:"metadata"`
		Status     any               `json:"status"`
		Items      []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		d.unused["a document that is no object in "+file] = true
		return nil //nolint:nilerr // it is reported as not used
	}
	o.APIVersion, o.Kind = cmp.Or(o.APIVersion, version), cmp.Or(o.Kind, kind)
	of, isList := strings.CutSuffix(o.Kind, "List")
	switch {
	case o.Kind == "":
		d.unused["a document without a kind in "+file] = true
		return nil
	case isList:
		d.kinds[of] = true
		for i, item := range o.Items {
			if err := d.add(item, file, o.APIVersion, of); err != nil {
				return fmt.Errorf("item %d: %w", i+1, err)
			}
		}
		return nil
	case resourceOf[o.Kind] == "":
		d.unused[o.Kind] = true
		return nil
	}
	if err := d.decode(raw, o.APIVersion, o.Kind); err != nil {
		return err
	}
	for _, t := range append(timesIn(o.Metadata, ""), timesIn(o.Status, "")...) {
		if t.After(d.newest) {
			d.newest = t
		}
	}
	return nil
}

// decode adds an object of a kind that decisions read.
func (d *dump) decode(raw []byte, version, kind string) error {
	gvk := schema.FromAPIVersionAndKind(version, kind)
	o, _, err := d.decoder.Decode(raw, &gvk, nil)
	switch {
	case runtime.IsNotRegisteredError(err):
		d.unused[kind+" of "+version] = true
		return nil
	case err != nil:
		return err
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return err
	}
	if m.GetName() == "" {
		return fmt.Errorf("%s without metadata.name", kind)
	}
	m.SetManagedFields(nil)
	o.GetObjectKind().SetGroupVersionKind(gvk)
	d.kinds[kind] = true
	d.objects[kind+" "+m.GetNamespace()+"/"+m.GetName()] = o
	return nil
}

// timesIn returns the times in the fields of an object whose names end with "time" or "timestamp": when
// something was written or observed. Ends and deadlines may be in the future and do not count.
func timesIn(value any, field string) (times []time.Time) {
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			if name != "annotations" && name != "labels" {
				times = append(times, timesIn(v, strings.ToLower(name))...)
			}
		}
	case []any:
		for _, v := range value {
			times = append(times, timesIn(v, field)...)
		}
	case string:
		written := strings.HasSuffix(field, "time") || strings.HasSuffix(field, "timestamp")
		if t, err := time.Parse(time.RFC3339, value); err == nil && written && field != "deletiontimestamp" && !strings.Contains(field, "expir") {
			times = append(times, t)
		}
	}
	return times
}
