package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/simulate"
	"github.com/superstep-ml/superstep/collective/tune"
)

// printer writes lines as they come.
type printer struct {
	out  io.Writer
	json bool
}

func newPrinter(out io.Writer, json bool) *printer { return &printer{out, json} }

// head says what the columns are.
func (p *printer) head(c *collectiveCommand, comm *collective.Comm) {
	if p.json {
		return
	}
	where := "one process each"
	if c.InProcess {
		where = "all in one process"
	}
	fmt.Fprintf(p.out, "# %d ranks, %s; %s %s on %d cores\n", comm.Size(), where, runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	fmt.Fprintf(p.out, "# time of a run: that of its slowest rank; algbw: size / p50; busbw: algbw × what a link must carry per byte\n")
	fmt.Fprintf(p.out, "%-14s %-20s %8s %10s %-7s %-4s %12s %12s %9s %9s %6s\n",
		"collective", "algorithm", "size", "count", "type", "op", "p50 µs", "p99 µs", "algbw", "busbw", "errors")
}

// line writes one line.
func (p *printer) line(l *line) {
	if p.json {
		text, err := json.Marshal(l)
		if err != nil {
			panic(err) // numbers and strings
		}
		fmt.Fprintf(p.out, "%s\n", text)
		return
	}
	fmt.Fprintf(p.out, "%-14s %-20s %8s %10d %-7s %-4s %12.1f %12.1f %9.3f %9.3f %6d\n",
		l.Collective, l.Algorithm, sizeText(l.Bytes), l.Count, l.Type, l.Op, l.P50, l.P99, l.AlgBW, l.BusBW, l.Errors)
}

// explain writes why each algorithm will be chosen.
func (c *collectiveCommand) explain(ctx context.Context, s *streams, work []job, t *tune.Tuner) error {
	for _, j := range work {
		for _, bytes := range c.sizes(j.collective) {
			d, err := t.Choose(ctx, tune.Query{
				Collective: j.collective, Params: algorithm.Params{P: c.Ranks, Root: c.Root}, Bytes: bytes, Elem: elemOf(c.Type),
			})
			if err != nil {
				return err
			}
			fmt.Fprintln(s.out, d.Explain())
		}
	}
	return nil
}

func elemOf(typ string) int {
	switch typ {
	case "float32", "int32":
		return 4
	case "uint8":
		return 1
	default:
		return 8
	}
}

// priceLine is a line of --simulate.
type priceLine struct {
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

// simulate prints prices.
func (c *collectiveCommand) simulate(ctx context.Context, s *streams, work []job) error {
	net, err := c.network()
	if err != nil {
		return err
	}
	if !c.JSON {
		fmt.Fprintf(s.out, "# prices of %d ranks on network %q\n", c.Ranks, net.Name)
		fmt.Fprintf(s.out, "%-14s %-20s %8s %14s %9s %9s %12s %6s %6s\n",
			"collective", "algorithm", "size", "time µs", "algbw", "busbw", "messages", "nic", "cores")
	}
	for _, j := range work {
		for _, bytes := range c.sizes(j.collective) {
			for _, by := range j.algorithms {
				l, err := c.price(ctx, net, j.collective, by, bytes)
				if err != nil {
					return err
				}
				if c.JSON {
					text, err := json.Marshal(l)
					if err != nil {
						return err
					}
					fmt.Fprintf(s.out, "%s\n", text)
					continue
				}
				fmt.Fprintf(s.out, "%-14s %-20s %8s %14.1f %9.3f %9.3f %12d %5.0f%% %5.0f%%\n",
					l.Collective, l.Algorithm, sizeText(l.Bytes), l.Time, l.AlgBW, l.BusBW, l.Messages, 100*l.NIC, 100*l.Cores)
			}
		}
	}
	return nil
}

// price asks the simulator.
func (c *collectiveCommand) price(ctx context.Context, net *simulate.Network, k program.Collective, by string, bytes int) (*priceLine, error) {
	name, dims, err := algorithm.ParseName(by)
	if err != nil {
		return nil, err
	}
	a, err := algorithm.Find(k, name)
	if err != nil {
		return nil, err
	}
	r, err := simulate.Price(ctx, a, algorithm.Params{P: c.Ranks, Root: c.Root, Dims: dims}, bytes, elemOf(c.Type), net, simulate.Options{MaxSegments: 256})
	if err != nil {
		return nil, err
	}
	l := &priceLine{
		Collective: k.String(), Algorithm: by, Network: net.Name, Ranks: c.Ranks, Bytes: bytes,
		Time: r.Time * 1e6, Messages: r.Messages, NIC: r.NIC, Cores: r.Cores,
	}
	if r.Time > 0 {
		l.AlgBW = float64(bytes) / r.Time / 1e9
		l.BusBW = l.AlgBW * busFactor(k, c.Ranks)
	}
	return l, nil
}
