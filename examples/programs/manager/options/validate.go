// SPDX-License-Identifier: Apache-2.0

package options

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist/driver"
)

// ErrInvalid is wrapped by the errors of [MCServer.Validate].
var ErrInvalid = errors.New("invalid flag")

// Validate returns all errors in one, or nil. Each wraps [ErrInvalid] and names its flag.
func (s *MCServer) Validate() error {
	var errs []error
	for _, f := range NewManagerServer().settings() {
		if f.check == nil {
			continue
		}
		if problem := f.check(s, f.field(s)); problem != "" {
			errs = append(errs, fmt.Errorf("%w: --%s: %s", ErrInvalid, f.name, problem))
		}
	}
	return errors.Join(errs...)
}

// unless returns a problem, or "" if the value is valid.
func unless(valid bool, format string, args ...any) string {
	if valid {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// sign returns a number or duration, and its sign.
func sign(field any) (value any, sign int) {
	switch v := reflect.Indirect(reflect.ValueOf(field)); {
	case v.CanInt():
		return v.Interface(), cmp.Compare(v.Int(), 0)
	case v.CanFloat():
		return v.Interface(), cmp.Compare(v.Float(), 0)
	default:
		return field, -1
	}
}

func notNegative(_ *MCServer, field any) string {
	value, sign := sign(field)
	return unless(sign >= 0, "%v is negative", value)
}

func positiveOnly(_ *MCServer, field any) string {
	value, sign := sign(field)
	return unless(sign > 0, "%v is not positive", value)
}

func checkControl(s *MCServer, _ any) string {
	return unless(s.TargetKubeconfig != None || s.ControlKubeconfig != "", "required if --target-kubeconfig is %q", None)
}

func checkNamespace(s *MCServer, _ any) string {
	return unless(len(validation.IsDNS1123Label(s.Namespace)) == 0, "%q is not a namespace name", s.Namespace)
}

func checkShard(s *MCServer, _ any) string {
	return unless(s.Shard == "" || len(validation.IsDNS1123Label(s.Shard)) == 0, "%q is not a DNS label: at most 63 of a-z, 0-9 and -", s.Shard)
}

// port reports whether a number is that of a port.
func port(n int) bool { return n >= 1 && n <= 65535 }

func checkPort(s *MCServer, _ any) string {
	return unless(port(s.Port), "%d is not between 1 and 65535", s.Port)
}

func checkAddress(s *MCServer, _ any) string {
	return unless(net.ParseIP(s.Address) != nil, "%q is not an IP address", s.Address)
}

func checkTLS(s *MCServer, _ any) string {
	return unless((s.TLSCertFile == "") == (s.TLSPrivateKeyFile == ""), "it needs --tls-cert-file, and --tls-cert-file needs it")
}

func checkContention(s *MCServer, _ any) string {
	return unless(s.Profiling || !s.ContentionProfiling, "needs --profiling")
}

func checkProfilingPort(s *MCServer, _ any) string {
	switch {
	case !s.Profiling:
		return ""
	case !port(s.ProfilingPort):
		return unless(false, "%d is not between 1 and 65535", s.ProfilingPort)
	default:
		return unless(s.ProfilingPort != s.Port, "%d is the port of health checks and metrics", s.ProfilingPort)
	}
}

func checkFreezePeriod(s *MCServer, field any) string {
	if s.FreezePeriod < 0 {
		return notNegative(s, field)
	}
	return unless(s.FreezePeriod == 0 || s.FreezePeriod >= s.FreezeTimeout, "%s is less than the timeout %s", s.FreezePeriod, s.FreezeTimeout)
}

func checkPercent(s *MCServer, _ any) string {
	return unless(s.HoldPercent >= 0 && s.HoldPercent <= 100, "%d is not between 0 and 100", s.HoldPercent)
}

func checkTimeouts(s *MCServer, _ any) string {
	for _, op := range append(driver.Operations(), "") {
		if d := *(timeouts{&s.DriverTimeouts}).field(op.String()); d < 0 {
			return fmt.Sprintf("%s is negative", d)
		}
	}
	return ""
}

// tokenGroup is the form of a group that the API server accepts. It refuses a token with any other
// group.
var tokenGroup = regexp.MustCompile(`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`)

func checkGroups(s *MCServer, _ any) string {
	var bad []string
	for _, group := range groupsOf(s.TokenGroups) {
		if !tokenGroup.MatchString(group) {
			bad = append(bad, fmt.Sprintf("%q", group))
		}
	}
	return unless(bad == nil, "no match of %s: %s", tokenGroup, strings.Join(bad, ", "))
}

func checkFormat(s *MCServer, _ any) string {
	return unless(s.LoggingFormat == "text" || s.LoggingFormat == "json", "%q is neither text nor json", s.LoggingFormat)
}
