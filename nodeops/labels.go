// SPDX-License-Identifier: Apache-2.0

package nodeops

import "maps"

// SetLabel returns a copy of labels in which key has the value, and whether that differs
// from what was given. The result is the caller's own, also when nothing changed. An empty
// key changes nothing; labels may be nil.
func SetLabel(labels map[string]string, key, value string) (_ map[string]string, changed bool) {
	return setKey(labels, key, value)
}

// SetLabels sets every entry of set as [SetLabel] does.
func SetLabels(labels, set map[string]string) (_ map[string]string, changed bool) {
	return setKeys(labels, set)
}

// RemoveLabels returns a copy of labels without the keys, and whether one of them was there.
// The result is the caller's own, also when nothing changed; labels may be nil.
func RemoveLabels(labels map[string]string, keys ...string) (_ map[string]string, changed bool) {
	return removeKeys(labels, keys)
}

// setKey is setKeys for one entry, without the map around it.
func setKey(m map[string]string, key, value string) (map[string]string, bool) {
	out := maps.Clone(m)
	if old, ok := m[key]; key == "" || (ok && old == value) {
		return out, false
	}
	if out == nil {
		out = make(map[string]string, 1)
	}
	out[key] = value
	return out, true
}

// setKeys returns a copy of m with the entries of set, and whether that differs from m.
func setKeys(m, set map[string]string) (map[string]string, bool) {
	out, changed := maps.Clone(m), false
	for key, value := range set {
		if old, ok := m[key]; key == "" || (ok && old == value) {
			continue
		}
		if out == nil {
			out = make(map[string]string, len(set))
		}
		out[key], changed = value, true
	}
	return out, changed
}

// removeKeys returns a copy of m without the keys, and whether that differs from m.
func removeKeys(m map[string]string, keys []string) (map[string]string, bool) {
	out := maps.Clone(m)
	for _, key := range keys {
		delete(out, key)
	}
	return out, len(out) != len(m)
}
