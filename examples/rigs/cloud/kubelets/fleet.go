// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/machinist-dev/machinist/driver/drivertest"
)

// Options configures a [Fleet].
type Options struct {
	// Folder has a folder for each VM. It is created if it does not exist.
	Folder string
	// Kubemark is the file name of the program kubemark of Kubernetes.
	Kubemark string
	// Cloud configures the simulated cloud. Its ProviderID is ignored: a kubelet has its own.
	Cloud drivertest.CloudOptions
	// Alive is the read end of a pipe. All kubelets are killed when its write end is closed, which
	// the kernel does when the process that holds it ends. Nil means a pipe of this process.
	Alive *os.File
	// Observe is called with problems of single VMs, which are tried again. Nil ignores them.
	Observe func(error)
}

// Fleet is a simulated cloud whose running VMs are kubelets. It is safe for concurrent use.
type Fleet struct {
	// Cloud has the VMs. It is the driver.
	Cloud *drivertest.Cloud

	options     Options
	unsubscribe func()
	reaper      *exec.Cmd
	alive       []io.Closer // ends of the pipe of this process

	mu     sync.Mutex
	vms    map[string]*vm // by provider ID
	closed bool
}

// vm is a VM with a folder, and with a process while it runs.
type vm struct {
	folder  string
	record  []byte // what its file has
	node    string
	kubelet *process // nil if there is none
	after   time.Time
}

const (
	// step is the time between two comparisons of VMs and processes.
	step = 100 * time.Millisecond
	// restart is the time after which a kubelet that exited starts again.
	restart = time.Second
	// recordFile, userDataFile and logFile are files in the folder of a VM.
	recordFile   = "vm.json"
	userDataFile = "bootstrap-kubeconfig"
	logFile      = "kubelet.log"
)

// rootLine is the line of its log in which kubemark names the root folder that it has made. It makes
// one at each start, outside of the folder of the VM, and leaves it there.
var rootLine = regexp.MustCompile(`Using (/tmp/hollow-kubelet\.[0-9]+) as root dir`)

// Open returns the cloud of a folder, with the VMs and processes that an earlier Fleet left there.
// The caller calls Run, and Close at the end. Two Fleets must not use a folder at the same time.
func Open(o Options) (*Fleet, error) {
	folder, err := filepath.Abs(o.Folder)
	if err != nil {
		return nil, err
	}
	o.Folder = folder
	if err := os.MkdirAll(o.Folder, 0o700); err != nil {
		return nil, err
	}
	o.Cloud.ProviderID = func(node string) string { return "kubemark://" + node } // that of its kubelets
	f := &Fleet{options: o, Cloud: drivertest.NewCloud(o.Cloud), vms: map[string]*vm{}}
	if err := f.reap(); err != nil {
		return nil, fmt.Errorf("kubelets: %w", err)
	}
	if err := f.restore(); err != nil {
		return nil, fmt.Errorf("kubelets: %w", errors.Join(err, f.Close()))
	}
	f.unsubscribe = f.Cloud.Subscribe(f.remember)
	return f, nil
}

// restore reads the folder, and finds the processes of its VMs.
func (f *Fleet) restore() error {
	files, err := filepath.Glob(filepath.Join(f.options.Folder, "*", recordFile))
	if err != nil {
		return err
	}
	byFolder := map[string]*vm{}
	for _, file := range files {
		var old drivertest.VM
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &old)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		v := &vm{folder: filepath.Dir(file), record: text, node: old.NodeName}
		f.vms[old.ProviderID], byFolder[v.folder] = v, v
		f.Cloud.Restore(old)
	}
	processes, err := find(f.options.Folder)
	if err != nil {
		return err
	}
	for folder, p := range processes {
		if v := byFolder[folder]; v != nil {
			v.kubelet = p
		} else if err := p.kill(); err != nil {
			return err
		}
	}
	sweepSockets()
	return nil
}

