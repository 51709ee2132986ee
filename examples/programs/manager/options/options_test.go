// SPDX-License-Identifier: Apache-2.0

package options_test

import (
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/safety"
)

func parse(t *testing.T, args ...string) (*options.MCServer, error) {
	t.Helper()
	return parseFor(t, options.NewManagerServer(), args...)
}

func parseFor(t *testing.T, s *options.MCServer, args ...string) (*options.MCServer, error) {
	t.Helper()
	fs := pflag.NewFlagSet(t.Name(), pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	s.AddFlags(fs)
	return s, fs.Parse(args)
}

// commonFlags are the flags of MCM's two programs, with their defaults there.
var commonFlags = map[string]string{
	"target-kubeconfig": "", "control-kubeconfig": "", "namespace": "default", "min-resync-period": "12h0m0s",
	"leader-elect": "true", "leader-elect-lease-duration": "15s", "leader-elect-renew-deadline": "10s", "leader-elect-retry-period": "2s",
	"leader-elect-resource-lock": "leases", "v": "0", "profiling": "false", "contention-profiling": "false",
	"controller-start-interval": "", "kube-api-content-type": "", "cloud-provider": "",
}

// machineFlags are those of MCM's machine-controller alone, and setFlags those of its
// machine-controller-manager.
var machineFlags = map[string]string{
	"machine-creation-timeout": "20m0s", "machine-health-timeout": "10m0s", "machine-drain-timeout": "2h0m0s", "machine-inplace-update-timeout": "20m0s",
	"machine-preserve-timeout": "96h0m0s", "machine-pv-detach-timeout": "2m0s", "machine-pv-reattach-timeout": "0s", "machine-safety-orphan-vms-period": "15m0s",
	"bootstrap-token-auth-extra-groups": "", "node-conditions": "KernelDeadlock,ReadonlyFilesystem,DiskPressure,NetworkUnavailable",
	"resource-exhausted-retry": "10m0s", "machine-max-evict-retries": "",
}

var setFlags = map[string]string{
	"autoscaler-scaledown-annotation-during-rollout": "true", "safety-up": "2", "safety-down": "1", "machine-safety-overshooting-period": "1m0s",
}

func TestFlags_EachProgram_NamesAndDefaultsOfMCM(t *testing.T) {
	for name, tc := range map[string]struct {
		server               *options.MCServer
		port, workers, lease string
		own, other           map[string]string
	}{
		"machine-controller":         {server: options.NewMCServer(), port: "10259", workers: "50", lease: "machine-controller", own: machineFlags, other: setFlags},
		"machine-controller-manager": {server: options.NewMCMServer(), port: "10258", workers: "10", lease: "machine-controller-manager", own: setFlags, other: machineFlags},
		"manager":                    {server: options.NewManagerServer(), port: "10259", workers: "50", lease: "machine-controller", own: machineFlags},
	} {
		t.Run(name, func(t *testing.T) {
			fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
			tc.server.AddFlags(fs)
			require.NoError(t, tc.server.Validate())
			for _, flags := range []map[string]string{commonFlags, tc.own, {
				"port": tc.port, "concurrent-syncs": tc.workers, "leader-elect-resource-name": tc.lease,
				"kube-api-qps": "100", "kube-api-burst": "200", // MCM has 20 and 30
				"machine-safety-apiserver-statuscheck-period": "1m0s", "machine-safety-apiserver-statuscheck-timeout": "30s",
			}} {
				for flag, value := range flags {
					require.NotNil(t, fs.Lookup(flag), flag)
					require.Equal(t, value, fs.Lookup(flag).DefValue, flag)
				}
			}
			for flag := range tc.other {
				err := fs.Parse([]string{"--" + flag + "=1"})
				require.ErrorContains(t, err, "it is a flag of the machine-controller", flag)
			}
		})
	}
}

func TestShard_Name_IsPartOfTheLease(t *testing.T) {
	s, err := parse(t, "--shard=blue")
	require.NoError(t, err)
	require.NoError(t, s.Validate())
	require.Equal(t, []string{"machine-controller-blue", "machine-controller-manager-blue"}, s.LeaseNames())
	for _, bad := range []string{"a/b", "A", "a.b", "-"} {
		s.Shard = bad
		require.ErrorContains(t, s.Validate(), "--shard: ", bad)
	}
}

func TestLeaseNames_EachProgram_OneForEachPart(t *testing.T) {
	machines, sets := options.NewMCServer().LeaseNames(), options.NewMCMServer().LeaseNames()
	require.Equal(t, []string{"machine-controller"}, machines)
	require.Equal(t, []string{"machine-controller-manager"}, sets)
	require.Equal(t, slices.Concat(machines, sets), options.NewManagerServer().LeaseNames())
	s, err := parse(t, "--leader-elect-resource-name=pool")
	require.NoError(t, err)
	require.Equal(t, []string{"pool", "pool-manager"}, s.LeaseNames(), "two installations in one namespace share no lease")
}

func TestAddress_Default_IsLoopback(t *testing.T) {
	require.True(t, net.ParseIP(options.NewMCServer().Address).IsLoopback())
}

func TestOptions_Defaults_ValidAndDefaultPolicies(t *testing.T) {
	s, err := parse(t)
	require.NoError(t, err)
	require.NoError(t, s.Validate())
	want := machine.DefaultPolicy()
	want.Settle = 30 * time.Second // what zero means
	got := s.Config().Policy
	require.Equal(t, 10*time.Minute, got.Backoff.WaitForCapacity.Base)
	got.Backoff = want.Backoff
	require.Equal(t, want, got)
	require.Equal(t, safety.DefaultPolicy(), s.Config().Orphans)
	require.Equal(t, deployment.Policy{HoldAutoscaler: true}, s.Config().Deployments)
}

func TestOptions_Invalid_AllErrorsAtOnce(t *testing.T) {
	cases := []struct {
		args  []string
		flags []string
	}{
		{[]string{"--target-kubeconfig=none"}, []string{"control-kubeconfig"}},
		{[]string{"--target-kubeconfig=none", "--control-kubeconfig=inClusterConfig"}, nil},
		{[]string{"--target-kubeconfig=file"}, nil},
		{[]string{"--port=0"}, []string{"port"}},
		{[]string{"--port=65536"}, []string{"port"}},
		{[]string{"--tls-cert-file=a"}, []string{"tls-private-key-file"}},
		{[]string{"--tls-private-key-file=a"}, []string{"tls-private-key-file"}},
		{[]string{"--tls-cert-file=a", "--tls-private-key-file=b"}, nil},
		{[]string{"--contention-profiling"}, []string{"contention-profiling"}},
		{[]string{"--profiling", "--contention-profiling"}, nil},
		{[]string{"--profiling", "--profiling-port=0"}, []string{"profiling-port"}},
		{[]string{"--profiling", "--profiling-port=10259"}, []string{"profiling-port"}},
		{[]string{"--profiling-port=10259"}, nil},
		{[]string{"--address=localhost"}, []string{"address"}},
		{[]string{"--address=::1"}, nil},
		{[]string{"--namespace="}, []string{"namespace"}},
		{[]string{"--concurrent-syncs=0", "--kube-api-qps=0", "--kube-api-burst=-1"}, []string{"concurrent-syncs", "kube-api-qps", "kube-api-burst"}},
		{[]string{"--machine-creation-timeout=-1s", "--machine-health-timeout=-1s", "--machine-drain-timeout=-1s"}, []string{"machine-creation-timeout", "machine-health-timeout", "machine-drain-timeout"}},
		{[]string{"--machine-creation-timeout=0", "--machine-health-timeout=0", "--machine-drain-timeout=0", "--min-resync-period=0"}, nil},
		{[]string{"--machine-inplace-update-timeout=-1s", "--machine-preserve-timeout=-1s", "--machine-pv-detach-timeout=-1s", "--machine-pv-reattach-timeout=-1s"}, []string{"machine-inplace-update-timeout", "machine-preserve-timeout", "machine-pv-detach-timeout", "machine-pv-reattach-timeout"}},
		{[]string{"--machine-inplace-update-timeout=0", "--machine-preserve-timeout=0", "--machine-pv-detach-timeout=0", "--machine-max-replacements=0"}, nil},
		{[]string{"--machine-max-replacements=-1"}, []string{"machine-max-replacements"}},
		{[]string{"--bootstrap-token-auth-extra-groups=system:bootstrappers:a,system:bootstrappers:b:c-1"}, nil},
		{[]string{"--bootstrap-token-auth-extra-groups=system:bootstrappers:a,system:masters"}, []string{"bootstrap-token-auth-extra-groups"}},
		{[]string{"--bootstrap-token-auth-extra-groups=system:bootstrappers"}, []string{"bootstrap-token-auth-extra-groups"}},
		{[]string{"--bootstrap-token-auth-extra-groups=system:bootstrappers:,system:bootstrappers:A"}, []string{"bootstrap-token-auth-extra-groups"}},
		{[]string{"--min-resync-period=-1s", "--resource-exhausted-retry=-1s", "--machine-settle-time=-1s"}, []string{"min-resync-period", "resource-exhausted-retry", "machine-settle-time"}},
		{[]string{"--machine-safety-apiserver-statuscheck-timeout=-1s", "--machine-safety-apiserver-statuscheck-period=-1s"}, []string{"machine-safety-apiserver-statuscheck-timeout", "machine-safety-apiserver-statuscheck-period"}},
		{[]string{"--machine-safety-apiserver-statuscheck-timeout=2m"}, []string{"machine-safety-apiserver-statuscheck-period"}},
		{[]string{"--machine-safety-apiserver-statuscheck-timeout=2m", "--machine-safety-apiserver-statuscheck-period=0"}, nil},
		{[]string{"--machine-safety-orphan-vms-period=-1s", "--machine-safety-orphan-vms-grace=-1s"}, []string{"machine-safety-orphan-vms-period", "machine-safety-orphan-vms-grace"}},
		{[]string{"--safety-up=-1", "--safety-down=-1", "--machine-safety-overshooting-period=-1s"}, []string{"safety-up", "safety-down", "machine-safety-overshooting-period"}},
		{[]string{"--machine-safety-hold-percent=-1"}, []string{"machine-safety-hold-percent"}},
		{[]string{"--machine-safety-hold-percent=101"}, []string{"machine-safety-hold-percent"}},
		{[]string{"--machine-safety-hold-percent=0"}, nil},
		{[]string{"--safety-up=0", "--safety-down=0", "--machine-safety-overshooting-period=0"}, nil},
		{[]string{"--leader-elect-resource-lock=configmaps", "--leader-elect-resource-name=A_b"}, []string{"leader-elect-resource-lock", "leader-elect-resource-name"}},
		{[]string{"--leader-elect-lease-duration=12s"}, []string{"leader-elect-lease-duration"}},
		{[]string{"--leader-elect-retry-period=9s"}, []string{"leader-elect-renew-deadline", "leader-elect-lease-duration"}},
		{[]string{"--leader-elect-retry-period=0"}, []string{"leader-elect-retry-period"}},
		{[]string{"--leader-elect=false", "--leader-elect-retry-period=0"}, nil},
		{[]string{"-v=-1", "--logging-format=xml"}, []string{"v", "logging-format"}},
		{[]string{"--machine-driver-timeout=-1s"}, []string{"machine-driver-timeout"}},
		{[]string{"--machine-driver-timeout=1m,ListMachines=-1s"}, []string{"machine-driver-timeout"}},
		{[]string{"--machine-driver-timeout=0"}, nil},
	}
	for _, c := range cases {
		t.Run(fmt.Sprint(c.args), func(t *testing.T) {
			s, err := parse(t, c.args...)
			require.NoError(t, err)
			err = s.Validate()
			if c.flags == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, options.ErrInvalid)
			var joined interface{ Unwrap() []error }
			require.ErrorAs(t, err, &joined)
			require.Len(t, joined.Unwrap(), len(c.flags), err)
			for _, flag := range c.flags {
				require.ErrorContains(t, err, "--"+flag+":")
			}
		})
	}
}

