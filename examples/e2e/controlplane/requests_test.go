// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	started = `{"kind":"Event","auditID":"w","stage":"ResponseStarted","verb":"watch","user":{"username":"u"},"objectRef":{"resource":"pods","apiVersion":"v1"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:05.000000Z","stageTimestamp":"2026-01-02T03:04:05.500000Z"}`
	got     = `{"kind":"Event","auditID":"g","stage":"ResponseComplete","verb":"get","user":{"username":"u"},"objectRef":{"resource":"pods","name":"p"},"responseStatus":{"code":404},"requestReceivedTimestamp":"2026-01-02T03:04:06.000000Z","stageTimestamp":"2026-01-02T03:04:06.250000Z"}`
	ended   = `{"kind":"Event","auditID":"w","stage":"ResponseComplete","verb":"watch","user":{"username":"u"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:05.000000Z","stageTimestamp":"2026-01-02T03:04:15.000000Z"}`
)

func verbs(requests []Request) string {
	var verbs []string
	for _, r := range requests {
		verbs = append(verbs, r.Verb+" "+r.Latency.String())
	}
	return strings.Join(verbs, ", ")
}

// read reads a log from a file.
func read(t *testing.T, l *auditLog, text string) ([]Request, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "audit.log")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return l.read(file)
}

func TestAuditLog_Growing_ReadsTheRest(t *testing.T) {
	log := started + "\n" + got + "\n" + ended + "\n" + got + "\n"
	var l auditLog
	for end := range len(log) + 1 {
		requests, err := read(t, &l, log[:end])
		require.NoError(t, err)
		whole, err := read(t, &auditLog{}, log[:end])
		require.NoError(t, err)
		require.Equal(t, whole, requests)
		if len(requests) > 0 {
			requests[0].Verb = "changed by the caller"
		}
	}
	// What was read is not read again: the second file is invalid there.
	requests, err := read(t, &l, strings.Repeat("x", len(log))+got+"\n")
	require.NoError(t, err)
	require.Equal(t, "watch 10s, get 250ms, get 250ms, get 250ms", verbs(requests))
}

func TestAuditLog_AnyEnd_IsRead(t *testing.T) {
	for _, tc := range []struct{ name, log, want string }{
		{"nothing", "", ""},
		{"a watch that goes on", started + "\n", "watch 0s"},
		{"a watch that has ended is one request", started + "\n" + got + "\n" + ended + "\n", "watch 10s, get 250ms"},
		{"a last line that is being written", got + "\n" + got[:50], "get 250ms"},
		{"a line that was cut off by the end of a server", got[:50] + got + "\n" + got + "\n", "get 250ms, get 250ms"},
		{"empty lines", "\n" + got + "\n\n", "get 250ms"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			requests, err := read(t, &auditLog{}, tc.log)
			require.NoError(t, err)
			require.Equal(t, tc.want, verbs(requests))
		})
	}
}

func TestAuditLog_InvalidLine_Error(t *testing.T) {
	_, err := read(t, &auditLog{}, got+"\nnonsense\n")
	require.ErrorContains(t, err, "line 2")
}

func TestAuditLog_Event_FieldsOfTheRequest(t *testing.T) {
	requests, err := read(t, &auditLog{}, got+"\n")
	require.NoError(t, err)
	require.Equal(t, []Request{{
		Time: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), Latency: 250 * time.Millisecond,
		User: "u", Verb: "get", Resource: "pods", Name: "p", Code: 404,
	}}, requests)
}

func FuzzParseAudit(f *testing.F) {
	f.Add(started + "\n" + got + "\n" + ended + "\n" + got[:20])
	f.Fuzz(func(t *testing.T, log string) {
		_, _ = read(t, &auditLog{}, log)
	})
}

func TestAuditLog_WatchThatAsksForAList_IsTold(t *testing.T) {
	with := func(verb, uri string) string {
		return strings.NewReplacer(`"verb":"watch"`, `"verb":"`+verb+`","requestURI":"`+uri+`"`).Replace(ended) + "\n"
	}
	requests, err := read(t, &auditLog{}, with("watch", "/api/v1/pods?watch=true&sendInitialEvents=true")+
		with("watch", "/api/v1/pods?watch=true&sendInitialEvents=false")+with("watch", "/api/v1/pods?watch=true")+
		with("list", "/api/v1/pods?sendInitialEvents=true")+with("watch", "::"))
	require.NoError(t, err)
	var told []bool
	for _, r := range requests {
		told = append(told, r.WatchList)
	}
	require.Equal(t, []bool{true, false, false, false, false}, told)
}
