// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"log/slog"
	"runtime"
	"strings"

	"github.com/go-logr/logr"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
)

// Slog returns an observer that logs every event with the time of the event. Refused
// requests, abandoned pods and volumes, and the use of force have level Warn, all other
// events Info. Nil means [slog.Default].
func Slog(log *slog.Logger) runner.Observer {
	return observerFunc(func(e drain.Progress) {
		to := log
		if to == nil {
			to = slog.Default()
		}
		level := slog.LevelInfo
		if isWarning(e) {
			level = slog.LevelWarn
		}
		ctx := context.Background()
		if !to.Enabled(ctx, level) {
			return
		}
		var caller [1]uintptr
		runtime.Callers(2, caller[:])
		record := slog.NewRecord(e.Time, level, title(e), caller[0])
		record.Add(pairs(e)...)
		_ = to.Handler().Handle(ctx, record) // like the methods of slog.Logger
	})
}

// Logr returns an observer that logs every event. Warnings (see [Slog]) have verbosity
// 0, all other events 1. A refused request is not logged with Error, because it is not
// an error of the program.
func Logr(log logr.Logger) runner.Observer {
	return observerFunc(func(e drain.Progress) {
		to := log.V(1)
		if isWarning(e) {
			to = log
		}
		to.Info(title(e), pairs(e)...)
	})
}

// title returns the message of a line. There is one message per type of progress.
func title(e drain.Progress) string { return "drain: " + strings.ToLower(string(e.Type)) }

// pairs returns the keys and values of a line. Empty values are omitted.
func pairs(e drain.Progress) []any {
	kv := []any{"node", e.Node}
	add := func(key, value string) {
		if value != "" {
			kv = append(kv, key, value)
		}
	}
	if e.Subject != "node/"+e.Node {
		add("subject", e.Subject)
	}
	if e.Row != nil {
		add("action", string(e.Row.Action))
	}
	add("outcome", string(e.Outcome))
	add("reason", string(e.Reason))
	add("message", e.Message)
	if e.Err != nil {
		kv = append(kv, "error", e.Err)
	}
	return kv
}
