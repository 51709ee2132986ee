// SPDX-License-Identifier: Apache-2.0

package options

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The values of the lease are not checked without an election.

// jitter is the factor by which a wait of the election may exceed the retry period.
const jitter = 1.2

func checkLock(s *MCServer, _ any) string {
	l := s.LeaderElection
	return unless(!l.LeaderElect || l.ResourceLock == "leases", "%q is not supported: use leases", l.ResourceLock)
}

func checkLeaseName(s *MCServer, _ any) string {
	l := s.LeaderElection
	return unless(!l.LeaderElect || len(validation.IsDNS1123Subdomain(l.ResourceName)) == 0, "%q is not a lease name", l.ResourceName)
}

func checkLeaseNamespace(s *MCServer, _ any) string {
	l := s.LeaderElection
	return unless(!l.LeaderElect || l.ResourceNamespace == "" || len(validation.IsDNS1123Label(l.ResourceNamespace)) == 0,
		"%q is not a namespace name", l.ResourceNamespace)
}

func checkRetry(s *MCServer, _ any) string {
	l := s.LeaderElection
	return unless(!l.LeaderElect || l.RetryPeriod > 0, "%s is not positive", l.RetryPeriod)
}

func checkRenew(s *MCServer, _ any) string {
	l := s.LeaderElection
	return unless(!l.LeaderElect || float64(l.RenewDeadline) > jitter*float64(l.RetryPeriod),
		"%s is not more than %v times the retry period %s", l.RenewDeadline, jitter, l.RetryPeriod)
}

func checkLease(s *MCServer, _ any) string {
	l := s.LeaderElection
	if l.LeaderElect && l.LeaseDuration <= l.RenewDeadline+l.RetryPeriod {
		return unless(false, "%s is not more than the renew deadline %s and the retry period %s together", l.LeaseDuration, l.RenewDeadline, l.RetryPeriod)
	}
	return unless(!l.LeaderElect || l.LeaseDuration >= time.Second, "%s is less than 1s", l.LeaseDuration)
}
