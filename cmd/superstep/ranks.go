package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/superstep-ml/superstep/cmd/internal/commands"
	"github.com/superstep-ml/superstep/collective"
)

// runInProcess runs all ranks as goroutines of this process.
func (c *collectiveCommand) runInProcess(ctx context.Context, s *streams, work []job) error {
	g := collective.NewLocalGroup(c.Ranks)
	errs := make([]error, c.Ranks)
	var ranks sync.WaitGroup
	for r := range c.Ranks {
		ranks.Go(func() {
			comm := g.Rank(r)
			errs[r] = c.sweep(ctx, s, work, comm)
			comm.Close(errs[r])
		})
	}
	ranks.Wait()
	return errors.Join(g.Err(), errs[0])
}

// These are the environment variables of the processes that this command starts: the rank of
// the process, and the directory through which the ranks find each other.
const (
	rankVariable  = "SUPERSTEP_BENCH_RANK"
	storeVariable = "SUPERSTEP_BENCH_STORE"
)

// runProcesses runs rank 0 in this process and starts a process for each other rank. In a
// process that was started for a rank, runProcesses runs that rank, which rankVariable names.
func (c *collectiveCommand) runProcesses(ctx context.Context, s *streams, work []job) error {
	if text := os.Getenv(rankVariable); text != "" {
		rank, err := strconv.Atoi(text)
		if err != nil || rank < 1 || rank >= c.Ranks {
			return fmt.Errorf("%s is %q", rankVariable, text)
		}
		return c.runRank(ctx, s, work, rank, c.loopback(os.Getenv(storeVariable)), func() {})
	}
	dir, err := os.MkdirTemp("", "superstep-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f := newRankProcesses(ctx, s.err)
	defer f.end(nil)
	for r := 1; r < c.Ranks; r++ {
		if err := f.start(r, dir); err != nil {
			f.end(err)
			return err
		}
	}
	joined := false
	err = c.runRank(f.ctx, s, work, 0, c.loopback(dir), func() {
		joined = true
		os.RemoveAll(dir) // no longer needed; removed here and not at the end, in case this process is killed
	})
	if !joined {
		f.cancel(err) // stops the other ranks, since there is no group yet that would stop them
	}
	f.end(err)
	if err != nil && f.stderr.has(err) {
		return commands.Quiet(err)
	}
	return causeOf(ctx, err)
}

// causeOf returns err, the error of a rank, preceded by the cause of ctx if err does not wrap
// it. When the command is interrupted, rank 0 may first see that other ranks have ended.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

func (c *collectiveCommand) loopback(dir string) collective.TCPConfig {
	return collective.TCPConfig{Store: collective.FileStore(dir), Size: c.Ranks}
}

// runRank runs one rank of a group over TCP. It calls joined once all ranks have connected.
func (c *collectiveCommand) runRank(ctx context.Context, s *streams, work []job, rank int, cfg collective.TCPConfig, joined func()) error {
	var err error
	if cfg.Tuning, err = c.tuner(); err != nil {
		return err
	}
	cfg.JoinTimeout, cfg.Group = c.Timeout, "bench"
	g, err := collective.NewTCPGroup(ctx, rank, cfg)
	if err != nil {
		return err
	}
	joined()
	err = c.runComm(ctx, s, work, g.Rank(rank), g)
	g.Rank(rank).Close(err)
	if closeErr := g.Close(); err == nil {
		err = closeErr
	}
	return err
}

// runComm runs the sweep on one rank, and the steps that only groups over TCP have. These are
// calibration and the explanation of choices, before the sweep, and the raw rate of TCP, after
// the sweep.
func (c *collectiveCommand) runComm(ctx context.Context, s *streams, work []job, comm *collective.Comm, g *collective.TCPGroup) error {
	if c.Calibrate {
		if err := collective.Calibrate(ctx, comm); err != nil {
			return err
		}
	}
	if c.Explain && comm.Rank() == 0 {
		if err := c.explain(ctx, s, work, g); err != nil {
			return err
		}
	}
	if err := c.sweep(ctx, s, work, comm); err != nil {
		return err
	}
	if c.NoRaw || comm.Size() < 2 {
		return nil
	}
	host, err := c.host()
	if err != nil {
		return err
	}
	rate, err := rawRate(ctx, comm, host)
	if err == nil && comm.Rank() == 0 {
		err = newPrinter(s.out, c.JSON).raw(rate)
	}
	return err
}

// host returns the host name or address of rank 0.
func (c *collectiveCommand) host() (string, error) {
	if len(c.Addresses) == 0 {
		return "127.0.0.1", nil
	}
	host, _, err := net.SplitHostPort(c.Addresses[0])
	return host, err
}

// sweep measures all jobs at all sizes on one rank. Rank 0 prints the results.
func (c *collectiveCommand) sweep(ctx context.Context, s *streams, work []job, comm *collective.Comm) error {
	var p *printer
	if comm.Rank() == 0 {
		p = newPrinter(s.out, c.JSON)
		if err := p.head(c, comm); err != nil {
			return err
		}
	}
	wrong := int64(0)
	for _, j := range work {
		for _, b := range c.batches(j) {
			lines, err := c.inTurn(ctx, comm, j, b)
			if err != nil {
				return err
			}
			for _, l := range lines {
				wrong += l.Errors
				if p == nil {
					continue
				}
				if err := p.line(l); err != nil {
					return err
				}
			}
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d elements came out wrong", wrong)
	}
	return nil
}

// batch is a size, and the algorithms that are measured alternately at this size.
type batch struct {
	bytes      int
	algorithms []string
}

// batches returns the batches of a job in the order of measurement. With one round, each batch
// has one algorithm, and the batches of an algorithm are consecutive. With several rounds, each
// batch has all algorithms.
func (c *collectiveCommand) batches(j job) []batch {
	together := 1
	if c.Rounds > 1 {
		together = max(len(j.algorithms), 1)
	}
	var all []batch
	for algorithms := range slices.Chunk(j.algorithms, together) {
		for _, bytes := range c.sizes(j) {
			all = append(all, batch{bytes, algorithms})
		}
	}
	return all
}

// inTurn measures a batch and returns a line for each algorithm. Every second round is in
// reverse order, so that an algorithm is not always measured after the same other algorithm.
func (c *collectiveCommand) inTurn(ctx context.Context, comm *collective.Comm, j job, b batch) ([]*line, error) {
	lines := make([]*line, len(b.algorithms))
	for round := range c.Rounds {
		for i := range lines {
			if round%2 == 1 {
				i = len(lines) - 1 - i
			}
			l, err := measure(ctx, comm, c, j, b.algorithms[i], b.bytes)
			if err != nil {
				return nil, err
			}
			if lines[i] == nil {
				lines[i] = l
			} else {
				lines[i].join(l)
			}
		}
	}
	for _, l := range lines {
		l.summarise(j.busFactor(comm.Size()))
	}
	return lines, nil
}
