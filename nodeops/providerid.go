// SPDX-License-Identifier: Apache-2.0

package nodeops

import "strings"

// azureScheme is the scheme of Azure, whose provider IDs are not case-sensitive.
const azureScheme = "azure"

// NormalizeProviderID returns the canonical form of a provider ID, or "" if it identifies nothing.
// Two provider IDs are equal if their canonical forms are equal and not empty.
//
// Spaces around the ID and its path elements are removed. The scheme is lower case. Path elements
// are separated by one slash, with none at the ends: "gce:///p/z/n/" becomes "gce://p/z/n". An ID
// with the scheme azure is lower case.
//
// Otherwise the path is compared as it is. IDs with the zone and with the region of one instance
// ("aws:///eu-west-1a/i-0abc", "aws:///eu-west-1/i-0abc") are not equal, nor is an ID without its
// scheme or its first path elements: see [SameInstance]. Escapes such as %2F are not decoded.
// Letters outside ASCII keep their case.
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

// SameInstance reports whether two provider IDs have the same last path element. It ignores case if
// one of them has the scheme azure. IDs that identify nothing are not the same.
//
// The cluster autoscaler and MCM recognize instances by this rule. It cannot tell two instances of
// one name in different zones, regions or projects apart. [Index.Match] uses it only to see that
// two IDs cannot belong together.
func SameInstance(a, b string) bool {
	return sameLastElement(NormalizeProviderID(a), NormalizeProviderID(b))
}

// sameLastElement is SameInstance for normalized provider IDs.
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

// lastElement returns the last path element of a normalized provider ID.
func lastElement(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }

// splitProviderID returns the scheme by RFC 3986, in lower case, and the rest.
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
