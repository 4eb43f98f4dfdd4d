package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Size of the cluster for jobs whose workers are killed. A job on all slots has one worker process on each task manager.
const (
	taskManagers = 2
	slots        = 2
)

// Limits of the cluster's process.
const (
	startLimit = time.Minute
	stopLimit  = 20 * time.Second
)

// cluster is a cluster of processes on this machine: a job manager and its task managers, which
// start the workers of jobs.
type cluster struct {
	superstep      string // the executable
	address, token string
	manager        *exec.Cmd
	output         transcript
	stop           context.CancelFunc
	managers       []int // process IDs of the task managers
}

// ready finds the address in what the job manager prints when the cluster is ready.
var ready = regexp.MustCompile(`(?m)^cluster at (\S+):`)

// startCluster starts a cluster by the executable superstep, whose files lie in dir. The caller
// must call close.
func startCluster(ctx context.Context, superstep, dir string, taskManagers, slots int) (*cluster, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("workers are found in /proc of Linux, and this is %s: use --simulate", runtime.GOOS)
	}
	life, stop := context.WithCancel(ctx)
	c := &cluster{superstep: superstep, token: filepath.Join(dir, "token"), stop: stop}
	c.manager = exec.CommandContext(life, superstep, "dev", "--taskmanagers", strconv.Itoa(taskManagers), "--slots", strconv.Itoa(slots),
		"--listen", "127.0.0.1:0", "--http", "off", "--dir", filepath.Join(dir, "cluster"), "--token-file", c.token, "--log-level", "warn")
	c.manager.Stdout, c.manager.Stderr = &c.output, &c.output
	c.manager.Cancel, c.manager.WaitDelay = func() error { return c.manager.Process.Signal(os.Interrupt) }, stopLimit
	if err := c.manager.Start(); err != nil {
		stop()
		return nil, fmt.Errorf("start a cluster: %w", err)
	}
	if err := c.await(ctx, taskManagers); err != nil {
		return nil, errors.Join(fmt.Errorf("start a cluster: %w\n%s", err, c.output.tail()), c.close())
	}
	return c, nil
}

// await waits until the cluster is ready.
func (c *cluster) await(ctx context.Context, taskManagers int) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err := poll(ctx, func() (bool, error) {
		found := ready.FindStringSubmatch(c.output.String())
		if found != nil {
			c.address = found[1]
		}
		return found != nil, nil
	})
	if err != nil {
		return err
	}
	if c.managers, err = children(c.manager.Process.Pid); err == nil && len(c.managers) != taskManagers {
		err = fmt.Errorf("the job manager has %d processes, want %d task managers", len(c.managers), taskManagers)
	}
	return err
}

// close ends all processes of the cluster and waits for them.
func (c *cluster) close() error {
	c.stop()
	var exit *exec.ExitError
	if err := c.manager.Wait(); err != nil && !errors.As(err, &exit) && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("end the cluster: %w", err)
	}
	return nil
}

// kill kills a worker by SIGKILL: the one on the given task manager. It returns false if there is
// none, as nothing runs or the job is just being restarted.
func (c *cluster) kill(taskManager int) (bool, error) {
	return c.signal(taskManager, syscall.SIGKILL)
}

// signal sends a signal to a worker: the one on the given task manager. It returns false if there is none.
func (c *cluster) signal(taskManager int, sig syscall.Signal) (bool, error) {
	workers, err := children(c.managers[taskManager])
	if err != nil {
		return false, err
	}
	hit := false
	for _, pid := range workers {
		process, err := os.FindProcess(pid)
		if err == nil {
			err = process.Signal(sig)
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return hit, fmt.Errorf("%v of worker %d: %w", sig, pid, err)
		}
		hit = hit || err == nil
	}
	return hit, nil
}

// children returns the IDs of the processes that a process has started and that have not ended,
// in ascending order.
func children(pid int) ([]int, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, err
	}
	if len(tasks) == 0 {
		return nil, fmt.Errorf("process %d has ended, or this kernel does not list its children (CONFIG_PROC_CHILDREN)", pid)
	}
	var found []int
	for _, path := range tasks {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return nil, err
		}
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			if !zombie(child) {
				found = append(found, child)
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// zombie reports whether a process has ended, although its parent has not yet waited for it.
func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	after := text[bytes.LastIndexByte(text, ')')+1:] // the name before it may have any characters
	return len(after) > 1 && after[1] == 'Z'
}

// poll calls done again and again until it returns true or an error, or until ctx ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// transcript keeps what processes print.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// tail returns the last lines, for the message of an error.
func (t *transcript) tail() string {
	const lines = 20
	all := strings.Split(strings.TrimRight(t.String(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