func TestOptions_Zero_Invalid(t *testing.T) {
	require.ErrorIs(t, (&options.MCServer{}).Validate(), options.ErrInvalid)
	new(options.MCServer).AddFlags(nil)
}

func TestFlags_WithoutEffect_AcceptedAndNamed(t *testing.T) {
	s, err := parse(t, "--vmodule=3", "--log-flush-frequency", "90s", "--vmodule", "4", "-v=2")
	require.NoError(t, err)
	require.NoError(t, s.Validate())
	require.Equal(t, []string{"vmodule", "log-flush-frequency"}, s.Ineffective())
	require.Equal(t, 2, s.Verbosity)

	_, err = parse(t, "--safety-sideways=1")
	require.Error(t, err)
}

func TestFlags_DeploymentOfMCM_Accepted(t *testing.T) {
	s, err := parse(t, "--control-kubeconfig=inClusterConfig", "--machine-creation-timeout=20m", "--machine-drain-timeout=2h", "--machine-health-timeout=10m",
		"--machine-safety-apiserver-statuscheck-timeout=30s", "--machine-safety-apiserver-statuscheck-period=1m", "--machine-safety-orphan-vms-period=30m",
		"--namespace=shoot--a--b", "--port=10259", "--target-kubeconfig=/var/run/kubeconfig", "--v=3", "--kube-api-qps=30", "--kube-api-burst=50",
		"--machine-pv-reattach-timeout=150s", "--resource-exhausted-retry=", "30m") // the last stands so in one of them
	require.Error(t, err, "an empty duration is none in the reference system either")
	_ = s
	s, err = parse(t, "--namespace=shoot--a--b", "--machine-safety-orphan-vms-period=30m", "--resource-exhausted-retry=30m")
	require.NoError(t, err)
	require.NoError(t, s.Validate())
	require.Equal(t, 30*time.Minute, s.Config().Orphans.Period)
	require.NoError(t, s.Config().Orphans.Validate())
	require.Equal(t, 30*time.Minute, s.Config().Policy.Backoff.WaitForCapacity.Base)
}

