package simulate

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
)

// Options are the choices that are not the network's.
type Options struct {
	// Segment is the length of segments in bytes; 0 stands for DefaultSegment.
	Segment int

	// SerialLimit is the length of messages up to which a rank uses one core at a time:
	// executors spare themselves goroutines there. 0 stands for DefaultSerialLimit,
	// negative for no such length.
	SerialLimit int

	// MaxSegments bounds the number of segments that are simulated: as long as there
	// are more, segments are priced twice as long. It is what keeps trees among
	// thousands of ranks quick; what it costs is that pipelines fill more slowly than
	// they would (Result.Segment tells). 0 stands for 2^20.
	MaxSegments int

	// Full simulates every rank even where symmetry would spare it.
	Full bool
}

// Lengths where nothing else is said: those of executors.
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
	Finish   []float64 // seconds until each rank has
	Messages int       // sent by all ranks; one message may travel in several segments
	Bytes    int       // sent by all ranks

	// NIC, Uplink and Cores are shares of Time: how long the busiest NIC (either way),
	// the busiest link of a rack to the spine, and the cores of the busiest host were
	// busy. Cores is 0 where their number is unlimited.
	NIC, Uplink, Cores float64

	// Chain is where the time of the rank that ended last went.
	Chain Chain

	Symmetry *Symmetry // nil where every rank was simulated
	Ranks    int       // simulated
	Events   int       // handled
	Segment  int       // bytes
}

// Chain adds up what happened, one thing after the other, until the last rank ended:
// what each thing on the way waited for last. The times add up to Result.Time.
type Chain struct {
	Messages int // segments received on the way

	Latency  float64 // of links
	Wire     float64 // passing of bytes through NICs, links and memory
	Overhead float64 // of messages on cores
	Copy     float64
	Fold     float64
	Queue    float64 // behind others, for cores, NICs and links
}

// Total is the sum of the times.
func (c *Chain) Total() float64 {
	return c.Latency + c.Wire + c.Overhead + c.Copy + c.Fold + c.Queue
}

// Price prices an algorithm for data of a length in bytes, which is cut into elements
// of elem bytes (a last incomplete one counts whole). The data is that of the whole
// collective: bytes are what a rank contributes to an AllReduce, what all blocks of an
// AllGather have together. A Barrier has none.
func Price(ctx context.Context, a *algorithm.Algorithm, pr algorithm.Params, bytes, elem int, net *Network, opt Options) (*Result, error) {
	w, err := workOf(a, pr, bytes, elem)
	if err != nil {
		return nil, err
	}
	return Run(ctx, w, net, opt)
}

// workOf is the work of an algorithm.
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

// Run prices programs.
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

// ErrTooLarge is the complaint about work that has no symmetry and more parts than
// can be priced in a reasonable time and memory. A part of it, or another algorithm, may be.
var ErrTooLarge = errors.New("too large to price")

// check refuses what cannot be priced.
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

// price runs a plan on a network for which it was made.
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
	if m.last >= 0 {
		r.Chain = m.halves[m.last].chain
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

// busiest is the time that the busiest of some servers worked.
func busiest(servers []server) float64 {
	busy := 0.0
	for i := range servers {
		busy = max(busy, servers[i].busy)
	}
	return busy
}
