package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
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
// the point, so that one library's fault does not cost the others' figures.
func (c *compareCommand) measure(ctx context.Context, r *report, progress io.Writer) error {
	for _, p := range c.points() {
		row := &row{point: p, Cells: make([]*cell, len(r.Contestants))}
		for i := range row.Cells {
			row.Cells[i] = &cell{}
		}
		r.Rows = append(r.Rows, row)
		for round := range c.Rounds {
			for i := range r.Contestants {
				at := (i + round) % len(r.Contestants)
				if err := c.take(ctx, r.Contestants[at], row.Cells[at], p, round, progress); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// take lets a contestant run once at a point. The error is the context's.
func (c *compareCommand) take(ctx context.Context, k *contestant, at *cell, p point, round int, progress io.Writer) error {
	if at.failed {
		return nil
	}
	fmt.Fprintf(progress, "%s, %d ranks, %d bytes, round %d of %d: %s\n", p.Collective, p.Ranks, p.Bytes, round+1, c.Rounds, k.Name)
	var results []result
	for _, line := range k.commands(request{point: p, seconds: c.Seconds, configs: at.best(c.Keep)}) {
		more, err := c.execute(ctx, k, line)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(progress, "%s fails: %v\n", k.Name, err)
		}
		results = append(results, more...) // what was printed before it failed counts
	}
	if len(results) == 0 {
		at.failed = true // or it cannot serve the point
		return nil
	}
	at.Rounds = append(at.Rounds, results)
	return nil
}

// execute runs a command in a process group of its own, which ends with it, and
// reads its results. It returns those before an error too, unless they are wrong.
func (c *compareCommand) execute(ctx context.Context, k *contestant, line []string) ([]result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	child := exec.CommandContext(ctx, line[0], line[1:]...)
	child.Env = append(os.Environ(), k.env...)
	groupOf(child)
	var out, problems bytes.Buffer
	child.Stdout, child.Stderr = &out, &problems
	err := child.Run()
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(line, " "), err, lastLines(problems.String(), 5))
	}
	results, unreadable := parseResults(&out)
	if unreadable != nil {
		return nil, errors.Join(err, fmt.Errorf("%s: %w", strings.Join(line, " "), unreadable))
	}
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
	if len(c.Rounds) == 0 {
		return nil
	}
	names := c.configs()
	if len(names) <= 1 {
		return nil
	}
	slices.SortStableFunc(names, func(a, b string) int {
		if c.of(a) < c.of(b) {
			return -1
		}
		return 1
	})
	return names[:min(keep, len(names))]
}
