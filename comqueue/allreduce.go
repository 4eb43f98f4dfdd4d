package comqueue

import (
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Number lists the element types of buffers.
type Number interface{ float64 | float32 | int64 }

// ReduceOption changes an AllReduce or a ReduceScatter.
type ReduceOption interface{ applyReduce(*reduceConfig) }

// Op is a built-in element-wise operator of a reduction.
type Op int

const (
	// Sum adds; it is the default.
	Sum Op = iota
	// Max takes the larger operand, or NaN if either is NaN.
	Max
	// Min takes the smaller operand, or NaN if either is NaN.
	Min
	// Prod multiplies.
	Prod
)

// String returns the operator's name.
func (o Op) String() string {
	switch o {
	case Sum:
		return "sum"
	case Max:
		return "max"
	case Min:
		return "min"
	case Prod:
		return "prod"
	}
	return fmt.Sprintf("Op(%d)", int(o))
}

func (o Op) applyReduce(c *reduceConfig) { c.op, c.user = o, nil }

// Operator makes a user-defined operator. f combines element by element, dst[i] = dst[i] op
// src[i], where dst holds the left operand. f may be called on any piece of the buffers, and
// must be associative up to rounding. ForEachShard fills its buffers with identity. name
// appears in the plan and in errors.
func Operator[T Number](name string, identity T, f func(dst, src []T)) ReduceOption {
	return userOperator{name: name, op: operator[T]{collective.UserOp(name, false, f).WithIdentity(identity), f}}
}

// CommutativeOperator makes an Operator that commutes. Algorithms that do not keep the order of
// subtasks accept only such operators.
func CommutativeOperator[T Number](name string, identity T, f func(dst, src []T)) ReduceOption {
	return userOperator{name: name, commutes: true, op: operator[T]{collective.UserOp(name, true, f).WithIdentity(identity), f}}
}

type userOperator struct {
	name     string
	commutes bool
	op       any // operator[T]
}

func (u userOperator) applyReduce(c *reduceConfig) { c.user = &u }

// Length makes a stage reduce only the first n elements of the buffer, where n is the value
// under key. Every subtask must have put the same n before the stage runs.
func Length(key shared.Key[int]) ReduceOption { return lengthOption{key} }

type lengthOption struct{ key shared.Key[int] }

func (l lengthOption) applyReduce(c *reduceConfig) { c.length = &l.key }

type reduceConfig struct {
	op        Op
	user      *userOperator
	length    *shared.Key[int]
	blocks    *shared.Key[[]int]
	exact     bool
	sparse    bool
	algorithm *AlgorithmOption
}

// newReduceConfig applies the options of a communicate function. The error names the function.
func newReduceConfig(function string, options []ReduceOption) (c reduceConfig, err error) {
	for _, o := range options {
		if o == nil {
			err = fmt.Errorf("%s: an option is nil", function)
			continue
		}
		o.applyReduce(&c)
	}
	return c, err
}

// opName names the operator for the plan.
func (c reduceConfig) opName() string {
	if c.user != nil {
		return c.user.name
	}
	return c.op.String()
}

// commutes reports whether the operator commutes.
func (c reduceConfig) commutes() bool { return c.user == nil || c.user.commutes }

// attrs returns the options as the plan shows them.
func (c reduceConfig) attrs() []engine.Attr {
	attrs := []engine.Attr{{Key: "op", Value: c.opName()}}
	if c.length != nil {
		attrs = append(attrs, engine.Attr{Key: "length", Value: c.length.Name()})
	}
	if c.blocks != nil {
		attrs = append(attrs, engine.Attr{Key: "blocks", Value: c.blocks.Name()})
	}
	if c.algorithm != nil {
		attrs = append(attrs, engine.Attr{Key: "algorithm", Value: c.algorithm.name})
	}
	if c.sparse {
		attrs = append(attrs, engine.Attr{Key: "zeros", Value: "omitted while that is smaller"})
	}
	return attrs
}

// misuseOf returns what is wrong with the options for the collective coll on buffers of T.
func misuseOf[T Number](c reduceConfig, coll program.Collective) error {
	if c.length != nil {
		if err := c.length.Err(); err != nil {
			return err
		}
	}
	if _, err := resolve[T](c); err != nil {
		return err
	}
	if err := misuseOfBlocks[T](c, coll == program.ReduceScatter); err != nil {
		return err
	}
	if err := misuseOfZeros(c); err != nil {
		return err
	}
	alg, _, err := c.algorithm.find(coll)
	if err != nil {
		return err
	}
	return misuseOfAlgorithm(alg, c.opName(), c.commutes())
}

// orderOf returns the tree on which the bits of a reduction of T depend: the tree over shards
// or the tree over subtasks. Built-in operators on integers give the same result in any order.
func orderOf[T Number](c reduceConfig, coll program.Collective, perShard bool) engine.Reduction {
	if !perShard {
		if c.exact {
			return engine.ShardTree
		}
		return engine.RankTree
	}
	alg, _, err := c.algorithm.find(coll)
	var zero T
	_, integers := any(zero).(int64)
	if err == nil && (inShardTree(alg) || integers && c.user == nil) {
		return engine.ShardTree
	}
	return engine.RankTree
}

// prefix returns how many of a buffer's elements are reduced.
func (c reduceConfig) prefix(ctx *ComContext, name string, elements int) (int, error) {
	if c.length == nil {
		return elements, nil
	}
	n := c.length.Get(ctx)
	if n < 0 || n > elements {
		return 0, fmt.Errorf("length %q is %d, buffer %q holds %d elements", c.length.Name(), n, name, elements)
	}
	return n, nil
}

// operator is an operator for one element type.
type operator[T Number] struct {
	op collective.Op[T]
	// apply computes dst[i] = dst[i] op src[i].
	apply func(dst, src []T)
}

// resolve returns the operator for element type T.
func resolve[T Number](c reduceConfig) (operator[T], error) {
	if c.user != nil {
		op, ok := c.user.op.(operator[T])
		if !ok {
			var zero T
			return operator[T]{}, fmt.Errorf("operator %q is not one for %T", c.user.name, zero)
		}
		if op.apply == nil {
			return operator[T]{}, fmt.Errorf("the function of operator %q is nil", c.user.name)
		}
		return op, nil
	}
	switch c.op {
	case Sum:
		return operator[T]{collective.Sum[T](), kernel.AddTo[T]}, nil
	case Max:
		return operator[T]{collective.Max[T](), kernel.MaxTo[T]}, nil
	case Min:
		return operator[T]{collective.Min[T](), kernel.MinTo[T]}, nil
	case Prod:
		return operator[T]{collective.Prod[T](), kernel.ProdTo[T]}, nil
	}
	return operator[T]{}, fmt.Errorf("unknown operator %v", c.op)
}

// AllReduce combines a buffer of all subtasks element by element and gives every subtask the
// result, in place, under the same key. It runs as three stages: AllReduceSend sends the
// subtask's part, AllReduceSum reduces the piece that the subtask owns, and AllReduceRecv
// gathers the reduced pieces.
//
// A buffer filled by ForEachShard is reduced up the tree over shards, so that the result is the
// same at any parallelism. This does not hold with an Algorithm that does not accept parts of
// shards. Any other buffer is taken as one operand per subtask, and reduced in the fold tree
// over subtasks. The plan marks such results "depends on parallelism". If buffers have
// different lengths, the error names two subtasks.
func AllReduce[T Number](key shared.Key[[]T], options ...ReduceOption) Stage {
	s := &allReduce[T]{key: key}
	s.config, s.err = newReduceConfig(fmt.Sprintf("AllReduce(%q)", key.Name()), options)
	return s
}

type allReduce[T Number] struct {
	key    shared.Key[[]T]
	config reduceConfig
	err    error
}

func (s *allReduce[T]) misuse() error {
	if err := s.key.Err(); err != nil {
		return err
	}
	if s.err != nil {
		return s.err
	}
	if err := misuseOf[T](s.config, program.AllReduce); err != nil {
		return fmt.Errorf("AllReduce(%q): %w", s.key.Name(), err)
	}
	return nil
}

// reduces returns the key of the buffer that is reduced.
func (s *allReduce[T]) reduces() shared.AnyKey { return s.key }

func (s *allReduce[T]) function() string { return "AllReduce" }

// folds returns the operator that folds the buffers of shards.
func (s *allReduce[T]) folds() (operator[T], error) { return resolve[T](s.config) }

func (s *allReduce[T]) describe(l *layout, position int) []engine.StageSpec {
	_, perShard := l.forestOf[position]
	order := orderOf[T](s.config, program.AllReduce, perShard)
	name, attrs := s.key.Name(), s.config.attrs()
	return []engine.StageSpec{
		{Kind: engine.StageSend, Name: name, Attrs: attrs},
		{Kind: engine.StageSum, Name: name, Attrs: attrs, Order: order},
		{Kind: engine.StageRecv, Name: name, Attrs: attrs},
	}
}

func (s *allReduce[T]) bind(b *body, position int) ([]engine.Stage, error) {
	r, err := newReduction(b, position, s.key, s.config)
	if err != nil {
		return nil, fmt.Errorf("AllReduce(%q): %w", s.key.Name(), err)
	}
	return []engine.Stage{
		{Node: b.takeNode(), Run: r.send, Bytes: r.partialBytes, Program: r.program},
		{Node: b.takeNode(), Run: r.sum, Waited: func() time.Duration { return r.sumWaited }, Program: r.program},
		{Node: b.takeNode(), Run: r.recv, Bytes: r.resultBytes, Waited: func() time.Duration { return r.recvWaited }, Program: r.program},
	}, nil
}

// reduction runs an AllReduce on one subtask.
type reduction[T Number] struct {
	ctx     *ComContext
	comm    *collective.Comm
	key     shared.Key[[]T]
	config  reduceConfig
	call    *collective.AllReducer[T]
	request collective.Reduction[T]
	forest  *forest[T] // nil if the buffer is whole
	// needsAll is set if the algorithm needs a buffer from each subtask. A subtask without rows
	// then contributes the operator's identity.
	needsAll       bool
	identityBuffer []T
	identityForest [1]sharding.Entry[[]T]

	latest                collective.Description // description of the latest call
	sumWaited, recvWaited time.Duration
}

// newReduction prepares the AllReduce of the stage at position.
func newReduction[T Number](b *body, position int, key shared.Key[[]T], c reduceConfig) (*reduction[T], error) {
	op, err := resolve[T](c)
	if err != nil {
		return nil, err
	}
	if err := c.algorithm.checkSupports(program.AllReduce, b.context.NumTask(), 0, c.opName(), c.commutes()); err != nil {
		return nil, err
	}
	r := &reduction[T]{ctx: &b.context, comm: b.comm, key: key, config: c, call: collective.NewAllReduce[T](b.comm)}
	if producer, ok := b.layout.forestOf[position]; ok {
		r.forest = b.forests[producer].(*forest[T])
		r.request.Shards = b.context.TotalShards()
		r.needsAll = c.algorithm.needsEveryone(program.AllReduce, b.context.NumTask(), r.request.Shards)
	}
	r.request.Name = key.Name()
	r.request.Op = op.op
	r.request.Algorithm = c.algorithm.requestedName()
	r.request.Sparse = c.sparse
	r.request.Context = b.context.Context()
	return r, nil
}

// send sends the subtask's part: its forest if ForEachShard filled one, otherwise the buffer.
func (r *reduction[T]) send() error {
	buffer := r.key.Get(r.ctx)
	if r.forest != nil && len(buffer) != r.forest.length {
		return fmt.Errorf("buffer %q has %d elements, and had %d when ForEachShard filled its parts", r.key.Name(), len(buffer), r.forest.length)
	}
	n, err := r.config.prefix(r.ctx, r.key.Name(), len(buffer))
	if err != nil {
		return err
	}
	if r.request.Blocks == nil {
		r.request.Out = buffer[:n]
	}
	if r.forest == nil {
		r.request.Whole = buffer[:n]
	} else {
		r.request.Forest = r.forest.entries(n)
		if r.needsAll && len(r.request.Forest) == 0 {
			r.identityBuffer = sized(r.identityBuffer, n)
			fill(r.identityBuffer, r.request.Op.Identity())
			r.identityForest[0] = sharding.Entry[[]T]{Node: sharding.Leaf(r.ctx.Shards().Lo), Value: r.identityBuffer}
			r.request.Forest = r.identityForest[:]
		}
	}
	return r.call.Send(&r.request)
}

// sum reduces the piece that the subtask owns.
func (r *reduction[T]) sum() error {
	before := r.call.Stats().Recv
	err := r.call.Sum()
	r.sumWaited += r.call.Stats().Recv - before
	return err
}

// recv waits for the reduced pieces that other subtasks own.
func (r *reduction[T]) recv() error {
	before := r.call.Stats().Recv
	err := r.call.Recv()
	r.recvWaited += r.call.Stats().Recv - before
	r.latest = r.comm.Describe()
	return err
}

// partialBytes and resultBytes return how many bytes of partial results and of reduced pieces
// the stages sent to other subtasks.
func (r *reduction[T]) partialBytes() int64 { return r.call.Stats().Bytes - r.call.Stats().Results }
func (r *reduction[T]) resultBytes() int64  { return r.call.Stats().Results }

// program names the algorithms and executors of the calls.
func (r *reduction[T]) program() string {
	s := r.call.Stats()
	if s.Calls == 0 {
		return ""
	}
	how := r.latest.String()
	switch {
	case r.config.algorithm != nil || r.latest.Executor != "shared memory":
	case s.Whole == 0:
		how += ", in parts"
	case s.Whole == s.Calls:
		how += ", by one subtask for all"
	default:
		how += ", in parts or by one subtask for all"
	}
	switch s.Sparse {
	case 0:
		return how
	case s.Calls:
		return how + ", without zeros"
	}
	return how + ", without zeros where that is smaller"
}
