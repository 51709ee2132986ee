// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// The following functions check labels and annotations as the API server does.

func labelKey(key string) bool { return len(content.IsLabelKey(key)) == 0 }

func labelValue(value string) bool { return len(content.IsLabelValue(value)) == 0 }

func annotationKey(key string) bool { return labelKey(strings.ToLower(key)) }
