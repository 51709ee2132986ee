// SPDX-License-Identifier: Apache-2.0

// Command rollout simulates the rollout of a MachineDeployment in virtual time. It shows which set
// grows and shrinks at which time and why, and how close the rollout comes to its bounds.
//
//	rollout -f deployment.yaml                               # a new class, step by step
//	rollout -f deployment.yaml -o svg > rollout.svg          # as a picture
//	rollout -f deployment.yaml --to new.yaml -o wide         # another spec; deleted machines and all holds
//	rollout -f deployment.yaml --never --at 40m=rollback     # the new machines never become available
//	rollout -f deployment.yaml --quota 10 --free-capacity
//	kubectl get machinedeployment pool -o yaml | rollout -f - -o summary
//
// Without --class and --to, the command assumes a new class with the name of the old one and the
// suffix -next, and says so. A file with several MachineDeployments is refused unless --name
// selects one.
//
// Each decision is that of [deployment.Decide], in a world of package deploymenttest whose machines
// become available and are gone after the times of the flags. First the deployment of the file is
// brought up. Its status and its revisions are not used.
//
// --at TIME=EVENT, which may be repeated, changes the world at a time after the change:
//
//	replicas:N         spec.replicas becomes N
//	class:NAME         the template gets another class
//	surge:N, surge:N%  maxSurge
//	unavailable:N, unavailable:N%
//	pause, resume      spec.paused
//	rollback           to the previous revision; rollback:REVISION to another one
//	delete:MACHINE     a user deletes a machine
//	select:MACHINE     a user labels the Node of a machine as selected for an update in place;
//	                   select:all does so for all candidates
//	quota:N            the quota of the provider becomes N; quota:none removes it
//
// MACHINE is a name, oldest or newest.
//
// -o json prints one [command.Document]. Its decisions are deployment.Decision as JSON, as
// docs/rollouts.md describes.
//
// The exit status is 0 if the rollout completes, 1 if it stops before or is not over after the time
// of --for, and 2 if nothing was simulated because the command line or the file is invalid.
package main
