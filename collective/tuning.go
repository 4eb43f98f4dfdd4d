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

// Tuner returns the tuner with which the group currently chooses algorithms, with its current
// model of the network. Only the tuner of the process of rank 0 is used. Explain returns the
// choices of the tuner.
func (g *TCPGroup) Tuner() *tune.Tuner { return g.local.net.tuner }

// Explain returns how the group carries out a collective, and why. The group makes one choice
// for all sizes above a power of two up to the next power of two. The predicted time of a
// choice is for the middle of that range.
func (g *TCPGroup) Explain(ctx context.Context, q tune.Query) (*tune.Decision, error) {
	q.Bytes = tune.ClassOf(q.Bytes).Bytes()
	return g.Tuner().Choose(ctx, q)
}

// channels implements decider. The result depends only on values that are the same for all
// parties.
func (n *network) channels(k *calls, key decisionKey) int {
	return tune.Channels(key.size.Bytes(), k.node.Size())
}

// decide makes the choice on the first party and sends it to all parties. So all parties use
// the same choice, even if their tuners differ.
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

// spread broadcasts payload, the decision of party 0 for the operation q, to all parties before
// q is carried out.
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
		Seq: q.header.seq, What: &mesh.Operation{Hash: xxh3.HashString("the choice for " + text), Text: text}, Before: q.precedingDigest,
		Elem: 1, Layout: program.Even(len(payload), p.prog.Chunks), In: [][]byte{noBytes}, Out: payload,
	}
	if k.node.Rank() == 0 {
		op.In[0] = payload
	}
	_, err = p.runner.Run(&op)
	return err
}

// Calibrate measures the cost of messages between processes, of folding and of copying. After
// that, the group chooses algorithms by these measurements. All ranks of a group must call
// Calibrate once, before the operations that should be fast. It takes ten to fifteen seconds.
// In a group within one process it returns immediately, since there is nothing to choose.
//
// Calibrate never changes a bit of a result: it compares only programs that give the same bits.
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

// calibrate is Calibrate with reductions of the given sizes in bytes; see tune.Tuner.Calibrate.
func (c *Comm) calibrate(ctx context.Context, sizes []int) error {
	net := c.group.net
	fitted, err := net.tuner.Calibrate(ctx, newCalibration(c), sizes)
	if err != nil {
		return c.failed(err)
	}
	if fitted != nil {
		net.tuner = fitted
	}
	// All ranks must forget their earlier decisions before any rank goes on.
	if err := c.Barrier(ctx); err != nil {
		return err
	}
	clear(c.calls.decisions)
	if c.index == 0 {
		clear(net.calls.decisions)
		net.trials.close() // trials opens its connections again when it is used
	}
	return c.Barrier(ctx)
}

// calibration implements tune.Group for a rank of a TCPGroup.
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

// calibrationTag is the tag of calibration messages. No user is likely to choose it.
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

// With runs call. While call runs, the field trials of the network, with algorithm a, replaces
// the field calls. The trials have their own connections, because socket buffers grow with the
// data that passes and short messages through large buffers are slower. Measurements must not
// make later operations of the group slower.
//
// The first rank of a process does this for all its ranks. During that time no other rank can
// use calls, since each operation among processes needs the first rank too.
func (g *calibration) With(a *algorithm.Algorithm, call func() error) error {
	if net := g.group.net; g.index == 0 {
		net.trials.trial = a
		net.calls, net.trials = net.trials, net.calls
		defer func() { net.calls, net.trials = net.trials, net.calls }()
	}
	return call()
}
