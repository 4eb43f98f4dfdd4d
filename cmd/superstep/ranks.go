package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"github.com/superstep-ml/superstep/collective"
)

// runInProcess runs all ranks as goroutines.
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

// What this command tells the processes that it starts, in their environment.
const (
	rankVariable  = "SUPERSTEP_BENCH_RANK"
	storeVariable = "SUPERSTEP_BENCH_STORE"
)

// runProcesses starts a process for each rank but 0, which is this one; or is one of
// those.
func (c *collectiveCommand) runProcesses(ctx context.Context, s *streams, work []job) error {
	if text := os.Getenv(rankVariable); text != "" {
		rank, err := strconv.Atoi(text)
		if err != nil || rank < 1 || rank >= c.Ranks {
			return fmt.Errorf("%s is %q", rankVariable, text)
		}
		return c.runRank(ctx, s, work, rank, c.loopback(os.Getenv(storeVariable)))
	}
	dir, err := os.MkdirTemp("", "superstep-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var children sync.WaitGroup
	defer children.Wait()
	for r := 1; r < c.Ranks; r++ {
		child := exec.CommandContext(ctx, self, os.Args[1:]...)
		child.Env = append(os.Environ(), rankVariable+"="+strconv.Itoa(r), storeVariable+"="+dir)
		child.Stderr = s.err
		if err := child.Start(); err != nil {
			cancel(err)
			return fmt.Errorf("starting rank %d: %w", r, err)
		}
		children.Go(func() {
			if err := child.Wait(); err != nil {
				cancel(fmt.Errorf("rank %d: %w", r, err))
			}
		})
	}
	return c.runRank(ctx, s, work, 0, c.loopback(dir))
}

func (c *collectiveCommand) loopback(dir string) collective.TCPConfig {
	return collective.TCPConfig{Store: collective.FileStore(dir), Size: c.Ranks}
}

// runRank runs one rank of a group over TCP.
func (c *collectiveCommand) runRank(ctx context.Context, s *streams, work []job, rank int, cfg collective.TCPConfig) error {
	var err error
	if cfg.Tuning, err = c.tuner(); err != nil {
		return err
	}
	cfg.JoinTimeout, cfg.Group = c.Timeout, "bench"
	g, err := collective.NewTCPGroup(ctx, rank, cfg)
	if err != nil {
		return err
	}
	err = c.runComm(ctx, s, work, g.Rank(rank), g)
	g.Rank(rank).Close(err)
	if closeErr := g.Close(); err == nil {
		err = closeErr
	}
	return err
}

// runComm does what concerns groups over TCP only, and the sweep.
func (c *collectiveCommand) runComm(ctx context.Context, s *streams, work []job, comm *collective.Comm, g *collective.TCPGroup) error {
	if c.Calibrate {
		if err := collective.Calibrate(ctx, comm); err != nil {
			return err
		}
	}
	if c.Explain && comm.Rank() == 0 {
		if err := c.explain(ctx, s, work, g.Tuner()); err != nil {
			return err
		}
	}
	if err := c.sweep(ctx, s, work, comm); err != nil {
		return err
	}
	if c.NoRaw || c.JSON || comm.Size() < 2 {
		return nil
	}
	rate, err := rawRate(ctx, comm)
	if err == nil && comm.Rank() == 0 {
		fmt.Fprintf(s.out, "# raw TCP between ranks 0 and 1, both ways at once: %.2f GB/s each way\n", rate/1e9)
	}
	return err
}

// sweep runs everything on one rank; rank 0 prints.
func (c *collectiveCommand) sweep(ctx context.Context, s *streams, work []job, comm *collective.Comm) error {
	var p *printer
	if comm.Rank() == 0 {
		p = newPrinter(s.out, c.JSON)
		p.head(c, comm)
	}
	wrong := int64(0)
	for _, j := range work {
		for _, by := range j.algorithms {
			for _, bytes := range c.sizes(j.collective) {
				l, err := measure(ctx, comm, c, j.collective, by, bytes)
				if err != nil {
					return err
				}
				wrong += l.Errors
				if p != nil {
					p.line(l)
				}
			}
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d elements came out wrong", wrong)
	}
	return nil
}
