// SPDX-License-Identifier: Apache-2.0

// Package alerts checks the alert rules and the dashboard of examples/programs/manager/metrics with the
// parsers and the query engine of Prometheus, on scrapes of the controllers at work in virtual
// time. It has tests only, and is in this module because nothing imports it: Prometheus has many
// dependencies.
package alerts