func TestFlags_EachPolicy_IsSet(t *testing.T) {
	s, err := parse(t, "--node-conditions= A,,B ,A", "--machine-settle-time=0", "--machine-safety-orphan-vms-period=3h", "--machine-safety-orphan-vms-grace=1s",
		"--machine-drain-timeout=0", "--machine-inplace-update-timeout=1m", "--machine-preserve-timeout=2m", "--machine-pv-detach-timeout=3m", "--machine-max-replacements=4",
		"--autoscaler-scaledown-annotation-during-rollout=false", "--safety-up=5", "--machine-safety-hold-percent=20", "--safety-down=3", "--machine-safety-overshooting-period=0")
	require.NoError(t, err)
	require.Equal(t, machine.ParseHealthConditions("A,B"), s.Config().Policy.HealthConditions)
	require.Len(t, s.Config().Policy.HealthConditions, 2)
	require.Negative(t, s.Config().Policy.Settle)
	require.Zero(t, s.Config().Policy.DrainTimeout)
	require.Equal(t, time.Minute, s.Config().Policy.InPlaceTimeout)
	require.Equal(t, 2*time.Minute, s.Config().Policy.PreserveTimeout)
	require.Equal(t, 3*time.Minute, s.Config().Policy.DetachTimeout)
	require.Equal(t, 4, s.Config().Policy.MaxReplacements)
	require.Equal(t, deployment.Policy{}, s.Config().Deployments)
	guard := safety.DefaultGuardPolicy()
	guard.HoldPercent, guard.SlowPercent = 20, 20
	require.Equal(t, guard, s.Config().Guard)
	s.HoldPercent = 0
	require.Zero(t, s.Config().Guard, "off")
	require.Equal(t, safety.OvershootPolicy{Up: 5, Down: 3, Period: time.Minute}, s.Config().Overshoot)
	require.Equal(t, time.Second, s.Config().Orphans.Grace)
	require.Equal(t, 3*time.Hour, s.Config().Orphans.Period)
	require.NoError(t, s.Config().Orphans.Validate())
}

func TestFlags_BootstrapTokenGroups_SeparatedByCommas(t *testing.T) {
	s, err := parse(t)
	require.NoError(t, err)
	require.Empty(t, s.Config().TokenGroups)
	s, err = parse(t, "--bootstrap-token-auth-extra-groups= system:bootstrappers:b,,system:bootstrappers:a , system:bootstrappers:b")
	require.NoError(t, err)
	require.NoError(t, s.Validate())
	require.Equal(t, []string{"system:bootstrappers:b", "system:bootstrappers:a"}, s.Config().TokenGroups)
}

func TestFlags_ReplacementLimit_DefaultsToMCM(t *testing.T) {
	s, err := parse(t)
	require.NoError(t, err)
	require.Equal(t, machine.DefaultPolicy().MaxReplacements, s.Config().Policy.MaxReplacements)
	s, err = parse(t, "--machine-max-replacements=0")
	require.NoError(t, err)
	require.Zero(t, s.Config().Policy.MaxReplacements, "none")
}
