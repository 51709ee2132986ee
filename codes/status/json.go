// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/machinist-dev/machinist/codes"
)

// wire is the JSON form of a Status. Code and Number say the same; Number lets
// a reader that does not know the name carry the code along. The Bytes fields
// are there only for texts that are not valid UTF-8, which a JSON string cannot
// hold, and then win over the texts beside them.
type wire struct {
	Code         codes.Code `json:"code"`
	Number       uint32     `json:"number,omitempty"`
	Message      string     `json:"message"`
	MessageBytes []byte     `json:"messageBytes,omitempty"`
	Cause        *string    `json:"cause,omitempty"`
	CauseBytes   []byte     `json:"causeBytes,omitempty"`
}

// MarshalJSON implements [json.Marshaler]:
//
//	{"code":"NotFound","number":5,"message":"no such instance","cause":"404 [eu-1]"}
//
// Of the cause the text is kept, not the type. Texts survive byte by byte, also
// if they are not valid UTF-8. A nil Status is null.
func (s *Status) MarshalJSON() ([]byte, error) {
	if s == nil {
		return []byte("null"), nil
	}
	w := wire{
		Code:         s.code,
		Number:       uint32(s.code),
		Message:      s.message,
		MessageBytes: bytesUnlessUTF8(s.message),
	}
	if s.cause != nil {
		text := s.cause.Error()
		w.Cause, w.CauseBytes = &text, bytesUnlessUTF8(text)
	}
	return json.Marshal(w)
}

// UnmarshalJSON implements [json.Unmarshaler]. It takes what MarshalJSON writes,
// and by hand just a code and a message will do. The code counts by its name; by
// its number if the name is missing or not known; and is Unknown without either,
// never OK. The cause becomes an error that has its text and nothing else. null
// changes nothing, and an error leaves s as it was.
//
// Do not decode into a Status that others hold.
func (s *Status) UnmarshalJSON(data []byte) error {
	if s == nil {
		return errNilReceiver
	}
	if string(data) == "null" {
		return nil
	}
	w := wire{Code: codes.Unknown}
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("status: decode: %w", err)
	}
	if w.Code == codes.Unknown && w.Number != 0 {
		w.Code = codes.Code(w.Number)
	}
	decoded := Status{code: w.Code, message: textOr(w.MessageBytes, w.Message)}
	if w.Cause != nil {
		decoded.cause = causeText(textOr(w.CauseBytes, *w.Cause))
	}
	*s = decoded
	return nil
}

// errNilReceiver is what decoding into a nil pointer returns.
var errNilReceiver = errors.New("status: cannot decode into a nil pointer")

// causeText is a cause of which only the text is left.
type causeText string

func (c causeText) Error() string { return string(c) }

// bytesUnlessUTF8 returns the bytes of text if a JSON string cannot hold them.
func bytesUnlessUTF8(text string) []byte {
	if utf8.ValidString(text) {
		return nil
	}
	return []byte(text)
}

// textOr returns the exact bytes if there are any, and else the text.
func textOr(exact []byte, text string) string {
	if len(exact) > 0 {
		return string(exact)
	}
	return text
}
