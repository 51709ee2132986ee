// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain"
)

// Rules as data, as they may come from a configuration file: databases go when all
// else has gone, batch jobs may end.
func ExampleCompileRules() {
	rule, err := drain.CompileRules(
		drain.PodRule{
			Name:     "databases",
			Select:   []drain.PodSelector{{Pods: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}}},
			Behavior: drain.BehaviorDrain,
			Order:    new(int32(10)),
		},
		drain.PodRule{
			Name:     "jobs",
			Select:   []drain.PodSelector{{Pods: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "job"}}}},
			Behavior: drain.BehaviorWaitCompleted,
		},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	in := observed(newPod("db-0", rulesLabeled("app", "db")), newPod("job-7", rulesLabeled("app", "job")), newPod("web-1"))
	for _, row := range drain.Decide(in, drain.Policy{Rules: []drain.Rule{rule}}, now).Rows {
		fmt.Println(row.Name, row.Verdict, row.Reason)
		fmt.Println("  " + row.Message)
	}
	// Output:
	// db-0 wait Wave
	//   wave 0 has 2 pods left; rule "databases"
	// job-7 wait WaitCompleted
	//   rule "jobs"
	// web-1 evict Evictable
}

// A rule is a function. This one keeps pods for as long as a backup runs.
func ExampleRule() {
	backup := now.Add(10 * time.Minute)
	rule := func(s drain.Subject, at time.Time) (drain.Opinion, bool) {
		if !strings.HasPrefix(s.Pod.Name, "db-") || !at.Before(backup) {
			return drain.Opinion{}, false
		}
		return drain.Opinion{Behavior: drain.BehaviorBlock, Reason: "Backup", Message: "its backup is not complete", Until: backup}, true
	}
	policy := drain.Policy{Rules: []drain.Rule{rule, drain.ClusterAPILabels(), drain.DoNotDisrupt()}}
	in := observed(newPod("db-0"))
	for _, at := range []time.Time{now, backup} {
		plan := drain.Decide(in, policy, at)
		fmt.Println(at.Format(time.TimeOnly), plan.Rows[0].Verdict, plan.Rows[0].Reason)
	}
	// Output:
	// 12:00:00 block Backup
	// 12:10:00 evict Evictable
}
