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

// Launch says what process to start. The files are the worker's ends of its pipes; the
// launcher does not close them.
type Launch struct {
	Executable string
	Name       string   // name under which it runs
	Dir        string   // directory in which it runs
	Env        []string // its whole environment
	Reads      *os.File // its file descriptor 3
	Writes     *os.File // its file descriptor 4
	Output     *os.File // its standard output and error
}

// Launcher starts worker processes.
type Launcher interface {
	// Launch starts a process, or says why it does not start.
	Launch(l Launch) (Process, error)
}

// Process is a worker process that was started.
type Process interface {
	PID() int
	// Stopped reports whether the process does not run until it is told to go on. It is false
	// where this cannot be known.
	Stopped() bool
	// Kill ends the process and its process group at once. It may be called at any time, by
	// several goroutines.
	Kill() error
	// Wait waits until the process has ended, and ends the rest of its process group. It is
	// called once.
	Wait() (Exit, error)
}

// ErrClosed is returned by a launcher that was closed.
var ErrClosed = errors.New("the launcher of worker processes is closed")

// launcher starts processes of the operating system from one thread, which lives as long as the
// launcher. On Linux the kernel kills a worker when the thread that started it ends, so no
// worker is left however the task manager ends. Elsewhere, and for a worker that has changed
// its user, the end of its pipe tells it to end.
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

// newLauncher returns a launcher. Close ends its thread, and with it, on Linux, all
// workers that are left.
func newLauncher() *launcher {
	l := &launcher{requests: make(chan request), closing: make(chan struct{}), ended: make(chan struct{})}
	go l.run()
	return l
}

func (l *launcher) run() {
	defer close(l.ended)
	runtime.LockOSThread() // and never unlock: the thread must end with this goroutine
	if !onMainThread() {
		l.serve()
		return
	}
	// The first thread of a process ends only with the process. While this goroutine holds it,
	// another goroutine gets another thread.
	served := make(chan struct{})
	go func() {
		defer close(served)
		runtime.LockOSThread()
		l.serve()
	}()
	<-served
	runtime.UnlockOSThread()
}

// serve starts processes until the launcher is closed.
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

// Retries for an executable that is open for writing in a process that was forked but has not
// started its program yet.
const (
	busyTries = 100
	busyWait  = 10 * time.Millisecond
)

func start(cmd *exec.Cmd) error {
	for try := 1; ; try++ {
		attempt := *cmd // a Cmd cannot be started twice
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
		Args:        []string{spec.Name},
		Env:         spec.Env,
		Dir:         spec.Dir,
		Stdout:      spec.Output,
		Stderr:      spec.Output,
		ExtraFiles:  []*os.File{spec.Reads, spec.Writes},
		SysProcAttr: workerAttr(),
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

// process is a process of the operating system that leads a group.
type process struct {
	cmd   *exec.Cmd
	kills int64 // the control group's kills for lack of memory before it started

	mu     sync.Mutex
	reaped bool // its number may belong to another process by now
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
	awaitEnd(p.PID()) // where supported, so that the group still belongs to this process
	var left error
	if runtime.GOOS == "linux" {
		left = p.Kill()
	}
	err := p.cmd.Wait()
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	if runtime.GOOS != "linux" {
		left = killGroup(p.PID()) // a group with members keeps its number
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
