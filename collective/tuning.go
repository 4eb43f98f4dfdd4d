package collective

import (
	"context"
	"math"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/execute"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/tune"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
	"github.com/zeebo/xxh3"
)

// Tuner is how the group chooses at present: what it prices, and on which network.
// Only that of the process of rank 0 counts. See Explain for its choices.
func (g *TCPGroup) Tuner() *tune.Tuner { return g.local.net.tuner }

// Explain says how the group carries out what is asked for, and why. One choice serves
// all sizes above a power of two up to the next: those of q are priced in the middle.
func (g *TCPGroup) Explain(ctx context.Context, q tune.Query) (*tune.Decision, error) {
	q.Bytes = tune.ClassOf(q.Bytes).Bytes()
	return g.Tuner().Choose(ctx, q)
}

// channels depends on what all parties know.
func (n *network) channels(k *calls, key decisionKey) int {
	return tune.Channels(key.size.Bytes(), k.node.Size())
}

// decide has the first party choose and all learn of it, so that all agree whatever
// they would have chosen themselves.
func (n *network) decide(k *calls, q *request, key decisionKey) (*choice, error) {
	message := new([tune.MessageBytes]byte)
	if k.node.Rank() == 0 {
		ctx := q.ctx
		if ctx == nil {
			ctx = context.Background()
		}
		d, err := n.tuner.Choose(ctx, tune.Query{
			Collective: q.coll, Params: k.params(q, nil), Bytes: key.size.Bytes(), Elem: q.elem,
			Uneven: key.uneven, InOrder: key.inOrder,
		})
		if err == nil {
			err = d.Choice.Encode(message)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := k.spread(q, message[:]); err != nil {
		return nil, err
	}
	c, a, err := tune.DecodeChoice(message, q.coll)
	if err != nil {
		return nil, err
	}
	return &choice{algorithm: a, dims: c.Dims, options: execute.Options{Segment: c.Segment, Channels: c.Channels}}, nil
}

// spread broadcasts what party 0 decided, before the operation that it is about.
func (k *calls) spread(q *request, payload []byte) error {
	by, err := algorithm.Find(program.Broadcast, "binomial")
	if err != nil {
		return err
	}
	r := request{header: q.header, ctx: q.ctx, coll: program.Broadcast}
	p, err := k.prepare(&r, &choice{algorithm: by})
	if err != nil {
		return err
	}
	kin := q.header.withoutNumber()
	text := kin.describe()
	op := execute.Operation{
		Seq: q.header.seq, What: &mesh.Operation{Hash: xxh3.HashString("the choice for " + text), Text: text}, Before: q.before,
		Elem: 1, Layout: program.Even(len(payload), p.prog.Chunks), In: [][]byte{noBytes}, Out: payload,
	}
	if k.node.Rank() == 0 {
		op.In[0] = payload
	}
	_, err = p.runner.Run(&op)
	return err
}

// Calibrate measures what messages between processes, folding and copying cost here,
// and has the group choose algorithms by that from now on. All ranks of a group call
// it, once, before what they want to be quick. It takes ten to fifteen seconds. A group
// within one process has nothing to choose, and returns at once.
//
// It never changes a bit of a result: what competes are programs that give the same.
func Calibrate(ctx context.Context, c *Comm) error {
	net := c.group.net
	if net == nil || len(net.hosts) < 2 {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	return c.calibrate(ctx, nil)
}

// calibrate does it, with reductions of some sizes; see tune.Tuner.Calibrate.
func (c *Comm) calibrate(ctx context.Context, sizes []int) error {
	net := c.group.net
	fitted, err := net.tuner.Calibrate(ctx, newCalibration(c), sizes)
	if err != nil {
		return c.failed(err)
	}
	if fitted != nil {
		net.tuner = fitted
	}
	// Earlier decisions no longer hold, on any rank.
	if err := c.Barrier(ctx); err != nil {
		return err
	}
	clear(c.calls.decisions)
	if c.index == 0 {
		clear(net.calls.decisions)
		net.trials.close() // it opens again when used
	}
	return c.Barrier(ctx)
}

// calibration is the tune.Group of a rank of a TCPGroup.
type calibration struct {
	*Comm
	max Reduction[float64]
	add *typedOp[float64]
}

func newCalibration(c *Comm) *calibration {
	g := &calibration{Comm: c, max: Reduction[float64]{Name: "calibration", Op: Max[float64]()}, add: newTypedOp[float64]()}
	g.add.set(Sum[float64]())
	return g
}

// calibrationTag is one that no user is likely to choose.
const calibrationTag = math.MinInt

func (g *calibration) Peer() int { return g.group.net.hosts[1][0] }

func (g *calibration) Params() algorithm.Params {
	pr := algorithm.Params{P: len(g.group.net.hosts)}
	if f := g.group.net.makeWhole().forest; f != nil {
		pr.Forest = f.nodes
	}
	return pr
}

func (g *calibration) Send(ctx context.Context, to int, data []byte) error {
	return Send(g.Comm, to, calibrationTag, data, WithContext(ctx))
}

func (g *calibration) Recv(ctx context.Context, from int, data []byte) error {
	return Recv(g.Comm, from, calibrationTag, data, WithContext(ctx))
}

func (g *calibration) Max(ctx context.Context, x []float64) error {
	g.max.Whole, g.max.Out, g.max.Context = x, x, ctx
	return AllReduce(g.Comm, &g.max)
}

func (g *calibration) Add(dst, x []float64) { g.add.Fold(bytesOf(dst), bytesOf(dst), bytesOf(x)) }

// With exchanges the programs of this process for those on which algorithms are tried. These
// have connections of their own: socket buffers grow with the data that passes, and short
// messages through large buffers are slower, which users of the group must not inherit.
//
// The first rank of a process does it for the others: none of them can be in an operation
// that needs the first rank, which has completed its last one and not begun the next.
func (g *calibration) With(a *algorithm.Algorithm, call func() error) error {
	if net := g.group.net; g.index == 0 {
		net.trials.trial = a
		net.calls, net.trials = net.trials, net.calls
		defer func() { net.calls, net.trials = net.trials, net.calls }()
	}
	return call()
}
