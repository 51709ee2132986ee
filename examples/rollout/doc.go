// SPDX-License-Identifier: Apache-2.0

// Command rollout plays the roll-out of a MachineDeployment in virtual time and shows it: which
// set grows and shrinks at which step, for which reason, and how far from its bounds it stays.
//
//	rollout -f deployment.yaml                               # another class, step by step
//	rollout -f deployment.yaml -o svg > rollout.svg          # the same as a picture
//	rollout -f deployment.yaml --to new.yaml -o wide         # to another spec, with every victim and hold
//	rollout -f deployment.yaml --never --at 40m=rollback     # the new machines never come; then back
//	rollout -f deployment.yaml --quota 10 --free-capacity
//	kubectl get machinedeployment pool -o yaml | rollout -f - -o summary
//
// It asks package deployment alone: what is shown is what [deployment.Decide] says, about a
// world (package deploymenttest) whose machines join and leave after the times that the flags
// say. Before the roll-out begins the deployment of the file is brought up with machines that
// join; what a stored object remembers beside its spec and annotations is not used.
//
// At a time (--at TIME=EVENT, any number of them) one of these happens:
//
//	replicas:N         so many machines are wanted
//	class:NAME         another class, so another roll-out
//	surge:N, surge:N%  another maxSurge
//	unavailable:N, unavailable:N%
//	pause, resume      spec.paused
//	rollback           back to the revision before, or to one: rollback:REVISION
//	delete:MACHINE     somebody deletes a machine
//	select:MACHINE     the Node of a machine is labelled as selected for an update;
//	                   select:all does it for all candidates
//	quota:N            the quota of the provider becomes N; quota:none takes it away
//
// MACHINE is its name, or oldest or newest.
//
// Exit status 0 means that the roll-out was complete in the end; 1 that it stopped before, or
// was not over when the time of --for was; 2 that nothing was played, since the command line or
// the file makes no sense.
package main
