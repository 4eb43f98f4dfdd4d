package collective

import (
	"context"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/execute"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/tune"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
	"github.com/superstep-ml/superstep/shared/sharding"
	"github.com/zeebo/xxh3"
)

// request is one rank's part in a collective, with elements as bytes.
type request struct {
	header          *header
	precedingDigest uint64 // digest of the collectives that this rank has begun before
	ctx             context.Context
	coll            program.Collective
	root            int
	elem            int // bytes of an element

	in  [][]byte // one buffer, or one for each node of a forest; a nil buffer is absent
	out []byte

	// n, counts and recv say how the data is divided into blocks: n elements evenly, or one
	// block of counts[r] elements for each rank r. In an AllToAllV, this rank sends counts[r]
	// elements to rank r and receives recv[r] elements from rank r.
	n            int
	counts, recv []int

	arith       arithmetic // nil if the collective does not reduce
	commutative bool

	forest *memberForest // nil for whole buffers
}

// memberForest has, for each party of a reduction, the nodes of an aligned tree that the party
// gives as input.
type memberForest struct {
	nodes [][]sharding.Node
	hash  uint64
}

func hashForest(nodes [][]sharding.Node) uint64 {
	return xxh3.HashString(fmt.Sprint(nodes)) | 1
}

// calls runs programs among parties: the ranks of a group, or its processes. It is
// used by one goroutine at a time.
type calls struct {
	node      mesh.Node
	decider   decider
	pool      *execute.Pool
	runners   map[runnerKey]*prepared
	decisions map[decisionKey]*choice
	trial     *algorithm.Algorithm // if not nil, used for its collective in place of the decider's choice, during calibration
	last      *prepared            // program of the latest run, for descriptions
}

// runnerKey identifies a program and its options.
type runnerKey struct {
	coll      program.Collective
	algorithm string
	dims      string
	root      int
	forest    uint64
	options   execute.Options
}

// prepared is a program with its runner, and with the layouts of its latest runs.
type prepared struct {
	prog         *program.Program
	runner       *execute.Runner
	op           execute.Operation
	layouts      []cachedLayout
	evict        int // index of the next layout to replace
	cost         program.Cost
	sent         int64 // elements that this rank sent in the latest run
	operations   map[header]*mesh.Operation
	latestOp     *mesh.Operation // kinds[kind] of the latest run
	latestHeader header
}

// choice is a way to carry out a collective.
type choice struct {
	algorithm *algorithm.Algorithm
	dims      []int
	options   execute.Options
}

// decider chooses the algorithm for calls in which the caller names none.
type decider interface {
	decide(k *calls, q *request, key decisionKey) (*choice, error)

	// channels returns the number of connections of a lane if the choice gives none.
	channels(k *calls, key decisionKey) int
}

// silentNode is a node that does not announce operations: a call may run several programs, and
// Comm.enter already announces the call.
type silentNode struct{ mesh.Node }

func (silentNode) Begin(uint64, *mesh.Operation) {}
func (silentNode) End()                          {}

func newCalls(node mesh.Node, d decider) calls {
	return calls{
		node: node, decider: d,
		pool:      execute.NewPool(),
		runners:   map[runnerKey]*prepared{},
		decisions: map[decisionKey]*choice{},
	}
}

// close closes the runners. No run is under way.
func (k *calls) close() {
	for _, r := range k.runners {
		r.runner.Close()
	}
	clear(k.runners)
	if k.pool != nil {
		k.pool.Close()
	}
}

// run carries out q. present is false if the result is absent, as in a reduction without
// contributions.
func (k *calls) run(q *request) (present bool, err error) {
	c, err := k.choose(q)
	if err != nil {
		return false, err
	}
	p, err := k.prepare(q, c)
	if err != nil {
		return false, err
	}
	k.last = p
	p.setLengths(q)
	p.op.Seq, p.op.What, p.op.Before = q.header.seq, p.operationOf(q.header), q.precedingDigest
	p.op.Elem, p.op.In, p.op.Out = q.elem, q.in, q.out
	p.op.Reducer = q.arith
	present, err = p.runner.Run(&p.op)
	p.op.In, p.op.Out, p.op.Reducer = nil, nil, nil
	return present, err
}

// operationOf returns the operation for message headers. Two ranks get operations with equal
// hashes if and only if they carry out the same kind of operation with the same program.
func (p *prepared) operationOf(h *header) *mesh.Operation {
	kin := h.withoutNumber()
	if p.latestOp != nil && p.latestHeader == kin {
		return p.latestOp
	}
	op := p.operations[kin]
	if op == nil {
		if len(p.operations) >= maxOperations {
			clear(p.operations)
		}
		op = &mesh.Operation{Hash: operationHash(&kin, p.prog), Text: kin.describe()}
		p.operations[kin] = op
	}
	p.latestHeader, p.latestOp = kin, op
	return op
}

// maxOperations bounds the number of operations that are kept for one program.
const maxOperations = 256

func operationHash(kin *header, prog *program.Program) uint64 {
	return xxh3.HashString(fmt.Sprintf("%s %x %d %x", kin.describe(), prog.GroupHash(), kin.opk, kin.counts))
}

