// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// recorded returns copies of an object that a real API server has served, with its managed fields.
// Each is decoded by itself, as in the list of an informer.
func recorded[T any](t *testing.T, file string, copies int) []*T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	all := make([]*T, copies)
	for i := range all {
		require.NoError(t, json.Unmarshal(text, &all[i]))
	}
	return all
}

// heap returns how much memory the result of a function holds.
func heap[T any](build func() T) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := build()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return float64(after.HeapAlloc) - float64(before.HeapAlloc)
}

// savesTwoFifths asserts that objects need at most 60 % of their memory in a cache.
func savesTwoFifths[T any](t *testing.T, file string, edit func(*T)) {
	t.Helper()
	cached := func(through func(any) (any, error)) float64 {
		return heap(func() []any {
			var out []any
			for _, o := range recorded[T](t, file, 500) {
				edit(o)
				kept, err := through(o)
				require.NoError(t, err)
				out = append(out, kept)
			}
			return out
		})
	}
	whole := cached(func(o any) (any, error) { return o, nil })
	require.Less(t, cached(Trim), 0.6*whole, file)
}

func TestTrim_UnreadFields_TakeNoMemory(t *testing.T) {
	savesTwoFifths(t, "machine.json", func(*v1alpha1.Machine) {})
	savesTwoFifths(t, "node.json", func(*corev1.Node) {})
	savesTwoFifths(t, "node.json", func(n *corev1.Node) { // real kubelets report up to 50 images
		n.ManagedFields = nil
		for i := range 50 {
			n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprint("registry.example.com/image-", i)}, SizeBytes: 1})
		}
	})
}

func TestTrim_OtherObjects_StayWhole(t *testing.T) {
	m := recorded[v1alpha1.Machine](t, "machine.json", 1)[0]
	want := m.DeepCopy()
	want.ManagedFields = nil
	got, err := Trim(m)
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = Trim(&metav1.Status{})
	require.NoError(t, err, "not an object")
}

// TestTrim_FieldsThatAreRead_Stay looks for each field of pods and Nodes in the sources of the SDK.
func TestTrim_FieldsThatAreRead_Stay(t *testing.T) {
	var sources []byte
	require.NoError(t, filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"examples", "tools", "client", "draintest", "deploymenttest", "drivertest"}, d.Name()):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "zz_"):
			source, err := os.ReadFile(path)
			sources = append(sources, source...)
			return err
		}
		return nil
	}))
	fields := map[string]bool{}
	for _, field := range regexp.MustCompile(`\b(Spec|Status)\.\w+`).FindAll(sources, -1) {
		fields[string(field)] = true
	}
	read := 0
	for name, o := range map[string]any{"pod": &corev1.Pod{}, "node": &corev1.Node{}} {
		for _, part := range []string{"Spec", "Status"} {
			whole := reflect.ValueOf(o).Elem().FieldByName(part)
			for i := range whole.NumField() {
				field := whole.Type().Field(i).Name
				if !fields[part+"."+field] {
					continue
				}
				read++
				set(whole.Field(i))
				kept, err := Trim(o)
				require.NoError(t, err)
				require.False(t, reflect.ValueOf(kept).Elem().FieldByName(part).Field(i).IsZero(), "%s.%s.%s", name, part, field)
			}
		}
	}
	require.Greater(t, read, 10)
}

// set gives a field a value that is not its zero value.
func set(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(1)
	default:
		panic(v.Type())
	}
}
