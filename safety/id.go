// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"strings"

	"github.com/machinist-dev/machinist/nodeops"
)

// idKey is a provider ID for comparison. Two IDs have the same key if and only if
// [nodeops.NormalizeProviderID] returns the same for both. An ID that identifies no VM has
// the empty key.
type idKey string

// idKeys is the scheme of most provider IDs. The key of an ID with that scheme is the rest of
// the ID, which needs no allocation.
type idKeys string

// of returns the key of a provider ID.
func (k idKeys) of(id string) idKey {
	scheme, path, plain := cutPlain(id)
	if plain && scheme == string(k) {
		return idKey(path)
	}
	id = nodeops.NormalizeProviderID(id)
	switch scheme, path, found := strings.Cut(id, "://"); {
	case id == "":
		return ""
	case !found:
		return idKey("://" + id)
	case scheme == string(k):
		return idKey(path)
	default:
		return idKey(id)
	}
}

// schemeOf returns the scheme of a provider ID in lower case, or an empty string.
func schemeOf(id string) string {
	scheme, _, found := strings.Cut(nodeops.NormalizeProviderID(id), "://")
	if !found {
		return ""
	}
	return scheme
}

// cutPlain returns the scheme and path of a provider ID such as "aws:///zone/i-1". plain
// reports that the ID is normalized, except for the number of leading slashes.
func cutPlain(id string) (scheme, path string, plain bool) {
	i := 0
	for i < len(id) && ('a' <= id[i] && id[i] <= 'z' || i > 0 && '0' <= id[i] && id[i] <= '9') {
		i++
	}
	scheme, path, plain = id[:i], id[i:], strings.HasPrefix(id[i:], "://")
	if !plain || i == 0 || scheme == "azure" {
		return "", "", false
	}
	path = strings.TrimLeft(path[len("://"):], "/")
	before := byte('/')
	for i := range len(path) {
		c := path[i]
		if c <= ' ' || '~' < c || c == '/' && before == '/' {
			return "", "", false
		}
		before = c
	}
	return scheme, path, before != '/'
}
