package simulate

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
)

// Options are parameters of a simulation that do not belong to the network.
type Options struct {
	// Segment is the length of segments in bytes; 0 stands for DefaultSegment.
	Segment int

	// SerialLimit is a length in bytes. If no message is longer, a rank uses one core at a
	// time, because executors then use a single goroutine. 0 means DefaultSerialLimit. A
	// negative value means that ranks always use several cores.
	SerialLimit int

	// MaxSegments bounds the number of simulated segments: the length of segments is doubled
	// until there are at most MaxSegments segments. Trees among thousands of ranks are then
	// simulated fast, but pipelines fill more slowly than in reality (see Result.Segment). 0
	// means 2^20.
	MaxSegments int

	// Full disables the use of symmetry, so that every rank is simulated.
	Full bool
}

// These are the defaults of Options. They equal the defaults of package execute.
const (
	DefaultSegment     = 256 << 10
	DefaultSerialLimit = 256 << 10
)

func (o Options) serialLimit() int64 {
	limit := int64(DefaultSerialLimit)
	if o.SerialLimit != 0 {
		limit = int64(o.SerialLimit)
	}
	return min(limit, o.segment())
}

func (o Options) segment() int64 {
	if o.Segment > 0 {
		return int64(o.Segment)
	}
	return DefaultSegment
}

func (o Options) maxSegments() int {
	if o.MaxSegments > 0 {
		return o.MaxSegments
	}
	return 1 << 20
}

// Result is the price of a collective.
type Result struct {
	Time     float64   // seconds until the last rank has ended
	Finish   []float64 // seconds until each rank has ended
	Messages int       // number of messages sent by all ranks; a message may have several segments
	Bytes    int       // number of bytes sent by all ranks

	// NIC, Uplink and Cores are shares of Time. They are the shares in which the busiest NIC
	// (in one direction), the busiest link between a rack and the spine (in one direction), and
	// the cores of the busiest host were in use. Cores is 0 if the number of cores is
	// unlimited.
	NIC, Uplink, Cores float64

	// Chain divides the time of the rank that ended last by cause.
	Chain Chain

	Symmetry *Symmetry // nil if every rank was simulated
	Ranks    int       // number of simulated ranks
	Events   int       // number of events handled
	Segment  int       // length of segments in bytes
}

// Chain is the critical path to the end of the last rank: the predecessor of an event on the
// path is the last event for which it waited. The times add up to Result.Time.
type Chain struct {
	Messages int // number of segments received on the path

	Latency  float64 // latency of links
	Wire     float64 // transmission through NICs, links and memory
	Overhead float64 // overhead of messages on cores
	Copy     float64
	Fold     float64
	Queue    float64 // waits for cores, NICs and links
}

// Total returns the sum of the times.
func (c *Chain) Total() float64 {
	return c.Latency + c.Wire + c.Overhead + c.Copy + c.Fold + c.Queue
}

// Price predicts the time of an algorithm for data of the given number of bytes, which is
// divided into elements of elem bytes. A last incomplete element counts as a whole element. The
// parameter bytes is the length of the whole data of the collective: of the contribution of one
// rank to an AllReduce, or of all blocks of an AllGather together. A Barrier has no data.
func Price(ctx context.Context, a *algorithm.Algorithm, pr algorithm.Params, bytes, elem int, net *Network, opt Options) (*Result, error) {
	w, err := workOf(a, pr, bytes, elem)
	if err != nil {
		return nil, err
	}
	return Run(ctx, w, net, opt)
}

// workOf returns the Work of an algorithm for data of the given number of bytes.
func workOf(a *algorithm.Algorithm, pr algorithm.Params, bytes, elem int) (*Work, error) {
	if elem < 1 || bytes < 0 {
		return nil, fmt.Errorf("simulate: %d bytes in elements of %d", bytes, elem)
	}
	if err := a.Supports(pr); err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	if a.Collective == program.Barrier {
		bytes = 0
	}
	return &Work{
		P: pr.P, Elements: (bytes + elem - 1) / elem, Elem: elem, Dims: pr.Dims,
		Program: func(rank int) *program.Program { return a.Generate(pr, rank) },
	}, nil
}

// Run predicts the time of the programs of w on a network.
func Run(ctx context.Context, w *Work, net *Network, opt Options) (*Result, error) {
	if err := check(w, net); err != nil {
		return nil, err
	}
	pl, err := newPlan(w, net, opt)
	if err != nil {
		return nil, err
	}
	return pl.price(ctx, net)
}

// ErrTooLarge is wrapped by the error for work without symmetry that has more lanes or
// instructions than can be simulated in reasonable time and memory. With fewer ranks, or with
// another algorithm, a simulation may be possible.
var ErrTooLarge = errors.New("too large to price")

// check returns an error if the network or the numbers of the work are invalid.
func check(w *Work, net *Network) error {
	if err := net.Validate(); err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	switch {
	case w.P < 1 || w.P > 1<<20:
		return fmt.Errorf("simulate: %d ranks: want 1 to %d", w.P, 1<<20)
	case w.Elements < 0 || w.Elem < 1 || w.Elements > math.MaxInt/2/w.Elem:
		return fmt.Errorf("simulate: %d elements of %d bytes", w.Elements, w.Elem)
	case net.Placement != nil && len(net.Placement) < w.P:
		return fmt.Errorf("simulate: the network's placement has %d ranks, the collective %d", len(net.Placement), w.P)
	}
	return nil
}

// price runs the plan on net. net must have the same hosts and racks as the network for which
// the plan was made.
func (pl *plan) price(ctx context.Context, net *Network) (*Result, error) {
	m := newMachine(pl, net)
	if err := m.run(ctx); err != nil {
		return nil, err
	}
	r := &Result{
		Finish: make([]float64, pl.p), Symmetry: pl.symmetry,
		Ranks: len(pl.parts), Events: int(m.handled), Segment: int(pl.segment),
	}
	for rank := range r.Finish {
		r.Finish[rank] = m.finish[rank%len(pl.parts)]
		r.Time = max(r.Time, r.Finish[rank])
	}
	for _, p := range pl.parts {
		messages, bytes, _ := p.shape.work(pl.segment)
		r.Messages += int(messages) * (pl.p / len(pl.parts))
		r.Bytes += int(bytes) * (pl.p / len(pl.parts))
	}
	if m.lastHalf >= 0 {
		r.Chain = m.halves[m.lastHalf].chain
	}
	if r.Time > 0 {
		r.NIC = max(busiest(m.out), busiest(m.in)) / r.Time
		r.Uplink = max(busiest(m.up), busiest(m.down)) / r.Time
		if net.Cores > 0 {
			for _, b := range m.busy {
				r.Cores = max(r.Cores, b/(float64(net.Cores)*r.Time))
			}
		}
	}
	return r, nil
}

// busiest returns the busy time of the busiest server.
func busiest(servers []server) float64 {
	busy := 0.0
	for i := range servers {
		busy = max(busy, servers[i].busy)
	}
	return busy
}
