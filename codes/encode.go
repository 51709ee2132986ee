// SPDX-License-Identifier: Apache-2.0

package codes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// errNilReceiver is what decoding into a nil pointer returns.
var errNilReceiver = errors.New("codes: cannot decode into a nil pointer")

// MarshalText implements [encoding.TextMarshaler], and with it the JSON form: a
// code is written as its [Code.String]. It never fails.
func (c Code) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. A name that [Parse] does
// not know becomes [Unknown] without an error, so that an old reader survives a
// new writer. The only error is a nil receiver.
func (c *Code) UnmarshalText(text []byte) error {
	if c == nil {
		return errNilReceiver
	}
	*c, _ = Parse(string(text))
	return nil
}

// UnmarshalJSON implements [json.Unmarshaler]. It takes a name, as
// [Code.UnmarshalText] does, or a number; a number without a name in this
// version is kept as it is. null changes nothing. What is neither (an object, a
// negative or broken number) is an error and leaves c as it was.
func (c *Code) UnmarshalJSON(data []byte) error {
	if c == nil {
		return errNilReceiver
	}
	data = bytes.TrimSpace(data)
	switch {
	case string(data) == "null":
		return nil
	case len(data) > 0 && data[0] == '"':
		var name string
		if err := json.Unmarshal(data, &name); err != nil {
			return fmt.Errorf("codes: decode the name of a code: %w", err)
		}
		return c.UnmarshalText([]byte(name))
	}
	n, ok := parseNumber(string(data))
	if !ok {
		return fmt.Errorf("codes: %.40q is neither the name nor the number of a code", data)
	}
	*c = n
	return nil
}