// remember writes the record of a VM before the call that changed it returns.
func (f *Fleet) remember(e drivertest.Event) {
	if e.Kind == drivertest.VMReady {
		return // no record depends on it, and it may be delivered after a deletion
	}
	userData := f.Cloud.UserData(e.VM.ProviderID)
	f.mu.Lock()
	defer f.mu.Unlock()
	v := f.vms[e.VM.ProviderID]
	if v == nil && e.Kind == drivertest.VMCreated && !f.closed {
		folder, err := os.MkdirTemp(f.options.Folder, "vm-")
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, userDataFile), userData, 0o600)
		}
		if err != nil {
			f.observe(e.VM.NodeName, err)
			return
		}
		v = &vm{folder: folder, node: e.VM.NodeName}
		f.vms[e.VM.ProviderID] = v
	}
	if v != nil {
		f.observe(v.node, v.write(e.VM))
	}
}

// write writes the record of a VM if it has changed.
func (v *vm) write(now drivertest.VM) error {
	text, err := json.Marshal(now)
	if err != nil || string(text) == string(v.record) {
		return err
	}
	file := filepath.Join(v.folder, recordFile)
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(file+".new", file); err != nil {
		return err
	}
	v.record = text
	return nil
}

func (f *Fleet) observe(node string, err error) {
	if err != nil && f.options.Observe != nil {
		f.options.Observe(fmt.Errorf("kubelet of %s: %w", node, err))
	}
}

