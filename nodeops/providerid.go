// SPDX-License-Identifier: Apache-2.0

package nodeops

import "strings"

const (
	// awsScheme is the scheme of AWS. Its provider IDs have a zone or a region before the instance.
	awsScheme = "aws"
	// azureScheme is the scheme of Azure, whose provider IDs are not case-sensitive.
	azureScheme = "azure"
)

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

// SameInstance reports whether two provider IDs identify one instance. A component may leave out the
// scheme and the first path elements: "gce://p/z/n", "z/n" and "n" are one instance. An instance of
// AWS may have its region in place of its zone. IDs with the scheme azure are compared without
// case. IDs that identify nothing are not the same.
//
// The cluster autoscaler and MCM compare the last path element only. They take instances of one
// name in different zones, and instances of one number in different scale sets, for one instance.
func SameInstance(a, b string) bool {
	return sameInstance(NormalizeProviderID(a), NormalizeProviderID(b))
}

// sameInstance is SameInstance for normalized provider IDs.
func sameInstance(a, b string) bool {
	x, long := splitProviderID(a)
	y, short := splitProviderID(b)
	if a == "" || b == "" || x != y && x != "" && y != "" {
		return false
	}
	if len(long) < len(short) {
		long, short = short, long
	}
	if x == azureScheme || y == azureScheme {
		long, short = lowerASCII(long), lowerASCII(short)
	}
	start, ends := strings.CutSuffix(long, short)
	switch {
	case ends:
		return start == "" || strings.HasSuffix(start, "/")
	case x == awsScheme && y == awsScheme:
		return inRegion(long) == inRegion(short)
	default:
		return false
	}
}

// inRegion returns a path of AWS with the region in place of the zone, which has a letter after the
// number of the region.
func inRegion(path string) string {
	place, instance, _ := strings.Cut(path, "/")
	if n := len(place); n > 1 && 'a' <= place[n-1] && place[n-1] <= 'z' && '0' <= place[n-2] && place[n-2] <= '9' {
		place = place[:n-1]
	}
	return place + "/" + instance
}

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
