// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/machinist-dev/machinist/codes"
)

// wire is the JSON form of a Status. Number is the same as Code, for readers that do not know
// the name. The Bytes fields are set only for texts that are not valid UTF-8, and then have
// priority over the texts.
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
// The cause is written as text. Texts that are not valid UTF-8 are kept. A nil Status is null.
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

// UnmarshalJSON implements [json.Unmarshaler]. It accepts the form of MarshalJSON; code and
// message are enough. The name of the code has priority over its number. Without both the
// code is Unknown. The cause becomes an error with its text. null and an error change
// nothing. It is not safe for a Status that other goroutines use.
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

// errNilReceiver is the error of decoding into a nil pointer.
var errNilReceiver = errors.New("status: cannot decode into a nil pointer")

// causeText is a decoded cause.
type causeText string

func (c causeText) Error() string { return string(c) }

// bytesUnlessUTF8 returns the bytes of text if a JSON string cannot hold them.
func bytesUnlessUTF8(text string) []byte {
	if utf8.ValidString(text) {
		return nil
	}
	return []byte(text)
}

// textOr returns the exact bytes if there are any, otherwise the text.
func textOr(exact []byte, text string) string {
	if len(exact) > 0 {
		return string(exact)
	}
	return text
}
