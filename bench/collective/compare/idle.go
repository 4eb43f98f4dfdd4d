package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Times of the measurement of waiting.
const (
	settling  = 1500 * time.Millisecond // from starting a contestant to its barriers
	waiting   = time.Second
	tick      = 10 * time.Millisecond // what Linux counts processor time in
	idleRanks = 2
)

// measureIdle finds out what each contestant burns while it waits. One that cannot
// be asked keeps −1.
func (c *compareCommand) measureIdle(ctx context.Context, r *report, progress io.Writer) error {
	for _, k := range r.Contestants {
		lines := k.commands(request{point: point{"barrier", idleRanks, 0}, seconds: 30, endless: true})
		if len(lines) == 0 {
			continue
		}
		fmt.Fprintf(progress, "waiting: %s\n", k.Name)
		used, err := idleCPU(ctx, k, lines[0])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(progress, "%s: %v\n", k.Name, err)
			continue
		}
		k.IdleCPU = used.Seconds()
	}
	return nil
}

// idleCPU starts endless barriers, stops one rank, and returns the processor time
// that the busiest of the other processes used in a second.
func idleCPU(ctx context.Context, k *contestant, line []string) (used time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	child := exec.CommandContext(ctx, line[0], line[1:]...)
	child.Env = append(os.Environ(), k.env...)
	groupOf(child)
	if err := child.Start(); err != nil {
		cancel()
		return 0, err
	}
	defer func() {
		cancel()
		_ = child.Wait() // it was ended in the midst of its work
	}()
	if err := pause(ctx, settling); err != nil {
		return 0, err
	}
	family, err := descendants(child.Process.Pid)
	if err != nil {
		return 0, err
	}
	stopped := youngestLeaf(family)
	if stopped == 0 {
		return 0, errors.New("it has no process of its own for a rank, or ended early")
	}
	if err := setStopped(stopped, true); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, setStopped(stopped, false)) }()
	before := processorTimes(family)
	if err := pause(ctx, waiting); err != nil {
		return 0, err
	}
	for pid, t := range processorTimes(family) {
		if pid != stopped {
			used = max(used, t-before[pid])
		}
	}
	return used, nil
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// process is a line of /proc/PID/stat.
type process struct {
	parent int
	used   time.Duration // in user and system mode, all threads
}

// parseStat reads /proc/PID/stat: "PID (name) state parent …", processor times in
// ticks at the 14th and 15th place. A name may hold anything, even parentheses.
func parseStat(text string) (process, error) {
	end := strings.LastIndexByte(text, ')')
	fields := strings.Fields(text[end+1:])
	if end < 0 || len(fields) < 13 {
		return process{}, fmt.Errorf("/proc: stat is %q", text)
	}
	var numbers [3]int64
	for i, at := range []int{1, 11, 12} {
		n, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			return process{}, fmt.Errorf("/proc: stat: %w", err)
		}
		numbers[i] = n
	}
	return process{int(numbers[0]), time.Duration(numbers[1]+numbers[2]) * tick}, nil
}

// readProcess looks at a process that may have ended.
func readProcess(pid int) (process, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	return parseStat(string(text))
}

// descendants returns a process and all under it, with their parents.
func descendants(root int) (map[int]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	parents := map[int]int{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, err := readProcess(pid); err == nil { // others end while we look
				parents[pid] = p.parent
			}
		}
	}
	family := map[int]int{}
	for pid := range parents {
		for at := pid; at > 1; at = parents[at] {
			if at == root {
				family[pid] = parents[pid]
				break
			}
		}
	}
	return family, nil
}

// youngestLeaf returns the process without children that has the greatest id and
// is not the family's only one; 0 where there is none.
func youngestLeaf(family map[int]int) int {
	var parents, leaves []int
	for _, parent := range family {
		parents = append(parents, parent)
	}
	for pid := range family {
		if !slices.Contains(parents, pid) {
			leaves = append(leaves, pid)
		}
	}
	if len(family) < 2 {
		return 0
	}
	return slices.Max(leaves)
}

// processorTimes reads what each has used; those that ended are left out.
func processorTimes(family map[int]int) map[int]time.Duration {
	used := map[int]time.Duration{}
	for pid := range family {
		if p, err := readProcess(pid); err == nil {
			used[pid] = p.used
		}
	}
	return used
}
