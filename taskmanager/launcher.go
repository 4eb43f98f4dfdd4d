package taskmanager

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// Launch describes a process to start. Reads, Writes and Output are the worker's ends of the
// pipes; the launcher does not close them.
type Launch struct {
	Executable string
	Name       string   // argv[0] of the process
	Args       []string // further arguments
	Dir        string   // working directory of the process
	Env        []string // the whole environment of the process
	Reads      *os.File // file descriptor 3 of the process; nil, as Writes, if it has none
	Writes     *os.File // file descriptor 4 of the process
	Output     *os.File // standard output and error of the process
}

// Launcher starts worker processes.
type Launcher interface {
	// Launch starts a process, or returns why it could not be started.
	Launch(l Launch) (Process, error)
}

// Process is a worker process that a Launcher has started.
type Process interface {
	PID() int
	// Stopped reports whether the process is stopped, as by SIGSTOP. It returns false on
	// systems where this cannot be determined.
	Stopped() bool
	// Kill kills the process and its process group (SIGKILL). It may be called at any time, by
	// several goroutines.
	Kill() error
	// Wait waits until the process has ended, and kills the rest of its process group. It is
	// called once.
	Wait() (Exit, error)
}

// ErrClosed is returned by the methods of a launcher that was closed.
var ErrClosed = errors.New("the launcher of worker processes is closed")

// launcher starts processes of the operating system from one thread, which lives as long as the
// launcher. On Linux the kernel kills a worker when the thread that started it ends, so no
// worker outlives the task manager, even if the task manager is killed. On other systems, and
// if a worker has changed its user, the worker is not killed, but ends by itself at EOF on its
// pipe.
type launcher struct {
	requests chan request
	closing  chan struct{}
	once     sync.Once
	ended    chan struct{}
}

type request struct {
	cmd    *exec.Cmd
	answer chan error
}

// newLauncher returns a launcher. Its method Close ends the launcher's thread; on Linux the
// kernel then kills all workers that still run.
func newLauncher() *launcher {
	l := &launcher{requests: make(chan request), closing: make(chan struct{}), ended: make(chan struct{})}
	go l.run()
	return l
}

func (l *launcher) run() {
	defer close(l.ended)
	runtime.LockOSThread() // never unlocked, so that the thread ends with this goroutine
	if !onMainThread() {
		l.serve()
		return
	}
	// This goroutine is locked to the first thread of the process, which ends only when the
	// process ends. So another goroutine, which is locked to another thread, serves the
	// requests.
	served := make(chan struct{})
	go func() {
		defer close(served)
		runtime.LockOSThread()
		l.serve()
	}()
	<-served
	runtime.UnlockOSThread()
}

// serve starts the requested processes until the launcher is closed.
func (l *launcher) serve() {
	for {
		select {
		case r := <-l.requests:
			r.answer <- start(r.cmd)
		case <-l.closing:
			return
		}
	}
}

// Close ends the launcher's thread and waits for it.
func (l *launcher) Close() {
	l.once.Do(func() { close(l.closing) })
	<-l.ended
}

// busyTries is how often start tries to start an executable that is open for writing, and
// busyWait is the wait between two tries. A process that was forked while the file was written
// has the file open until it executes its own program.
const (
	busyTries = 100
	busyWait  = 10 * time.Millisecond
)

func start(cmd *exec.Cmd) error {
	for try := 1; ; try++ {
		attempt := *cmd // a copy, because a Cmd cannot be started twice
		err := attempt.Start()
		if err == nil || !busy(err) || try == busyTries {
			*cmd = attempt
			return err
		}
		time.Sleep(busyWait)
	}
}

// Launch implements Launcher.
func (l *launcher) Launch(spec Launch) (Process, error) {
	cmd := &exec.Cmd{
		Path:        spec.Executable,
		Args:        append([]string{spec.Name}, spec.Args...),
		Env:         spec.Env,
		Dir:         spec.Dir,
		Stdout:      spec.Output,
		Stderr:      spec.Output,
		SysProcAttr: workerAttr(),
	}
	if spec.Reads != nil && spec.Writes != nil {
		cmd.ExtraFiles = []*os.File{spec.Reads, spec.Writes}
	}
	kills := memoryKills()
	r := request{cmd: cmd, answer: make(chan error, 1)}
	select {
	case l.requests <- r:
	case <-l.closing:
		return nil, ErrClosed
	}
	if err := <-r.answer; err != nil {
		return nil, err
	}
	return &process{cmd: cmd, kills: kills}, nil
}

// process is a process of the operating system that leads a process group.
type process struct {
	cmd   *exec.Cmd
	kills int64 // the number of out-of-memory kills in the control group before the process started

	mu     sync.Mutex
	reaped bool // the process was reaped, so its PID may now belong to another process
}

// PID implements Process.
func (p *process) PID() int { return p.cmd.Process.Pid }

// Stopped implements Process.
func (p *process) Stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.reaped && isStopped(p.PID())
}

// Kill implements Process.
func (p *process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	return killGroup(p.PID())
}

// Wait implements Process.
func (p *process) Wait() (Exit, error) {
	awaitEnd(p.PID()) // does not reap the process, so its PID and group id are not reused yet; does nothing on other systems than Linux
	var left error
	if runtime.GOOS == "linux" {
		left = p.Kill()
	}
	err := p.cmd.Wait()
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	if runtime.GOOS != "linux" {
		left = killGroup(p.PID()) // the id of a process group is not reused while the group has members
	}
	state := p.cmd.ProcessState
	if state == nil {
		return Exit{Code: -1}, fmt.Errorf("wait for process %d: %w", p.PID(), err)
	}
	exit := endedBy(state)
	if exit.Signal == "killed" && p.kills >= 0 {
		exit.OutOfMemory = memoryKills() > p.kills
	}
	return exit, left
}
