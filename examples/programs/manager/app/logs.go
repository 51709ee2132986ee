// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"strconv"

	"k8s.io/klog/v2"

	"github.com/machinist-dev/machinist/examples/controllers"
)

// The levels of the log; a verbosity of n shows those from -n on. Numbers below
// zero are what klog calls V(1), V(2) and so on.
const (
	levelDone  = slog.LevelInfo // what is done
	levelWaits = slog.Level(-2) // what is not done yet, and a write that lost against another
	levelPass  = slog.Level(-4) // every look
)

// withoutBodies is the highest verbosity at which client-go logs no request bodies.
const withoutBodies = 7

// NewLogger returns a logger that writes text, or JSON if the format is "json". Verbosity 0 logs
// actions and errors, 2 also waits, 4 also each decision. The log contains no data of Secrets:
// neither decisions nor errors have any, and client-go, which logs request bodies from verbosity 8
// on, is kept below that.
func NewLogger(w io.Writer, format string, verbosity int) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.Level(-max(verbosity, 0))}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// setUpLogs makes a logger the logger of the process and of client-go.
func setUpLogs(log *slog.Logger, verbosity int) {
	slog.SetDefault(log)
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("v", strconv.Itoa(min(max(verbosity, 0), withoutBodies))) // any number is one
	klog.SetSlogLogger(log)
}

// observer returns a function that logs the decisions of the controllers.
func observer(log *slog.Logger) func(controllers.Note) {
	return func(n controllers.Note) {
		level := levelPass
		switch {
		case n.Err != nil:
			level = slog.LevelError
		case n.Acts:
			level = levelDone
		case n.Waits:
			level = levelWaits
		}
		message, more := "decided", []any{"kind", n.Kind, "key", n.Key}
		if n.Text != "" {
			more = append(more, "decision", n.Text)
		}
		if n.Err != nil {
			message, more = "failed", append(more, "err", n.Err)
		}
		var panicked *controllers.PanicError
		if errors.As(n.Err, &panicked) {
			more = append(more, "stack", string(panicked.Stack))
		}
		log.Log(context.Background(), level, message, more...)
	}
}
