package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Times for the measurement of waiting.
const (
	startupTime = 1500 * time.Millisecond // time from the start of a contestant after which it is assumed to run barriers
	waiting     = time.Second
	tick        = 10 * time.Millisecond // unit of processor time in /proc of Linux
	idleRanks   = 2
)

// measureIdle measures the processor time that each contestant uses while it waits. If a
// contestant cannot be measured, its IdleCPU remains −1.
func (c *comparison) measureIdle(ctx context.Context) error {
	for _, k := range c.Contestants {
		lines := k.commands(request{point: point{"barrier", idleRanks, 0}, seconds: 30, untilEnded: true})
		if len(lines) == 0 {
			continue
		}
		fmt.Fprintf(c.progress, "waiting: %s\n", k.Name)
		used, err := c.idleCPU(ctx, k, lines[0])
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			fmt.Fprintf(c.progress, "%s: %v\n", k.Name, err)
			continue
		}
		k.IdleCPU = used.Seconds()
	}
	return nil
}

// idleCPU starts contestant k, whose ranks run barriers until they are terminated, and stops
// one rank for a second. It returns the processor time that the busiest of the other processes
// used in that second.
func (c *comparison) idleCPU(ctx context.Context, k *contestant, line []string) (used time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	child := c.command(ctx, k, line)
	if err := child.Start(); err != nil {
		cancel()
		return 0, err
	}
	defer func() {
		cancel()
		_ = child.Wait() // an error is expected: the process was terminated
		endGroup(child)
	}()
	if err := pause(ctx, startupTime); err != nil {
		return 0, err
	}
	family := descendants(child.Process.Pid)
	if len(family) == 0 {
		return 0, errors.New("it has no process of its own for a rank, or ended early")
	}
	// A process without children is a rank. The rank with the highest process id is stopped.
	stopped := 0
	for _, pid := range family {
		if pid > stopped && len(descendants(pid)) == 0 {
			stopped = pid
		}
	}
	if err := setStopped(stopped, true); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, setStopped(stopped, false)) }()
	before := processorTimes(append(family, child.Process.Pid))
	if err := pause(ctx, waiting); err != nil {
		return 0, err
	}
	for pid, t := range processorTimes(slices.Collect(maps.Keys(before))) {
		if pid != stopped {
			used = max(used, t-before[pid])
		}
	}
	return used, nil
}

// pause waits for d. It returns an error if ctx ends earlier.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// processorTime returns the processor time of all threads of a process, in user and system
// mode. stat is the content of /proc/PID/stat, "PID (name) state parent …". Its 14th and 15th
// fields are the ticks in user and system mode. The name may contain any characters, even
// parentheses.
func processorTime(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc: stat is %q", stat)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err, err2)
}

// descendants returns the ids of the child processes of root, of their children, and so on.
func descendants(root int) []int {
	var all []int
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", root)) // the pattern is valid
	for _, file := range files {
		text, _ := os.ReadFile(file) // a thread that has ended has no file
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				all = append(append(all, pid), descendants(pid)...)
			}
		}
	}
	return all
}

// processorTimes returns the processor time of each process in pids that still exists.
func processorTimes(pids []int) map[int]time.Duration {
	used := map[int]time.Duration{}
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		if t, err := processorTime(string(text)); err == nil {
			used[pid] = t
		}
	}
	return used
}
