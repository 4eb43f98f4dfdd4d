package main

import (
	"context"
	"reflect"
	"unsafe"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/benchresult"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// timedCase is one rank's part in an operation that is run and timed repeatedly.
type timedCase interface {
	reset()                         // sets the inputs and clears the outputs
	call(ctx context.Context) error // runs the operation once
	wrong() int64                   // returns the number of wrong elements after reset and one call
	describe(l *benchresult.Line)   // sets the fields of l that describe the operation
	close()
}

// newTimedCase returns the case of job j with buffers of the given size in bytes. by is the
// name of the algorithm. For plain TCP, which has only ranks 0 and 1, by is the way to wait.
func (c *collectiveCommand) newTimedCase(ctx context.Context, comm *collective.Comm, j job, by string, bytes int) (timedCase, error) {
	if j.raw != "" {
		host, err := c.host()
		if err != nil {
			return nil, err
		}
		return newRawCase(ctx, comm, host, j.raw, by, bytes, bytes)
	}
	switch c.Type {
	case "float32":
		return newCase[float32](comm, j.collective, c, by, bytes), nil
	case "int64":
		return newCase[int64](comm, j.collective, c, by, bytes), nil
	case "int32":
		return newCase[int32](comm, j.collective, c, by, bytes), nil
	case "uint8":
		return newCase[uint8](comm, j.collective, c, by, bytes), nil
	default:
		return newCase[float64](comm, j.collective, c, by, bytes), nil
	}
}

// testCase is a collective with the buffers of one rank and the expected result.
type testCase[T collective.Number] struct {
	c    *collective.Comm
	k    program.Collective
	root int
	op   collective.Op[T]
	join func(a, b T) T
	opts []collective.Option

	n    int // number of elements of the larger buffer
	elem int
	in   []T
	out  []T
	req  collective.Reduction[T]

	folds [period]T // folds[k] is the expected result of a reduction at positions of class k; set by fold
}

func (x *testCase[T]) close() {}

func (x *testCase[T]) describe(l *benchresult.Line) {
	by := x.c.Describe()
	l.Algorithm, l.Executor = by.Algorithm, by.Executor
	l.Bytes, l.Count, l.Type = x.n*x.elem, x.n, reflect.TypeFor[T]().String()
	if x.k.Reduces() {
		l.Op = x.op.Name()
	}
}

// newCase returns the case of collective k. by is the name of the algorithm; if by is "", the
// group chooses the algorithm. The larger buffer of a rank has the given size in bytes, rounded
// down so that all ranks have equal shares.
func newCase[T collective.Number](c *collective.Comm, k program.Collective, cmd *collectiveCommand, by string, bytes int) *testCase[T] {
	var zero T
	x := &testCase[T]{c: c, k: k, root: cmd.Root, elem: int(unsafe.Sizeof(zero))}
	x.op, x.join = operatorOf[T](cmd.Op)
	if by != "" {
		x.opts = []collective.Option{collective.WithAlgorithm(by)}
	}
	p, r := c.Size(), c.Rank()
	x.n = shareable(k, bytes/x.elem, p)
	whole, own := sharding.Range{Hi: x.n}, sharding.Split(x.n, p, r)
	in, out, atRoot := whole, whole, sharding.Range{}
	if r == x.root {
		atRoot = whole
	}
	switch k {
	case program.Gather:
		in, out = own, atRoot
	case program.AllGather:
		in = own
	case program.Scatter:
		in, out = atRoot, own
	case program.ReduceScatter:
		out = own
	case program.Reduce:
		out = atRoot
	}
	x.in, x.out = make([]T, in.Len()), make([]T, out.Len())
	switch {
	case !cmd.InPlace || in.Empty() || out.Empty():
	case in.Len() > out.Len():
		x.out = x.in[own.Lo:own.Hi]
	case in.Len() < out.Len():
		x.in = x.out[own.Lo:own.Hi]
	default:
		x.out = x.in
	}
	x.req = collective.Reduction[T]{Name: "bench", Op: x.op, Whole: x.in, Out: x.out, Algorithm: by}
	return x
}

// shareable returns n rounded down to a multiple of the number p of ranks if collective k
// divides n elements equally among ranks, and otherwise n.
func shareable(k program.Collective, n, p int) int {
	switch k {
	case program.Gather, program.AllGather, program.Scatter, program.AllToAll:
		n -= n % p
	}
	return n
}

// operatorOf returns the operator with the given name, as an Op and as a function of two
// elements.
func operatorOf[T collective.Number](name string) (collective.Op[T], func(a, b T) T) {
	switch name {
	case "prod":
		return collective.Prod[T](), func(a, b T) T { return a * b }
	case "min":
		return collective.Min[T](), func(a, b T) T { return min(a, b) }
	case "max":
		return collective.Max[T](), func(a, b T) T { return max(a, b) }
	default:
		return collective.Sum[T](), func(a, b T) T { return a + b }
	}
}

// period is the number of classes of positions in a buffer. On each rank, the inputs at all
// positions of a class have the same value.
const period = 13

// class returns the class of position i. Neighbouring positions, and neighbouring blocks of 256
// positions, have different classes, so that an element at a wrong position is noticed.
func class(i int) int { return (i*7 + i>>8) % period }

// value returns the input of a rank at position i. It is a small whole number, so that sums and
// products of floating-point numbers are exact and do not depend on the order.
func (x *testCase[T]) value(rank, i int) T {
	v := (rank*31 + class(i)) % period
	if !x.k.Reduces() || x.op.Name() != "prod" {
		return T(v)
	}
	if v == 0 {
		return 2
	}
	return 1
}

// reset fills the input and clears the output. The root's output of a broadcast is also its
// input.
func (x *testCase[T]) reset() {
	r := x.c.Rank()
	clear(x.out)
	for i := range x.in {
		x.in[i] = x.value(r, i)
	}
	if x.k == program.Broadcast && r == x.root {
		for i := range x.out {
			x.out[i] = x.value(r, i)
		}
	}
}

// call runs the collective once.
func (x *testCase[T]) call(ctx context.Context) error {
	opts := append(x.opts[:len(x.opts):len(x.opts)], collective.WithContext(ctx))
	switch x.k {
	case program.AllReduce:
		x.req.Context = ctx
		return collective.AllReduce(x.c, &x.req)
	case program.Broadcast:
		return collective.Broadcast(x.c, x.root, x.out, opts...)
	case program.Reduce:
		return collective.Reduce(x.c, x.root, x.op, x.in, x.out, opts...)
	case program.Gather:
		return collective.Gather(x.c, x.root, x.in, x.out, opts...)
	case program.AllGather:
		return collective.AllGather(x.c, x.in, x.out, opts...)
	case program.Scatter:
		return collective.Scatter(x.c, x.root, x.in, x.out, opts...)
	case program.ReduceScatter:
		return collective.ReduceScatter(x.c, x.op, x.in, x.out, opts...)
	case program.AllToAll:
		return collective.AllToAll(x.c, x.in, x.out, opts...)
	case program.Scan:
		return collective.Scan(x.c, x.op, x.in, x.out, opts...)
	case program.Exscan:
		return collective.Exscan(x.c, x.op, x.in, x.out, opts...)
	default:
		return collective.Barrier(x.c, opts...)
	}
}

// wrong counts the elements of this rank's output that are wrong after reset and one call.
func (x *testCase[T]) wrong() int64 {
	if x.k.Reduces() {
		x.fold()
	}
	wrong := int64(0)
	for i, v := range x.out {
		if v != x.want(i) {
			wrong++
		}
	}
	return wrong
}

// fold computes the expected result of a reduction for each class of positions on this rank.
func (x *testCase[T]) fold() {
	ranks := x.c.Size()
	switch x.k {
	case program.Scan:
		ranks = x.c.Rank() + 1
	case program.Exscan:
		ranks = x.c.Rank()
	}
	for i := range period { // consecutive positions, which together have all classes
		v := x.op.Identity()
		for s := range ranks {
			if s == 0 {
				v = x.value(0, i)
				continue
			}
			v = x.join(v, x.value(s, i))
		}
		x.folds[class(i)] = v
	}
}

// want returns the expected element i of this rank's output. For reductions, call fold first.
func (x *testCase[T]) want(i int) T {
	p, r := x.c.Size(), x.c.Rank()
	switch x.k {
	case program.AllReduce, program.Reduce, program.Scan, program.Exscan:
		return x.folds[class(i)]
	case program.ReduceScatter:
		return x.folds[class(sharding.Split(x.n, p, r).Lo+i)]
	case program.Gather, program.AllGather:
		m := x.n / p
		return x.value(i/m, i%m)
	case program.Scatter:
		return x.value(x.root, r*(x.n/p)+i)
	case program.AllToAll:
		m := x.n / p
		return x.value(i/m, r*m+i%m)
	default:
		return x.value(x.root, i)
	}
}
