// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"maps"
	"slices"
)

// setKey returns a copy of m in which key has the value.
func setKey(m map[string]string, key, value string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = make(map[string]string, 1)
	}
	out[key] = value
	return out
}

// editKeys returns m without the keys of remove and with the entries of set. It does not change
// m, and returns m itself if both are empty.
func editKeys(m, set map[string]string, remove []string) map[string]string {
	if len(remove) == 0 && len(set) == 0 {
		return m
	}
	out := make(map[string]string, len(m)+len(set))
	maps.Copy(out, m)
	for _, key := range remove {
		delete(out, key)
	}
	maps.Copy(out, set)
	return out
}

// planKeys compares the live entries, those applied before (base) and the desired ones. It returns
// the entries to set and the sorted keys to remove, both nil if there are none.
func planKeys(live, base, desired map[string]string) (set map[string]string, remove []string) {
	for key, value := range desired {
		if have, ok := live[key]; ok && have == value {
			continue
		}
		if set == nil {
			set = make(map[string]string)
		}
		set[key] = value
	}
	for key := range base {
		_, wanted := desired[key]
		if _, there := live[key]; there && !wanted {
			remove = append(remove, key)
		}
	}
	slices.Sort(remove)
	return set, remove
}

// without returns m itself if it has none of the keys, or a copy without them, and the keys
// that it had.
func without(m map[string]string, keys ...string) (_ map[string]string, dropped []string) {
	for _, key := range keys {
		if _, ok := m[key]; !ok {
			continue
		}
		if dropped == nil {
			m = maps.Clone(m)
		}
		delete(m, key)
		dropped = append(dropped, key)
	}
	return m, dropped
}

// sortedKeys returns the sorted keys of m.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
