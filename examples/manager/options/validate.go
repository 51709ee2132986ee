// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ErrInvalid is wrapped by the errors of [MCServer.Validate].
var ErrInvalid = errors.New("invalid flag")

// complaints collects the errors of the flags.
type complaints []error

func (c *complaints) unless(ok bool, flag, format string, args ...any) {
	if !ok {
		*c = append(*c, fmt.Errorf("%w: --%s: %s", ErrInvalid, flag, fmt.Sprintf(format, args...)))
	}
}

// tokenGroup is the form of a group that the API server accepts. It refuses a token with any other
// group.
var tokenGroup = regexp.MustCompile(`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`)

// Validate returns all errors in one, or nil. Each wraps [ErrInvalid] and names its flag.
func (s *MCServer) Validate() error {
	var c complaints
	c.unless(s.TargetKubeconfig != None || s.ControlKubeconfig != "", "control-kubeconfig", "required if --target-kubeconfig is %q", None)
	c.unless(len(validation.IsDNS1123Label(s.Namespace)) == 0, "namespace", "%q is not a namespace name", s.Namespace)
	c.unless(s.Shard == "" || len(validation.IsDNS1123Label(s.Shard)) == 0, "shard", "%q is not a DNS label: at most 63 of a-z, 0-9 and -", s.Shard)
	c.unless(s.Port >= 1 && s.Port <= 65535, "port", "%d is not between 1 and 65535", s.Port)
	c.unless(net.ParseIP(s.Address) != nil, "address", "%q is not an IP address", s.Address)
	c.unless((s.TLSCertFile == "") == (s.TLSPrivateKeyFile == ""), "tls-private-key-file", "it needs --tls-cert-file, and --tls-cert-file needs it")
	c.unless(s.Profiling || !s.ContentionProfiling, "contention-profiling", "needs --profiling")
	c.unless(!s.Profiling || s.ProfilingPort >= 1 && s.ProfilingPort <= 65535, "profiling-port", "%d is not between 1 and 65535", s.ProfilingPort)
	c.unless(!s.Profiling || s.ProfilingPort != s.Port, "profiling-port", "%d is the port of health checks and metrics", s.Port)
	c.unless(s.ConcurrentSyncs > 0, "concurrent-syncs", "%d is not positive", s.ConcurrentSyncs)
	c.unless(s.KubeAPIQPS > 0, "kube-api-qps", "%v is not positive", s.KubeAPIQPS)
	c.unless(s.KubeAPIBurst >= 0, "kube-api-burst", "%d is negative", s.KubeAPIBurst)
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{"min-resync-period", s.MinResyncPeriod},
		{"machine-creation-timeout", s.CreationTimeout},
		{"machine-health-timeout", s.HealthTimeout},
		{"machine-drain-timeout", s.DrainTimeout},
		{"machine-inplace-update-timeout", s.InPlaceUpdateTimeout},
		{"machine-preserve-timeout", s.PreserveTimeout},
		{"machine-pv-detach-timeout", s.PVDetachTimeout},
		{"machine-pv-reattach-timeout", s.PVReattachTimeout},
		{"resource-exhausted-retry", s.ResourceExhaustedRetry},
		{"machine-settle-time", s.SettleTime},
		{"machine-safety-apiserver-statuscheck-timeout", s.FreezeTimeout},
		{"machine-safety-apiserver-statuscheck-period", s.FreezePeriod},
		{"machine-safety-orphan-vms-period", s.OrphanVMsPeriod},
		{"machine-safety-orphan-vms-grace", s.OrphanVMsGrace},
		{"machine-safety-overshooting-period", s.OvershootPeriod},
	} {
		c.unless(d.value >= 0, d.flag, "%s is negative", d.value)
	}
	c.unless(s.HoldPercent >= 0 && s.HoldPercent <= 100, "machine-safety-hold-percent", "%d is not between 0 and 100", s.HoldPercent)
	c.unless(s.OvershootUp >= 0, "safety-up", "%d is negative", s.OvershootUp)
	c.unless(s.OvershootDown >= 0, "safety-down", "%d is negative", s.OvershootDown)
	c.unless(s.FreezePeriod == 0 || s.FreezePeriod >= s.FreezeTimeout, "machine-safety-apiserver-statuscheck-period",
		"%s is less than the timeout %s", s.FreezePeriod, s.FreezeTimeout)
	c.unless(s.MaxReplacements >= 0, "machine-max-replacements", "%d is negative", s.MaxReplacements)
	for _, group := range s.BootstrapGroups() {
		c.unless(tokenGroup.MatchString(group), "bootstrap-token-auth-extra-groups", "%q does not match %s", group, tokenGroup)
	}
	c.unless(s.Verbosity >= 0, "v", "%d is negative", s.Verbosity)
	c.unless(s.LoggingFormat == "text" || s.LoggingFormat == "json", "logging-format", "%q is neither text nor json", s.LoggingFormat)
	s.LeaderElection.validate(&c)
	return errors.Join(c...)
}

// jitter is the factor by which a wait of the election may exceed the retry period.
const jitter = 1.2

func (l *LeaderElection) validate(c *complaints) {
	if !l.LeaderElect {
		return
	}
	c.unless(l.ResourceLock == "leases", "leader-elect-resource-lock", "%q is not supported: use leases", l.ResourceLock)
	c.unless(len(validation.IsDNS1123Subdomain(l.ResourceName)) == 0, "leader-elect-resource-name", "%q is not a lease name", l.ResourceName)
	c.unless(l.ResourceNamespace == "" || len(validation.IsDNS1123Label(l.ResourceNamespace)) == 0, "leader-elect-resource-namespace",
		"%q is not a namespace name", l.ResourceNamespace)
	c.unless(l.RetryPeriod > 0, "leader-elect-retry-period", "%s is not positive", l.RetryPeriod)
	c.unless(float64(l.RenewDeadline) > jitter*float64(l.RetryPeriod), "leader-elect-renew-deadline",
		"%s is not more than %v times the retry period %s", l.RenewDeadline, jitter, l.RetryPeriod)
	c.unless(l.LeaseDuration > l.RenewDeadline+l.RetryPeriod, "leader-elect-lease-duration",
		"%s is not more than the renew deadline %s and the retry period %s together", l.LeaseDuration, l.RenewDeadline, l.RetryPeriod)
	c.unless(l.LeaseDuration >= time.Second, "leader-elect-lease-duration", "%s is less than 1s", l.LeaseDuration)
}
