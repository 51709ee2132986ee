// SPDX-License-Identifier: Apache-2.0

package codes

import "github.com/machinist-dev/machinist/codes"

// StringToCode returns the code with a name, or Unknown: see [codes.Parse].
func StringToCode(name string) codes.Code {
	code, _ := codes.Parse(name)
	return code
}
