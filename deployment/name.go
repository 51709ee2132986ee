// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"strconv"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TemplateHash returns the value of the template hash label of a new set: the
// 32-bit FNV-1a hash, in decimal, of the JSON form of what makes a generation
// (so templates that are equal under [EqualIgnoreHash] have the same hash),
// followed by the collision count if there is one. Sets are never found by this
// value, only told apart by it; it differs from the reference system's.
func TemplateHash(t v1alpha1.MachineTemplateSpec, collisions *int32) string {
	h := fnv.New32a()
	// Templates hold nothing that could not be encoded; if that should change,
	// names collide, and the collision count keeps them apart.
	if text, err := json.Marshal(generation(t)); err == nil {
		_, _ = h.Write(text)
	}
	if collisions != nil {
		var count [8]byte
		binary.LittleEndian.PutUint32(count[:], uint32(*collisions)) //nolint:gosec // any bits will do
		_, _ = h.Write(count[:])
	}
	return strconv.FormatUint(uint64(h.Sum32()), 10)
}

const (
	nameAlphabet  = "bcdfghjklmnpqrstvwxz2456789"
	nameSuffixLen = 5
	nameMaxLen    = 253
)

// NameSuffix returns the part of a set's name that stands for a template hash:
// its first five characters in an alphabet without vowels, so that no words
// come out.
func NameSuffix(hash string) string {
	out := make([]byte, 0, len(hash))
	for _, r := range hash {
		out = append(out, nameAlphabet[int(r)%len(nameAlphabet)])
	}
	return string(out[:min(len(out), nameSuffixLen)])
}

// SetName returns the name of the set that a deployment creates for a template
// with the given hash. The name of the deployment is cut if the result would be
// too long for an object.
func SetName(deployment, hash string) string {
	suffix := "-" + NameSuffix(hash)
	return deployment[:min(len(deployment), nameMaxLen-len(suffix))] + suffix
}
