// SPDX-License-Identifier: Apache-2.0

package main

import _ "github.com/machinist-dev/machinist/examples/internal/cachemutation" // no test modifies a cache
