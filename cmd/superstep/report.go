package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall"

	"github.com/superstep-ml/superstep/cmd/internal/commands"
	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/simulate"
	"github.com/superstep-ml/superstep/collective/tune"
	"github.com/superstep-ml/superstep/internal/benchresult"
)

// printer writes results as text or JSON. It writes each result as soon as it is known.
type printer struct {
	out  io.Writer
	json bool
	mark bool // mark lines of the group's choice, because the table also has named algorithms
}

func newPrinter(out io.Writer, json bool) *printer { return &printer{out: out, json: json} }

// printf writes text. If the reader has closed the pipe, it returns a quiet error, which ends
// the command without a message.
func (p *printer) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(p.out, format, args...)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("writing results: %w", err)
	if errors.Is(err, syscall.EPIPE) {
		return commands.Quiet(err)
	}
	return err
}

// object writes v as one line of JSON.
func (p *printer) object(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return p.printf("%s\n", text)
}

// head writes the header of the table, and sets p.mark. It writes nothing in JSON.
func (p *printer) head(c *collectiveCommand, comm *collective.Comm) error {
	if p.json {
		return nil
	}
	where, star := "one process each", ""
	if c.InProcess {
		where = "all in one process"
	}
	if p.mark = c.has(chosen) && len(c.Algorithm) > 1; p.mark {
		star = "# *: chosen by the group\n"
	}
	return p.printf("# %d ranks, %s; %s %s on %d cores\n"+
		"# time of a run: that of its slowest rank; algbw: size / p50, in GB/s; busbw: algbw × what a link must carry per byte\n"+star+
		"%-14s %-20s %8s %10s %-7s %-4s %12s %12s %9s %9s %6s\n",
		comm.Size(), where, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		"collective", "algorithm", "size", "count", "type", "op", "p50 µs", "p99 µs", "algbw", "busbw", "errors")
}

// line writes the result l.
func (p *printer) line(l *line) error {
	if p.json {
		return p.object(l.Line)
	}
	by := cmp.Or(l.Config, l.Algorithm)
	if p.mark && l.Chosen {
		by += "*"
	}
	return p.printf("%-14s %-20s %8s %10d %-7s %-4s %12.1f %12.1f %9.3f %9.3f %6d\n",
		l.Collective, by, sizeText(l.Bytes), l.Count, l.Type, l.Op, l.P50, l.P99, l.AlgBW, l.BusBW, l.Errors)
}

// rawLine is the raw rate of TCP as JSON.
type rawLine struct {
	Raw float64 `json:"raw_gbs"` // GB/s in each direction, while both ranks send
}

// raw writes the raw rate of TCP. rate is in bytes per second.
func (p *printer) raw(rate float64) error {
	if p.json {
		return p.object(rawLine{rate / 1e9})
	}
	return p.printf("# raw TCP between ranks 0 and 1, both ways at once: %.2f GB/s each way\n", rate/1e9)
}

// explain prints which algorithms the group will choose, and why. It prints one explanation for
// consecutive sizes with the same decision. With --json, it prints to the standard error.
func (c *collectiveCommand) explain(ctx context.Context, s *streams, work []job, g *collective.TCPGroup) error {
	elem := benchresult.ElemBytes(c.Type)
	for _, j := range work {
		last := -1
		for _, bytes := range c.sizes(j) {
			d, err := g.Explain(ctx, tune.Query{
				Collective: j.collective, Params: algorithm.Params{P: c.Ranks, Root: c.Root}, Bytes: shareable(j.collective, bytes/elem, c.Ranks) * elem, Elem: elem,
			})
			if err != nil {
				return err
			}
			if d.Query.Bytes == last {
				continue
			}
			last = d.Query.Bytes
			out := s.out
			if c.JSON {
				out = s.err
			}
			if err := newPrinter(out, false).printf("%s\n", d.Explain()); err != nil {
				return err
			}
		}
	}
	return nil
}

// predictedLine is one result of --simulate as JSON.
type predictedLine struct {
	Collective string  `json:"collective"`
	Algorithm  string  `json:"algorithm"`
	Network    string  `json:"network"`
	Ranks      int     `json:"ranks"`
	Bytes      int     `json:"bytes"`
	Time       float64 `json:"time_us"`
	AlgBW      float64 `json:"algbw_gbs"`
	BusBW      float64 `json:"busbw_gbs"`
	Messages   int     `json:"messages"`
	NIC        float64 `json:"nic_busy"`
	Cores      float64 `json:"cores_busy"`
}

// simulate prints the times that are predicted for all jobs and sizes.
func (c *collectiveCommand) simulate(ctx context.Context, s *streams, work []job) error {
	net, err := c.network()
	if err != nil {
		return err
	}
	p := newPrinter(s.out, c.JSON)
	if !c.JSON {
		err := p.printf("# prices of %d ranks on network %q\n%-14s %-20s %8s %14s %9s %9s %12s %6s %6s\n", c.Ranks, net.Name,
			"collective", "algorithm", "size", "time µs", "algbw", "busbw", "messages", "nic", "cores")
		if err != nil {
			return err
		}
	}
	for _, j := range work {
		for _, bytes := range c.sizes(j) {
			for _, by := range j.algorithms {
				l, err := c.predict(ctx, net, j, by, bytes)
				if errors.Is(err, simulate.ErrTooLarge) && len(j.algorithms) > 1 {
					// The other algorithms are still simulated.
					fmt.Fprintf(s.err, "superstep: %s by %s of %s: %v\n", j.collective, by, sizeText(bytes), err)
					continue
				}
				if err != nil {
					return err
				}
				if err := p.predicted(l); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// predicted writes one line of --simulate.
func (p *printer) predicted(l *predictedLine) error {
	if p.json {
		return p.object(l)
	}
	return p.printf("%-14s %-20s %8s %14.1f %9.3f %9.3f %12d %5.0f%% %5.0f%%\n",
		l.Collective, l.Algorithm, sizeText(l.Bytes), l.Time, l.AlgBW, l.BusBW, l.Messages, 100*l.NIC, 100*l.Cores)
}

// predict simulates the collective of j with the algorithm whose name is by.
func (c *collectiveCommand) predict(ctx context.Context, net *simulate.Network, j job, by string, bytes int) (*predictedLine, error) {
	a, pr, err := c.find(j.collective, by)
	if err != nil {
		return nil, err
	}
	r, err := simulate.Price(ctx, a, pr, bytes, benchresult.ElemBytes(c.Type), net, simulate.Options{})
	if err != nil {
		return nil, err
	}
	l := &predictedLine{
		Collective: j.String(), Algorithm: by, Network: net.Name, Ranks: c.Ranks, Bytes: bytes,
		Time: r.Time * 1e6, Messages: r.Messages, NIC: r.NIC, Cores: r.Cores,
	}
	if r.Time > 0 {
		l.AlgBW = float64(bytes) / r.Time / 1e9
		l.BusBW = l.AlgBW * j.busFactor(c.Ranks)
	}
	return l, nil
}
