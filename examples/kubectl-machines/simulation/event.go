// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// event is a change of the world at a time after the change of the deployment.
type event struct {
	after  time.Duration
	kind   eventKind
	number int64              // replicas, revision or quota; noQuota for no quota
	name   string             // of a class or of a machine
	bound  intstr.IntOrString // maxSurge or maxUnavailable
	text   string             // as on the command line, without the time
}

type eventKind string

// The kinds of events, as on the command line.
const (
	eventReplicas    eventKind = "replicas"
	eventClass       eventKind = "class"
	eventSurge       eventKind = "surge"
	eventUnavailable eventKind = "unavailable"
	eventPause       eventKind = "pause"
	eventResume      eventKind = "resume"
	eventRollback    eventKind = "rollback"
	eventDelete      eventKind = "delete"
	eventSelect      eventKind = "select"
	eventQuota       eventKind = "quota"
)

// noQuota is the number of an event that removes the quota.
const noQuota = -1

// parseEvent parses TIME=KIND or TIME=KIND:VALUE.
func parseEvent(text string) (event, error) {
	at, what, found := strings.Cut(text, "=")
	if !found {
		return event{}, fmt.Errorf("%q is not an event, want TIME=EVENT such as 5m=replicas:8", text)
	}
	after, err := time.ParseDuration(at)
	switch {
	case err != nil:
		return event{}, fmt.Errorf("%q is not a time, want one such as 5m or 1h30m", at)
	case after < 0:
		return event{}, fmt.Errorf("%s is before the rollout", at)
	}
	kind, value, given := strings.Cut(what, ":")
	e := event{after: after, kind: eventKind(kind), text: what}
	if err := e.read(value, given); err != nil {
		return event{}, fmt.Errorf("%s: %w", what, err)
	}
	return e, nil
}

// read parses the value of an event.
func (e *event) read(value string, given bool) error {
	switch e.kind {
	case eventPause, eventResume:
		if given {
			return errors.New("takes no value")
		}
		return nil
	case eventReplicas:
		return e.readNumber(value, maxMachines)
	case eventRollback:
		if !given {
			return nil
		}
		return e.readNumber(value, 1<<53)
	case eventQuota:
		if value == "none" {
			e.number = noQuota
			return nil
		}
		return e.readNumber(value, maxMachines)
	case eventClass, eventDelete, eventSelect:
		e.name = value
		return checkName(value)
	case eventSurge, eventUnavailable:
		return e.readBound(value)
	default:
		return errors.New("unknown event, --help lists them")
	}
}

func (e *event) readNumber(value string, most int64) error {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 || n > most {
		return fmt.Errorf("%q is not a number from 0 to %d", value, most)
	}
	e.number = n
	return nil
}

func (e *event) readBound(value string) error {
	number, percent := strings.CutSuffix(value, "%")
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 0 || n > maxMachines {
		return fmt.Errorf("%q is neither a number of machines nor a percentage", value)
	}
	e.bound = intstr.FromInt32(int32(n))
	if percent {
		e.bound = intstr.FromString(value)
	}
	return nil
}

func checkName(name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("%q is not a name", name)
	}
	return nil
}
