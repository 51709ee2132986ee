// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubelets_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/rigs/cloud/kubelets"
)

// TestMain is also the program of TestOwner_Killed_KubeletsEnd: a process that owns a fleet.
func TestMain(m *testing.M) {
	if folder := os.Getenv("FLEET"); folder != "" {
		var alive *os.File
		if os.Getenv("ALIVE") != "" {
			alive = os.NewFile(3, "alive")
		}
		f, err := kubelets.Open(kubelets.Options{Folder: folder, Kubemark: os.Getenv("KUBEMARK"), Alive: alive})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		f.Cloud.AddVM(drivertest.VM{Namespace: "shoot", Machine: "a"})
		_ = f.Run(context.Background()) // until it is killed
	}
	os.Exit(m.Run())
}

// script makes a program in place of kubemark. Each start adds a line to the file starts in its
// folder.
func script(t *testing.T, body string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubemark")
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\necho \"$@\" >> starts\n"+body+"\n"), 0o700))
	return file
}

const forever = "exec sleep 100000"

// open opens a fleet whose processes end with the test, and runs it.
func open(t *testing.T, o kubelets.Options) *kubelets.Fleet {
	t.Helper()
	o.Observe = func(err error) { t.Log(err) }
	f, err := kubelets.Open(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, f.Close())
	})
	return f
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, time.Minute, 10*time.Millisecond, what)
}

// started waits for the kubelet of a Node and returns its process ID.
func started(t *testing.T, f *kubelets.Fleet, node string) (pid int) {
	t.Helper()
	eventually(t, "a kubelet of "+node, func() bool { pid = f.PID(node); return pid != 0 && program(pid) == "sleep" })
	return pid
}

// program returns the name of a process that has not ended, or "".
func program(pid int) string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	name, rest, _ := strings.Cut(string(text), ") ")
	if strings.HasPrefix(rest, "Z") {
		return ""
	}
	_, name, _ = strings.Cut(name, "(")
	return name
}

// state returns the state of the only VM.
func state(t *testing.T, f *kubelets.Fleet) string {
	t.Helper()
	vms := f.Cloud.Snapshot().VMs
	require.Len(t, vms, 1)
	return vms[0].State.String()
}

func TestKubelet_VM_StartsAndEndsWithIt(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "vms")
	f := open(t, kubelets.Options{Folder: folder, Kubemark: script(t, forever), Cloud: drivertest.CloudOptions{BootTime: 300 * time.Millisecond}})
	vm := f.Cloud.AddVM(drivertest.VM{Namespace: "shoot", Machine: "a"})
	require.Zero(t, f.PID("a"), "it boots")
	pid := started(t, f, "a")
	f.Cloud.Terminate(vm.ProviderID)
	eventually(t, "the kubelet ends", func() bool { return program(pid) == "" })
	eventually(t, "its folder is deleted", func() bool {
		left, err := filepath.Glob(filepath.Join(folder, "vm-*"))
		return err == nil && len(left) == 0
	})
	require.Zero(t, f.PID("a"))
}

// TestKubelet_VMDeleted_NoRootFolderIsLeft starts a kubelet twice that makes its root folder where
// kubemark does, and says so in its words.
func TestKubelet_VMDeleted_NoRootFolderIsLeft(t *testing.T) {
	t.Parallel()
	f := open(t, kubelets.Options{Folder: t.TempDir(), Kubemark: script(t,
		"root=/tmp/hollow-kubelet.$$; mkdir $root; echo \"I1124 Using $root as root dir for hollow-kubelet\" >&2; "+forever)})
	vm := f.Cloud.AddVM(drivertest.VM{Namespace: "shoot", Machine: "a"})
	first := started(t, f, "a")
	require.NoError(t, f.Reboot("a"))
	second := started(t, f, "a")
	roots := []string{fmt.Sprint("/tmp/hollow-kubelet.", first), fmt.Sprint("/tmp/hollow-kubelet.", second)}
	for _, root := range roots {
		require.DirExists(t, root)
	}
	f.Cloud.Terminate(vm.ProviderID)
	for _, root := range roots {
		eventually(t, root+" is deleted", func() bool {
			_, err := os.Stat(root)
			return os.IsNotExist(err)
		})
	}
}

func TestKubelet_KilledByAnother_VMStops(t *testing.T) {
	t.Parallel()
	f := open(t, kubelets.Options{Folder: t.TempDir(), Kubemark: script(t, forever)})
	f.Cloud.AddVM(drivertest.VM{Namespace: "shoot", Machine: "a"})
	require.NoError(t, syscall.Kill(started(t, f, "a"), syscall.SIGKILL))
	eventually(t, "the VM stops", func() bool { return state(t, f) == "Stopped" })
	require.Zero(t, f.PID("a"))
	require.Error(t, f.Reboot("a"))
}

