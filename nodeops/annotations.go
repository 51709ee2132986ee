// SPDX-License-Identifier: Apache-2.0

package nodeops

// SetAnnotation returns a copy of annotations in which key has the value, and whether that
// differs from what was given. The result is the caller's own, also when nothing changed.
// An empty key changes nothing; annotations may be nil.
func SetAnnotation(annotations map[string]string, key, value string) (_ map[string]string, changed bool) {
	return setKey(annotations, key, value)
}

// SetAnnotations sets every entry of set as [SetAnnotation] does.
func SetAnnotations(annotations, set map[string]string) (_ map[string]string, changed bool) {
	return setKeys(annotations, set)
}

// RemoveAnnotations returns a copy of annotations without the keys, and whether one of them
// was there. The result is the caller's own, also when nothing changed; annotations may be nil.
func RemoveAnnotations(annotations map[string]string, keys ...string) (_ map[string]string, changed bool) {
	return removeKeys(annotations, keys)
}
