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

// points returns all points, in the order of the table's rows.
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

// measure runs the rounds. A contestant that has no result in a round is left out of the later
// rounds at that point, so that a fault in one library does not lose the figures of the others.
// measure returns an error only if the context ends. The error is then the cause of the end.
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
				c.runOnce(ctx, c.Contestants[at], row.Cells[at], p, round)
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
			}
		}
	}
	return nil
}

// runOnce runs a contestant once at a point. A contestant that exceeds the time limit does not
// run again at any point.
func (c *comparison) runOnce(ctx context.Context, k *contestant, at *cell, p point, round int) {
	if at.failed {
		return
	}
	if k.timedOut {
		at.TimedOutAfter = c.Limit.Seconds()
		return
	}
	fmt.Fprintf(c.progress, "%s, %d ranks, %d bytes, round %d of %d: %s\n", p.Collective, p.Ranks, p.Bytes, round+1, c.compareCommand.Rounds, k.Name)
	var results []result
	for _, line := range k.commands(request{point: p, seconds: c.Seconds, configs: at.best(c.Keep)}) {
		more, err := c.execute(ctx, k, line)
		results = append(results, more...) // results that were printed before an error are used, too
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			fmt.Fprintf(c.progress, "%s fails: %v\n", k.Name, err)
		}
		if errors.Is(err, errTooLong) {
			k.timedOut, at.TimedOutAfter = true, c.Limit.Seconds()
			break
		}
	}
	if len(results) > 0 {
		at.Rounds = append(at.Rounds, results)
	} else {
		at.failed = true // it failed, or does not support the point
	}
}

// execute runs a command of contestant k in its own process group, and returns the results that
// the command prints. When the command has exited, it kills the rest of the group. If the
// command fails, execute returns the error and the results printed before it. If a result is
// invalid, it returns only an error.
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
		out.Truncate(bytes.LastIndexByte(out.Bytes(), '\n') + 1) // the last line may be incomplete
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

// command returns a command that runs in its own process group. When the context ends, the
// group receives SIGTERM. The caller must call endGroup.
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
	Algorithm string  `json:"algorithm"` // algorithm that Superstep chose
	P50       float64 `json:"p50"`       // median time in seconds
	P99       float64 `json:"p99"`
	Min       float64 `json:"min"`
	Mean      float64 `json:"mean"`
}

// readResults reads the lines that a contestant printed. It returns an error at the first line
// without a time or with wrong elements.
func readResults(r io.Reader) ([]result, error) {
	var results []result
	err := benchresult.Read(r, func(l *benchresult.Line) error {
		switch {
		case l.Collective == "":
			return nil // a line that is not a measurement of a collective
		case !(l.P50 > 0):
			return errors.New("no p50_us")
		case l.Errors != 0:
			return fmt.Errorf("%d wrong elements", l.Errors)
		}
		config := l.Config
		if config == "" { // Superstep's lines have no configuration
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

// lastLines returns the last n lines of text, separated by semicolons.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}

// best returns the names of the keep configurations that are fastest so far. Before the first
// round, and if there is only one configuration, it returns nil, which means all.
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
