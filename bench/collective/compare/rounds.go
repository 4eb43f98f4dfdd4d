package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/internal/benchresult"
)

// points are all that is measured, in the order of the table's rows.
func (c *compareCommand) points() []point {
	var all []point
	for _, collective := range c.Collective {
		for _, p := range c.Ranks {
			if collective == "barrier" {
				all = append(all, point{collective, p, 0})
				continue
			}
			for _, b := range c.Bytes {
				all = append(all, point{collective, p, b})
			}
		}
	}
	return all
}

// measure runs the rounds. A contestant without any result in a round is left out at
// the point, so that one library's fault does not cost the others' figures. The error is
// the context's cause.
func (c *comparison) measure(ctx context.Context) error {
	for _, p := range c.points() {
		row := &row{point: p, Cells: make([]*cell, len(c.Contestants))}
		for i := range row.Cells {
			row.Cells[i] = &cell{}
		}
		c.Rows = append(c.Rows, row)
		for round := range c.compareCommand.Rounds {
			for i := range c.Contestants {
				at := (i + round) % len(c.Contestants)
				c.take(ctx, c.Contestants[at], row.Cells[at], p, round)
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
			}
		}
	}
	return nil
}

// take lets a contestant run once at a point. One that takes too long runs no more.
func (c *comparison) take(ctx context.Context, k *contestant, at *cell, p point, round int) {
	if at.failed {
		return
	}
	if k.gaveUp {
		at.GaveUp = c.Limit.Seconds()
		return
	}
	fmt.Fprintf(c.progress, "%s, %d ranks, %d bytes, round %d of %d: %s\n", p.Collective, p.Ranks, p.Bytes, round+1, c.compareCommand.Rounds, k.Name)
	var results []result
	for _, line := range k.commands(request{point: p, seconds: c.Seconds, configs: at.best(c.Keep)}) {
		more, err := c.execute(ctx, k, line)
		results = append(results, more...) // what was printed before it failed counts
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			fmt.Fprintf(c.progress, "%s fails: %v\n", k.Name, err)
		}
		if errors.Is(err, errTooLong) {
			k.gaveUp, at.GaveUp = true, c.Limit.Seconds()
			break
		}
	}
	if len(results) > 0 {
		at.Rounds = append(at.Rounds, results)
	} else {
		at.failed = true // or it cannot serve the point
	}
}

// execute runs a command in a process group of its own, which ends with it, and
// reads its results. It returns those before an error too, unless they are wrong.
func (c *comparison) execute(ctx context.Context, k *contestant, line []string) ([]result, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	child := c.command(ctx, k, line)
	var out, problems bytes.Buffer
	child.Stdout, child.Stderr = &out, &problems
	err := child.Run()
	endGroup(child)
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
		out.Truncate(bytes.LastIndexByte(out.Bytes(), '\n') + 1) // a line may be cut off
	}
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(line, " "), err, lastLines(problems.String(), 5))
	}
	results, unreadable := readResults(&out)
	if unreadable != nil {
		return nil, errors.Join(err, fmt.Errorf("%s: %w", strings.Join(line, " "), unreadable))
	}
	return results, err
}

// command is a command in a process group of its own, which is asked to end when the
// context does. endGroup has to follow.
func (c *comparison) command(ctx context.Context, k *contestant, line []string) *exec.Cmd {
	child := exec.CommandContext(ctx, line[0], line[1:]...)
	child.Env = append(os.Environ(), k.env...)
	child.WaitDelay = c.grace
	beginGroup(child)
	return child
}

// result is one line that a contestant prints.
type result struct {
	Config    string  `json:"config"`
	Algorithm string  `json:"algorithm"` // that ours chose
	P50       float64 `json:"p50"`       // seconds, like the others
	P99       float64 `json:"p99"`
	Min       float64 `json:"min"`
	Mean      float64 `json:"mean"`
}

// readResults reads a contestant's lines. One without a time, or that tells of wrong
// elements, is an error, after which no more are read.
func readResults(r io.Reader) ([]result, error) {
	var results []result
	err := benchresult.Read(r, func(l *benchresult.Line) error {
		switch {
		case l.Collective == "":
			return nil // it measures something else
		case !(l.P50 > 0):
			return errors.New("no p50_us")
		case l.Errors != 0:
			return fmt.Errorf("%d wrong elements", l.Errors)
		}
		config := l.Config
		if config == "" { // ours
			config = outOfPlace
			if l.InPlace {
				config = inPlace
			}
		}
		results = append(results, result{config, l.Algorithm, l.P50 / 1e6, l.P99 / 1e6, l.Min / 1e6, l.Mean / 1e6})
		return nil
	})
	return results, err
}

// lastLines shortens what a program said.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}

// best names the fastest configurations so far; nil before the first round, which
// stands for all, and where there are no more anyway.
func (c *cell) best(keep int) []string {
	names := c.configs()
	if len(names) <= 1 {
		return nil
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(benchresult.Median(c.times(a)), benchresult.Median(c.times(b)))
	})
	return names[:min(keep, len(names))]
}