// Run starts and kills kubelets as the VMs of the cloud come and go, until ctx ends. Then it
// returns nil, and the kubelets stay.
func (f *Fleet) Run(ctx context.Context) error {
	tick := time.NewTicker(step)
	defer tick.Stop()
	for {
		for _, id := range f.compare(time.Now()) {
			f.Cloud.Stop(id)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// compare starts kubelets of running VMs and kills all others. It returns the VMs whose kubelet was
// killed by another.
func (f *Fleet) compare(now time.Time) (dead []string) {
	snapshot := f.Cloud.Snapshot()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	exist := map[string]bool{}
	for _, in := range snapshot.VMs {
		exist[in.ProviderID] = true
		v := f.vms[in.ProviderID]
		if v == nil {
			continue // made after the lock was released, or without a folder
		}
		killed, err := v.keep(in, f.options.Kubemark, now)
		if f.observe(v.node, err); killed {
			dead = append(dead, in.ProviderID)
		}
	}
	for _, id := range slices.Collect(maps.Keys(f.vms)) {
		if !exist[id] && f.made(id, snapshot.Time) {
			node := f.vms[id].node
			f.observe(node, f.forget(id))
		}
	}
	return dead
}

// made reports whether a VM was made before a time.
func (f *Fleet) made(id string, at time.Time) bool {
	var in drivertest.VM
	return json.Unmarshal(f.vms[id].record, &in) != nil || in.CreatedAt.Before(at)
}

// keep starts or kills the kubelet of a VM. killed is whether another killed it.
func (v *vm) keep(in drivertest.VM, program string, now time.Time) (killed bool, err error) {
	err = v.write(in)
	if v.kubelet != nil && v.kubelet.ended() {
		killed, v.after = v.kubelet.killed(), now.Add(restart)
		v.kubelet = nil
	}
	up := in.State == drivertest.VMRunning && in.Initialized
	switch {
	case killed:
	case up && v.kubelet == nil && !now.Before(v.after):
		v.kubelet, err = start(program, v.folder, v.node)
	case !up && v.kubelet != nil:
		if err = v.kubelet.kill(); err == nil {
			v.kubelet = nil
		}
	}
	return killed, err
}

// forget kills the kubelet of a VM and deletes its folders.
func (f *Fleet) forget(id string) error {
	v := f.vms[id]
	if v.kubelet != nil {
		if err := v.kubelet.kill(); err != nil {
			return err
		}
		v.kubelet = nil
	}
	if err := removeRoots(filepath.Join(v.folder, logFile)); err != nil {
		return err
	}
	if err := os.RemoveAll(v.folder); err != nil {
		return err
	}
	delete(f.vms, id)
	return nil
}

// removeRoots deletes the root folders that a log names.
func removeRoots(log string) error {
	text, err := os.ReadFile(log)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no kubelet has run
	}
	for _, match := range rootLine.FindAllSubmatch(text, -1) {
		err = errors.Join(err, os.RemoveAll(string(match[1])))
	}
	return err
}

// PID returns the process ID of the kubelet of a Node, or 0 if there is none.
func (f *Fleet) PID(node string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if v := f.of(node); v != nil && v.kubelet != nil && !v.kubelet.ended() {
		return v.kubelet.Pid
	}
	return 0
}

// Reboot kills the kubelet of a Node, which [Fleet.Run] starts again with the files that it had.
func (f *Fleet) Reboot(node string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := f.of(node)
	if v == nil || v.kubelet == nil {
		return fmt.Errorf("kubelets: Node %s has no kubelet", node)
	}
	if err := v.kubelet.kill(); err != nil {
		return err
	}
	v.kubelet = nil
	return nil
}

// of returns the VM of a Node that has a kubelet, otherwise any VM of the Node, or nil.
func (f *Fleet) of(node string) (found *vm) {
	for _, v := range f.vms {
		if v.node == node && (found == nil || v.kubelet != nil) {
			found = v
		}
	}
	return found
}

// Close kills all kubelets and deletes the folder.
func (f *Fleet) Close() error {
	if f.unsubscribe != nil {
		f.unsubscribe()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	f.closed = true
	for _, id := range slices.Collect(maps.Keys(f.vms)) {
		errs = append(errs, f.forget(id))
	}
	sweepSockets()
	if err := errors.Join(errs...); err != nil {
		return err // the reaper still waits, and Close may be called again
	}
	for _, end := range f.alive {
		_ = end.Close()
	}
	if f.reaper != nil {
		_ = f.reaper.Process.Kill()
		_ = f.reaper.Wait() // it was killed
		f.reaper = nil
	}
	return os.RemoveAll(f.options.Folder)
}

// variable names the folder of a VM in the environment of its kubelet.
const variable = "MACHINIST_KUBELET"

// reaperScript waits for the end of its input, and kills the kubelets of a folder. One may be
// between fork and exec, so it looks several times.
const reaperScript = `read _
for i in 1 2 3; do
	for p in /proc/[0-9]*; do
		if grep -qzF "$1" "$p/environ" 2>/dev/null; then kill -9 "${p#/proc/}"; fi
	done
	sleep 1
done`

// reap starts a process that kills the kubelets when the pipe of the owner ends.
func (f *Fleet) reap() error {
	alive := f.options.Alive
	if alive == nil {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		alive, f.alive = r, []io.Closer{w, r}
	}
	f.reaper = exec.Command("sh", "-c", reaperScript, "reaper", variable+"="+f.options.Folder+string(filepath.Separator)) //nolint:noctx // it outlives any context
	f.reaper.Stdin = alive
	f.reaper.SysProcAttr = ownSession()
	return f.reaper.Start()
}

// process is a kubelet.
type process struct {
	*os.Process
	done  chan struct{}    // closed at its end; nil if it is the child of another process
	state *os.ProcessState // after done
}

// start starts the kubelet of a Node.
func start(program, folder, node string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(folder, logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the kubelet has its own
	cmd := exec.Command(program,       //nolint:noctx // it outlives any context
		"--morph=kubelet", "--name="+node,
		"--bootstrap-kubeconfig="+filepath.Join(folder, userDataFile),
		"--kubeconfig="+filepath.Join(folder, "kubeconfig"), "--cert-dir="+filepath.Join(folder, "pki"),
		"--kubelet-port=0", "--kubelet-read-only-port=0", // any port, and none
		"--use-host-image-service=false")
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, log, log
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TMPDIR=") }),
		"TMPDIR="+folder, variable+"="+folder)
	cmd.SysProcAttr = ownSession()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{Process: cmd.Process, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // its state says how it ended
		p.state = cmd.ProcessState
	}()
	return p, nil
}

// ended reports whether the process has ended.
func (p *process) ended() bool {
	if p.done == nil {
		return errors.Is(p.Signal(nothing), os.ErrProcessDone)
	}
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// killed reports whether a process that has ended was killed by a signal. Of a child of another
// process this is not known, and assumed.
func (p *process) killed() bool { return p.state == nil || p.state.ExitCode() < 0 }

// kill ends the process, and waits until it has ended.
func (p *process) kill() error {
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	for range 500 {
		if p.ended() {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("process %d does not end", p.Pid)
}
