// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"cmp"
	"context"
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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	corefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// dump has the objects of a dump.
type dump struct {
	objects   map[string]runtime.Object // by kind, namespace and name
	resources map[string]bool           // also those of empty lists
	unused    map[string]bool           // the kinds that no decision reads, and documents without objects
	kinds     *runtime.Scheme
	// commented is the newest time in a comment at the begin of a file, newest that in an object.
	commented, newest time.Time
}

// resourceOf are the resources of the kinds that a dump may have.
var resourceOf = map[string]string{
	"MachineDeployment": deployments, "MachineSet": sets, "Machine": machines, "MachineClass": classes, "Secret": secrets, "Node": nodes,
	"Pod": pods, "PodDisruptionBudget": budgets, "VolumeAttachment": attachments, "PersistentVolumeClaim": claims,
}

// Dump returns the view of a dump: a file, or a folder with files whose names end with .yaml, .yml or .json.
// They have objects and lists as kubectl get -o yaml, -o json and --raw print them, one or several in a file.
// Of an object that is there twice, the last one counts. A resource without an object and without a list of
// its kind is not in the dump, which the output says.
//
// The time of the decisions is at. Zero means the time in a comment at the begin of a file, such as
// "# 2026-01-02T03:04:05Z", or else the newest time in the metadata and status of the objects.
func Dump(ctx context.Context, path, namespace string, at time.Time) (*View, error) {
	kinds := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)); err != nil {
		return nil, err
	}
	d := &dump{objects: map[string]runtime.Object{}, resources: map[string]bool{}, unused: map[string]bool{}, kinds: kinds}
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name != path && !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(name))) {
			return err
		}
		raw, err := os.ReadFile(name) //nolint:gosec // the user names the file
		if err != nil {
			return err
		}
		return d.read(name, raw)
	})
	if at = cmp.Or(at, d.commented, d.newest); err == nil && at.IsZero() {
		err = fmt.Errorf("%s: no object has a time: say at which time to decide", path)
	}
	if err != nil {
		return nil, err
	}
	return d.view(ctx, namespace, at)
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
	d.resources[tokens] = d.resources[secrets]
	v, err := newView(ctx, Clients{Machines: inMachines, Control: inCore, Target: inCore}, namespace, []string{machines}, func(_ context.Context, r resource) error {
		if !d.resources[r.name] {
			return fmt.Errorf("%s%s", notDumped, r.name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	v.Close() // nothing changes
	v.Now, v.dump = func() time.Time { return at }, true
	if len(v.notes) > 0 {
		v.notes = []string{notDumped + strings.ReplaceAll(strings.Join(v.notes, ", "), notDumped, "")}
	}
	if len(d.unused) > 0 {
		v.notes = append(v.notes, "not used: "+strings.Join(slices.Sorted(maps.Keys(d.unused)), ", "))
	}
	return v, nil
}

// notDumped begins the error of a resource that cannot be read.
const notDumped = "not in the dump: "

// read reads the documents of a file.
func (d *dump) read(name string, raw []byte) error {
	begin := raw[:min(len(raw), len("# 2006-01-02T15:04:05Z"))]
	if t, err := time.Parse("# "+time.RFC3339, string(begin)); err == nil && t.After(d.commented) {
		d.commented = t
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for i := 1; ; i++ {
		var document runtime.RawExtension
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = d.add(document.Raw, name)
		}
		if err != nil {
			return fmt.Errorf("%s: document %d: %w", name, i, err)
		}
	}
}

// add adds an object or the items of a list.
func (d *dump) add(raw []byte, file string) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	o, _, _ := unstructured.UnstructuredJSONScheme.Decode(raw, nil, nil)
	switch o := o.(type) {
	case *unstructured.UnstructuredList:
		d.resources[resourceOf[strings.TrimSuffix(o.GetKind(), "List")]] = true
		for i := range o.Items {
			if err := d.object(&o.Items[i]); err != nil {
				return fmt.Errorf("item %d: %w", i+1, err)
			}
		}
		return nil
	case *unstructured.Unstructured:
		return d.object(o)
	default:
		d.unused["a document that is no object in "+file] = true
		return nil
	}
}

// object adds an object of a kind that decisions read.
func (d *dump) object(u *unstructured.Unstructured) error {
	gvk := u.GroupVersionKind()
	o, err := d.kinds.New(gvk)
	if err != nil || resourceOf[gvk.Kind] == "" {
		d.unused[gvk.Kind+" of "+gvk.GroupVersion().String()] = true
		return nil //nolint:nilerr // it is reported as not used
	}
	if u.GetName() == "" {
		return fmt.Errorf("%s without metadata.name", gvk.Kind)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return fmt.Errorf("%s %s: %w", gvk.Kind, u.GetName(), err)
	}
	d.objects[gvk.Kind+" "+u.GetNamespace()+"/"+u.GetName()], d.resources[resourceOf[gvk.Kind]] = o, true
	for _, t := range append(timesIn(u.Object["metadata"], ""), timesIn(u.Object["status"], "")...) {
		if t.After(d.newest) {
			d.newest = t
		}
	}
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
