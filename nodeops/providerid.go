// SPDX-License-Identifier: Apache-2.0

package nodeops

import "strings"

// azureScheme is the scheme of the one cloud whose resource ids do not distinguish case, and
// whose components spell them in several ways.
const azureScheme = "azure"

// NormalizeProviderID returns the canonical spelling of a provider id, or "" if nothing in it
// identifies anything. Two ids are the same exactly if their canonical spellings are equal and
// not empty.
//
// The rules: space around the id and around each path element is dropped; the scheme, if there is one, is
// lower case; path elements are separated by one slash, with none at either end, so that
// "gce:///p/z/n/" is "gce://p/z/n"; with the scheme azure the whole id is lower case.
//
// The limits: the path is compared as it stands. An id with the zone and an id with the region of the same
// instance ("aws:///eu-west-1a/i-0abc", "aws:///eu-west-1/i-0abc") are not equal, nor is an id without
// its scheme or without its leading path elements; [SameInstance] sees through that. Escapes such as
// %2F are not decoded. Letters outside ASCII keep their case.
func NormalizeProviderID(id string) string {
	scheme, path := splitProviderID(id)
	var b strings.Builder
	b.Grow(len(id))
	if scheme != "" {
		b.WriteString(scheme)
		b.WriteString("://")
	}
	empty := true
	for element := range strings.SplitSeq(path, "/") {
		if element = strings.TrimSpace(element); element == "" {
			continue
		}
		if !empty {
			b.WriteByte('/')
		}
		empty = false
		if scheme == azureScheme {
			element = lowerASCII(element)
		}
		b.WriteString(element)
	}
	if empty {
		return ""
	}
	return b.String()
}

// SameInstance reports whether two provider ids end in the same path element, in any case of letters if
// one of them has the scheme azure. Ids that identify nothing are not the same.
//
// This is the looser rule by which the cluster autoscaler and the reference system recognise
// an instance, whatever zone, region or project stands before its name. It cannot tell apart two instances of
// the same name in different places, and so it is good for doubting a match, not for making one:
// [Index.Match] uses it only to see that two ids cannot belong together.
func SameInstance(a, b string) bool {
	return sameLastElement(NormalizeProviderID(a), NormalizeProviderID(b))
}

// sameLastElement is SameInstance for ids that are normalized.
func sameLastElement(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	x, y := lastElement(a), lastElement(b)
	if strings.HasPrefix(a, azureScheme+"://") || strings.HasPrefix(b, azureScheme+"://") {
		return lowerASCII(x) == lowerASCII(y)
	}
	return x == y
}

// lastElement returns what stands behind the last slash of a normalized id.
func lastElement(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }

// splitProviderID returns the scheme, in lower case, and the rest. What is not a scheme by
// RFC 3986 belongs to the rest.
func splitProviderID(id string) (scheme, path string) {
	scheme, path, found := strings.Cut(id, "://")
	scheme = lowerASCII(strings.TrimSpace(scheme))
	if !found || !isScheme(scheme) {
		return "", id
	}
	return scheme, path
}

// isScheme reports whether s, in lower case, is a scheme: a letter, then letters, digits, "+", "-" or ".".
func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return false
		}
	}
	return s != ""
}

// lowerASCII returns s with the letters A to Z in lower case.
func lowerASCII(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return 'A' <= r && r <= 'Z' }) < 0 {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
