// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
)

func TestAnswer_ResponseAndError_NeitherIsAFailure(t *testing.T) {
	type response = driver.DeleteMachineResponse
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		response *response
		err      error
		code     codes.Code
	}{
		"empty response":         {&response{}, nil, codes.OK},
		"response with an error": {&response{LastKnownState: "half-way"}, failed, codes.Unknown},
		"error":                  {nil, failed, codes.Unknown},
		"neither":                {nil, nil, codes.Internal},
	} {
		got, err := driver.Answer(c.response, c.err)
		require.Same(t, c.response, got, name)
		require.Equal(t, c.code, codes.Of(err), name)
	}
}
