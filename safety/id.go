// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"strings"

	"github.com/machinist-dev/machinist/nodeops"
)

// idKey is a provider ID in a form for comparison. Two IDs have the same key if and only
// if [nodeops.NormalizeProviderID] returns the same for both. The empty key is that of an
// ID that identifies nothing.
type idKey string

// idKeys makes keys. It is the scheme that most IDs have: their keys are the rest of the
// ID, which costs no allocation.
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

// schemeOf returns the scheme of a provider ID, in lower case; empty if it has none.
func schemeOf(id string) string {
	scheme, _, found := strings.Cut(nodeops.NormalizeProviderID(id), "://")
	if !found {
		return ""
	}
	return scheme
}

// cutPlain returns scheme and path of a provider ID in the usual form, such as
// "aws:///zone/i-1": nothing in it has to be changed but the number of slashes in front.
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