func TestKubelet_ExitsWithStatus_StartsAgain(t *testing.T) {
	t.Parallel()
	f := open(t, kubelets.Options{Folder: t.TempDir(), Kubemark: script(t, `if [ $(wc -l < starts) -lt 3 ]; then exit 1; fi; `+forever)})
	f.Cloud.AddVM(drivertest.VM{Namespace: "shoot", Machine: "a"})
	started(t, f, "a")
	require.Equal(t, "Running", state(t, f))
}

func TestReboot_Kubelet_StartsAgainInItsFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	f := open(t, kubelets.Options{Folder: folder, Kubemark: script(t, forever)})
	f.Cloud.AddVM(drivertest.VM{Namespace: "shoot", Machine: "a"})
	before := started(t, f, "a")
	require.NoError(t, f.Reboot("a"))
	require.Empty(t, program(before))
	require.NotEqual(t, before, started(t, f, "a"))
	require.Equal(t, "Running", state(t, f))
	files, err := filepath.Glob(filepath.Join(folder, "vm-*", "starts"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(text), "--name=a --bootstrap-kubeconfig="))
	require.Error(t, f.Reboot("b"))
}

func TestOpen_AfterARestart_FindsVMsAndKubelets(t *testing.T) {
	t.Parallel()
	o := kubelets.Options{Folder: filepath.Join(t.TempDir(), "vms"), Kubemark: script(t, forever)}
	first, err := kubelets.Open(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, first.Close()) }()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- first.Run(ctx) }()
	stays := first.Cloud.AddVM(drivertest.VM{Namespace: "shoot", Machine: "stays"})
	first.Cloud.AddVM(drivertest.VM{Namespace: "shoot", Machine: "dies"})
	deleted := first.Cloud.AddVM(drivertest.VM{Namespace: "shoot", Machine: "deleted"})
	pid, dies, of := started(t, first, "stays"), started(t, first, "dies"), started(t, first, "deleted")
	cancel()
	require.NoError(t, <-done)
	first.Cloud.Terminate(deleted.ProviderID) // nothing runs that would kill the kubelet
	require.NoError(t, syscall.Kill(dies, syscall.SIGKILL))
	eventually(t, "the kubelet is dead", func() bool { return program(dies) == "" })

	second := open(t, o)
	require.Equal(t, pid, second.PID("stays"))
	eventually(t, "the kubelet of the deleted VM ends", func() bool { return program(of) == "" })
	second.Cloud.Terminate(stays.ProviderID)
	eventually(t, "an adopted kubelet ends", func() bool { return program(pid) == "" })
	require.NotEqual(t, dies, started(t, second, "dies"), "a VM whose kubelet ended while there was no cloud boots")
}

// own starts a process that owns a fleet of one VM, and returns it and the kubelet.
func own(t *testing.T, folder, kubemark string, alive *os.File) (*exec.Cmd, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), "FLEET="+folder, "KUBEMARK="+kubemark)
	if alive != nil {
		cmd.Env, cmd.ExtraFiles = append(cmd.Env, "ALIVE=1"), []*os.File{alive}
	}
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	require.NoError(t, cmd.Start())
	pid := 0
	eventually(t, "the kubelet starts", func() bool { pid = kubeletIn(folder); return pid != 0 && program(pid) == "sleep" })
	return cmd, pid
}

// kubeletIn returns the process ID of a kubelet of a folder, or 0.
func kubeletIn(folder string) int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if pid, _ := strconv.Atoi(e.Name()); err == nil && pid > 0 && strings.Contains(string(text), "MACHINIST_KUBELET="+folder+"/") {
			return pid
		}
	}
	return 0
}

func TestOwner_Killed_KubeletsEnd(t *testing.T) {
	t.Parallel()
	owner, kubelet := own(t, filepath.Join(t.TempDir(), "vms"), script(t, forever), nil)
	require.NoError(t, owner.Process.Kill())
	_ = owner.Wait() // it was killed
	eventually(t, "the kubelet ends", func() bool { return program(kubelet) == "" })
}

func TestAlive_ServerKilled_KubeletsStayUntilThePipeEnds(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close() //nolint:errcheck // not written
	folder, kubemark := filepath.Join(t.TempDir(), "vms"), script(t, forever)
	server, kubelet := own(t, folder, kubemark, r)
	require.NoError(t, server.Process.Kill())
	_ = server.Wait() // it was killed

	f, err := kubelets.Open(kubelets.Options{Folder: folder, Kubemark: kubemark, Alive: r})
	require.NoError(t, err)
	require.Equal(t, kubelet, f.PID("a"))
	require.NoError(t, w.Close())
	eventually(t, "the kubelet ends", func() bool { return program(kubelet) == "" })
	require.NoError(t, f.Close())
	require.NoDirExists(t, folder)
}

func TestFleet_Cloud_KeepsTheContract(t *testing.T) {
	t.Parallel()
	kubemark := script(t, forever)
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		return open(t, kubelets.Options{Folder: t.TempDir(), Kubemark: kubemark}).Cloud.Harness()
	})
}
