// SPDX-License-Identifier: Apache-2.0

// Command kubectl-machines is a plugin of kubectl for machines. In a folder of $PATH, kubectl finds it:
//
//	go -C examples/programs/kubectl-machines build -o ~/bin/kubectl-machines .
//	kubectl machines tree -w                            # what does everything wait for?
//	kubectl machines explain machine/workers-5d94c-abcde -f dump.yaml
//	kubectl machines rollout status workers             # is it stuck, and why?
//	kubectl machines rollout undo workers
//	kubectl machines simulate workers --live            # what would a rollout do?
//	kubectl machines drain node-1 --timeout 1h          # with what each pod waits for
//	kubectl machines replace workers-5d94c-abcde        # one machine, with a surge
//	kubectl machines retry machinedeployment/workers
//	kubectl machines preserve workers-5d94c-abcde when-failed
//
// It decides nothing itself: its answers are those of the packages of this SDK, with which the controllers
// decide. The flags of kubectl for the cluster have the same meaning; --target-kubeconfig names the
// cluster that the machines join if it is another one.
//
// The exit status is 0 if the command has done what it was asked to do, 1 if it has not, and 2 if nothing
// was changed because the request is invalid. The first Ctrl-C ends a command in order, the second at once.
//
// kubectl completes the arguments if a link kubectl_complete-machines to the program is in $PATH, too.
package main