// prepare returns the program of choice c for q, with its runner. The first call for a program
// makes both.
func (k *calls) prepare(q *request, c *choice) (*prepared, error) {
	key := runnerKey{coll: q.coll, algorithm: c.algorithm.Name, root: q.root, options: c.options}
	if c.dims != nil {
		key.dims = fmt.Sprint(c.dims)
	}
	if q.forest != nil {
		key.forest = q.forest.hash
	}
	if p := k.runners[key]; p != nil {
		return p, nil
	}
	prog := c.algorithm.Generate(k.params(q, c.dims), k.node.Rank())
	ctx := q.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	options := c.options
	options.Workers = k.pool // one program runs at a time
	r, err := execute.New(ctx, prog, silentNode{k.node}, options)
	if err != nil {
		return nil, err
	}
	p := &prepared{prog: prog, runner: r, operations: map[header]*mesh.Operation{}, cost: c.algorithm.Cost(k.params(q, c.dims))}
	k.runners[key] = p
	return p, nil
}

func (k *calls) params(q *request, dims []int) algorithm.Params {
	pr := algorithm.Params{P: k.node.Size(), Root: q.root, Dims: dims}
	if q.forest != nil {
		pr.Forest = q.forest.nodes
	}
	return pr
}

// setLengths gives the program the lengths of q. A loop has few different lengths, so their
// layouts are kept.
func (p *prepared) setLengths(q *request) {
	at := slices.IndexFunc(p.layouts, func(l cachedLayout) bool { return l.matches(q) })
	if at < 0 {
		if at = p.evict; at == len(p.layouts) {
			p.layouts = append(p.layouts, cachedLayout{})
		}
		p.evict = (at + 1) % maxLayouts
		p.layouts[at] = p.lengthsOf(q)
	}
	p.op.Layout, p.sent = p.layouts[at].layout, p.layouts[at].sent
}

// maxLayouts bounds the number of layouts that are kept for one program.
const maxLayouts = 16

// cachedLayout is a layout and the lengths that it was made for.
type cachedLayout struct {
	n            int
	counts, recv []int
	layout       program.Layout
	sent         int64 // elements that this rank sends
}

func (l *cachedLayout) matches(q *request) bool {
	return l.n == q.n && slices.Equal(l.counts, q.counts) && slices.Equal(l.recv, q.recv)
}

func (p *prepared) lengthsOf(q *request) cachedLayout {
	l := cachedLayout{n: q.n, counts: slices.Clone(q.counts), recv: slices.Clone(q.recv)}
	switch {
	case q.recv != nil:
		l.layout = program.Exchange(q.counts, q.recv)
	case q.counts != nil:
		l.layout = program.Blocks(q.counts)
	default:
		l.layout = program.Even(q.n, p.prog.Chunks)
	}
	if p.cost.Sent != nil {
		l.sent = int64(p.cost.Sent(p.prog.Rank, l.layout))
	}
	return l
}

// choose returns how to carry out q: by the named algorithm if there is one, else by the
// decider's choice for all requests with the same key.
func (k *calls) choose(q *request) (*choice, error) {
	key := decisionKeyOf(q)
	if a := k.trial; a != nil && a.Collective == q.coll {
		return &choice{algorithm: a, options: execute.Options{Channels: k.decider.channels(k, key)}}, nil
	}
	if c := k.decisions[key]; c != nil {
		return c, nil
	}
	var c *choice
	var err error
	if key.algorithm != "" {
		c, err = k.named(q)
	} else {
		c, err = k.decider.decide(k, q, key)
	}
	if err != nil {
		return nil, err
	}
	if c.options.Channels == 0 {
		c.options.Channels = k.decider.channels(k, key)
	}
	k.decisions[key] = c
	return c, nil
}

// named returns the choice of the algorithm that the caller named.
func (k *calls) named(q *request) (*choice, error) {
	name, dims, err := algorithm.ParseName(q.header.algorithm)
	if err != nil {
		return nil, err
	}
	a, err := algorithm.Find(q.coll, name)
	if err != nil {
		return nil, err
	}
	if err := usable(a, k.params(q, dims), q); err != nil {
		return nil, err
	}
	return &choice{algorithm: a, dims: dims}, nil
}

// usable returns an error with the reason why algorithm a cannot carry out q, or nil if it can.
func usable(a *algorithm.Algorithm, pr algorithm.Params, q *request) error {
	if err := a.Supports(pr); err != nil {
		return err
	}
	if a.EvenOnly && q.counts != nil {
		return fmt.Errorf("%s %s takes blocks of even lengths only", a.Name, q.coll)
	}
	if q.arith != nil && !q.commutative && (a.RankOrder == nil || !a.RankOrder(pr.P)) {
		return fmt.Errorf("%s %s among %d ranks does not keep the order of ranks, and operator %q does not commute",
			a.Name, q.coll, pr.P, q.header.op)
	}
	return nil
}

// decisionKey has everything that a decision depends on. Collectives in the same class of sizes
// get the same decision.
type decisionKey struct {
	coll      program.Collective
	size      tune.SizeClass
	uneven    bool
	inOrder   bool
	forest    uint64
	root      int
	algorithm string
}

func decisionKeyOf(q *request) decisionKey {
	key := decisionKey{
		coll: q.coll, size: tune.ClassOf(q.bytes()), uneven: q.counts != nil, root: q.root,
		inOrder: q.arith != nil && !q.commutative, algorithm: q.header.algorithm,
	}
	if q.forest != nil {
		key.forest = q.forest.hash
	}
	return key
}

// bytes returns the size of the whole data. It is 0 for an AllToAllV, because all ranks need
// the same value to make the same decision.
func (q *request) bytes() int {
	if q.recv != nil {
		return 0
	}
	return q.n * q.elem
}
