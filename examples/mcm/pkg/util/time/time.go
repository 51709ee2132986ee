// SPDX-License-Identifier: Apache-2.0

// Package time has a name of MCM.
package time

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HasTimeOutOccurred reports whether more than period has passed since timeStamp.
//
//go:fix inline
func HasTimeOutOccurred(timeStamp metav1.Time, period time.Duration) bool {
	return time.Since(timeStamp.Time) > period
}
