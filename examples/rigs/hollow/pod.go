// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// run adds the next step of a pod to the plan: start, update or stop.
func run(v view, pod *corev1.Pod, p pace, now time.Time, out *plan) {
	switch {
	case pod.DeletionTimestamp != nil:
		stop(pod, p, now, out)
	case hasEnded(pod):
	case pod.Status.Phase == corev1.PodRunning && len(pod.Status.ContainerStatuses) > 0:
		update(pod, now, out)
	default:
		start(v, pod, p, now, out)
	}
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// start starts a pod when PodStartTime is over.
func start(v view, pod *corev1.Pod, p pace, now time.Time, out *plan) {
	after := pod.DeepCopy()
	if after.Status.StartTime == nil {
		after.Status.StartTime = ptr.To(metav1.NewTime(now).Rfc3339Copy())
	}
	if at := after.Status.StartTime.Add(p.start); at.After(now) {
		out.until(at)
		setWaiting(after, v, now)
	} else {
		setRunning(after, v, now)
	}
	if !equality.Semantic.DeepEqual(pod.Status, after.Status) {
		out.do(reportPod{pod, after})
	}
}

// update restores status that another client has overwritten, such as the readiness of
// a running pod.
func update(pod *corev1.Pod, now time.Time, out *plan) {
	after := pod.DeepCopy()
	setReady(after, true, "", now)
	if !equality.Semantic.DeepEqual(pod.Status, after.Status) {
		out.do(reportPod{pod, after})
	}
}

// stop ends a deleted pod after its stop time. A pod that has not started ends at once. A pod with
// a finalizer stays.
func stop(pod *corev1.Pod, p pace, now time.Time, out *plan) {
	var grace time.Duration
	if pod.DeletionGracePeriodSeconds != nil {
		grace = max(0, time.Duration(*pod.DeletionGracePeriodSeconds)*time.Second)
	}
	ends := pod.DeletionTimestamp.Time
	if p.stop > 0 && p.stop < grace {
		ends = ends.Add(p.stop - grace)
	}
	if pod.Status.Phase == corev1.PodRunning && ends.After(now) {
		out.until(ends)
		return
	}
	if !hasEnded(pod) {
		after := pod.DeepCopy()
		setEnded(after, now)
		out.do(reportPod{pod, after})
	}
	if grace > 0 {
		out.do(removePod{pod})
	}
}

// setWaiting sets the status of a pod whose containers have not started.
func setWaiting(pod *corev1.Pod, v view, now time.Time) {
	pod.Status.Phase = corev1.PodPending
	setHost(pod, v)
	setReady(pod, false, "ContainersNotReady", now)
	pod.Status.ContainerStatuses = statuses(pod.Spec.Containers, pod.Status.ContainerStatuses, func(s *corev1.ContainerStatus) {
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
		s.Started = ptr.To(false)
	})
}

// setRunning sets the status of a pod whose containers run.
func setRunning(pod *corev1.Pod, v view, now time.Time) {
	at := metav1.NewTime(now).Rfc3339Copy()
	pod.Status.Phase = corev1.PodRunning
	setHost(pod, v)
	pod.Status.PodIP = pod.Status.HostIP
	if !pod.Spec.HostNetwork {
		pod.Status.PodIP = address("10.96", string(pod.UID))
	}
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	pod.Status.InitContainerStatuses = statuses(pod.Spec.InitContainers, pod.Status.InitContainerStatuses, func(s *corev1.ContainerStatus) {
		s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: at, FinishedAt: at, ContainerID: "hollow://" + string(pod.UID) + "/" + s.Name,
		}}
		s.Ready, s.Started, s.ContainerID = true, ptr.To(false), s.State.Terminated.ContainerID
	})
	pod.Status.ContainerStatuses = statuses(pod.Spec.Containers, pod.Status.ContainerStatuses, func(s *corev1.ContainerStatus) {
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
		s.Ready, s.Started, s.ContainerID = true, ptr.To(true), "hollow://"+string(pod.UID)+"/"+s.Name
	})
	setReady(pod, true, "", now)
}

// setEnded sets the status of a pod whose containers have succeeded.
func setEnded(pod *corev1.Pod, now time.Time) {
	at := metav1.NewTime(now).Rfc3339Copy()
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = statuses(pod.Spec.Containers, pod.Status.ContainerStatuses, func(s *corev1.ContainerStatus) {
		ended := &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: at, FinishedAt: at, ContainerID: s.ContainerID}
		if s.State.Running != nil {
			ended.StartedAt = s.State.Running.StartedAt
		}
		s.State = corev1.ContainerState{Terminated: ended}
		s.Ready, s.Started = false, ptr.To(false)
	})
	setReady(pod, false, "PodCompleted", now)
}

// setHost sets the addresses of a pod and its Node.
func setHost(pod *corev1.Pod, v view) {
	pod.Status.HostIP = address("192.168", v.vm.NodeName)
	if v.node != nil {
		for _, a := range v.node.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				pod.Status.HostIP = a.Address
				break
			}
		}
	}
	pod.Status.HostIPs = []corev1.HostIP{{IP: pod.Status.HostIP}}
}

// statuses returns the status of each container. The function set changes the previous one.
func statuses(containers []corev1.Container, before []corev1.ContainerStatus, set func(*corev1.ContainerStatus)) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, c := range containers {
		s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: "hollow://" + c.Image}
		if i := slices.IndexFunc(before, func(b corev1.ContainerStatus) bool { return b.Name == c.Name }); i >= 0 {
			s = *before[i].DeepCopy()
		}
		set(&s)
		out = append(out, s)
	}
	return out
}

// setReady sets the conditions of the kubelet. A pod with readiness gates is ready if its gates are
// true, too.
func setReady(pod *corev1.Pod, running bool, reason string, now time.Time) {
	ready, why := running, reason
	for _, gate := range pod.Spec.ReadinessGates {
		if running && !isTrue(pod, gate.ConditionType) {
			ready, why = false, "ReadinessGatesNotReady"
		}
	}
	pod.Status.ObservedGeneration = pod.Generation
	setPodCondition(pod, corev1.PodReadyToStartContainers, running, "", now)
	setPodCondition(pod, corev1.PodInitialized, running || reason == "PodCompleted", notIf(running || reason == "PodCompleted", "ContainersNotInitialized"), now)
	setPodCondition(pod, corev1.PodReady, ready, why, now)
	setPodCondition(pod, corev1.ContainersReady, running, reason, now)
}

func notIf(yes bool, text string) string {
	if yes {
		return ""
	}
	return text
}

func isTrue(pod *corev1.Pod, t corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}

// setPodCondition sets a condition. Its transition time changes only with its status.
func setPodCondition(pod *corev1.Pod, t corev1.PodConditionType, yes bool, reason string, now time.Time) {
	c := corev1.PodCondition{
		Type: t, Status: corev1.ConditionFalse, Reason: reason, ObservedGeneration: pod.Generation,
		LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	}
	if yes {
		c.Status = corev1.ConditionTrue
	}
	for i, was := range pod.Status.Conditions {
		if was.Type != t {
			continue
		}
		if was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
		pod.Status.Conditions[i] = c
		return
	}
	pod.Status.Conditions = append(pod.Status.Conditions, c)
}
