// SPDX-License-Identifier: Apache-2.0

package codes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// errNilReceiver is the error of decoding into a nil pointer.
var errNilReceiver = errors.New("codes: cannot decode into a nil pointer")

// MarshalText implements [encoding.TextMarshaler] with [Code.String], also for JSON. The
// error is nil.
func (c Code) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. An unknown name becomes [Unknown]
// without an error. The only error is that of a nil receiver.
func (c *Code) UnmarshalText(text []byte) error {
	if c == nil {
		return errNilReceiver
	}
	*c, _ = Parse(string(text))
	return nil
}

// UnmarshalJSON implements [json.Unmarshaler]. It accepts a name, as [Code.UnmarshalText]
// does, or a number, known or unknown. null changes nothing. Any other value is an error and
// changes nothing.
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
			return fmt.Errorf("codes: decode code name: %w", err)
		}
		return c.UnmarshalText([]byte(name))
	}
	n, ok := parseNumber(string(data))
	if !ok {
		return fmt.Errorf("codes: %.40q is not the name or number of a code", data)
	}
	*c = n
	return nil
}
