package collective

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	"github.com/superstep-ml/superstep/shared"
	"golang.org/x/sync/errgroup"
)

// Buffers is the memory that a program works on: what the rank contributes, and
// where the result goes, of equal length. They may be the same slice.
type Buffers[T Number] struct{ In, Out []T }

// Execute runs one rank's program as it stands over an endpoint, one goroutine for
// each half of each lane. All ranks must run their parts of the same program on
// buffers of the same length. It returns when this rank's part is done: Out is
// complete and nothing else refers to the buffers. The first error, of an
// endpoint or of ctx, ends all lanes; Out then holds nothing of use.
//
// The result is bit for bit that of every other executor of a program with the
// same expression tree.
func Execute[T Number](ctx context.Context, prog *Program, ep Endpoint, op Op[T], buf Buffers[T]) error {
	if err := prog.Validate(); err != nil {
		return err
	}
	if len(buf.In) != len(buf.Out) {
		return fmt.Errorf("%s: rank %d brings %d elements but has room for %d", prog.Collective, prog.Rank, len(buf.In), len(buf.Out))
	}
	if op.kind == opNone || op.kind == opUser && op.fold == nil {
		return fmt.Errorf("%s: rank %d has no operator", prog.Collective, prog.Rank)
	}
	r := newRun(prog, ep, op, buf)
	group, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, r.wake)
	defer stop()
	for i := range prog.Lanes {
		for _, sends := range [2]bool{false, true} {
			if r.hasPart(i, sends) {
				group.Go(func() error { return r.half(ctx, i, sends) })
			}
		}
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("%s %s: rank %d: %w", prog.Collective, prog.Algorithm, prog.Rank, err)
	}
	return nil
}

// run is a program in execution.
type run[T Number] struct {
	prog    *Program
	ep      Endpoint
	op      Op[T]
	buf     Buffers[T]
	scratch [][]T
	table   reducers[T]

	mu   sync.Mutex
	cond sync.Cond
	left [][]int // by lane and step: parts left to do
}

func newRun[T Number](prog *Program, ep Endpoint, op Op[T], buf Buffers[T]) *run[T] {
	r := &run[T]{prog: prog, ep: ep, op: op, buf: buf, table: reducersOf[T]()}
	r.cond.L = &r.mu
	for _, chunks := range prog.Scratch {
		e := r.elements(chunks)
		r.scratch = append(r.scratch, make([]T, e.Len()))
	}
	r.left = make([][]int, len(prog.Lanes))
	for i := range prog.Lanes {
		steps := prog.Lanes[i].Steps
		r.left[i] = make([]int, len(steps))
		for j := range steps {
			if steps[j].Op.Sends() {
				r.left[i][j]++
			}
			if steps[j].Op != DoSend {
				r.left[i][j]++
			}
		}
	}
	return r
}

func (r *run[T]) hasPart(lane int, sends bool) bool {
	for j := range r.prog.Lanes[lane].Steps {
		if op := r.prog.Lanes[lane].Steps[j].Op; sends && op.Sends() || !sends && op != DoSend {
			return true
		}
	}
	return false
}

// elements is the index range of chunks of the data.
func (r *run[T]) elements(chunks shared.Range) shared.Range {
	n := len(r.buf.Out)
	return shared.Range{
		Lo: shared.Split(n, r.prog.Chunks, chunks.Lo).Lo,
		Hi: shared.Split(n, r.prog.Chunks, chunks.Hi-1).Hi,
	}
}

// memory is what a reference refers to.
func (r *run[T]) memory(ref Ref) []T {
	e := r.elements(ref.Chunks)
	switch ref.Buffer {
	case BufferIn:
		return r.buf.In[e.Lo:e.Hi]
	case BufferOut:
		return r.buf.Out[e.Lo:e.Hi]
	default:
		base := r.elements(r.prog.Scratch[ref.Slot]).Lo
		return r.scratch[ref.Slot][e.Lo-base : e.Hi-base]
	}
}

// half does one half of a lane.
func (r *run[T]) half(ctx context.Context, lane int, sends bool) error {
	w := worker[T]{folder: folder[T]{table: r.table}}
	l := &r.prog.Lanes[lane]
	for j := range l.Steps {
		in := &l.Steps[j]
		if sends && !in.Op.Sends() || !sends && in.Op == DoSend {
			continue
		}
		if err := r.await(ctx, lane, j, sends); err != nil {
			return err
		}
		var err error
		if sends {
			err = r.send(ctx, l, in)
		} else {
			err = r.receive(ctx, l, in, &w)
		}
		if err != nil {
			return fmt.Errorf("lane %d step %d (%s): %w", lane, j, in, err)
		}
		r.mu.Lock()
		r.left[lane][j]--
		r.mu.Unlock()
		r.cond.Broadcast()
	}
	return nil
}

// await blocks until a part may start.
func (r *run[T]) await(ctx context.Context, lane, step int, sends bool) error {
	in := &r.prog.Lanes[lane].Steps[step]
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		open := 0
		for _, d := range in.After {
			open += r.left[d.Lane][d.Step]
		}
		if sends && in.Op != DoSend { // fused: receive first
			open += r.left[lane][step] - 1
		}
		if open == 0 {
			return nil
		}
		r.cond.Wait()
	}
}

// wake makes the halves that wait look at the context.
func (r *run[T]) wake() {
	r.mu.Lock() // whoever looked before is in Wait by now
	defer r.mu.Unlock()
	r.cond.Broadcast()
}

func (r *run[T]) send(ctx context.Context, l *Lane, in *Instruction) error {
	src := in.Dst
	if in.Op == DoSend {
		src = in.Src[0]
	}
	return r.ep.Send(ctx, l.SendPeer, l.Channel, bytesOf(r.memory(src)))
}

// worker is what a receive half needs for itself.
type worker[T Number] struct {
	folder folder[T]
	landed []T // what was received, before it is reduced
}

// foldPair is the plan of leaf 0 ∘ leaf 1.
var foldPair = &foldPlan{leaves: 2, steps: []foldOp{{dst: toResult, a: 0, b: 1}}}

func (r *run[T]) receive(ctx context.Context, l *Lane, in *Instruction, w *worker[T]) error {
	dst := r.memory(in.Dst)
	switch in.Op {
	case DoRecv, DoRecvCopySend:
		return r.ep.Recv(ctx, l.RecvPeer, l.Channel, bytesOf(dst))
	case DoRecvReduce, DoRecvReduceSend:
		if len(w.landed) < len(dst) {
			w.landed = make([]T, len(dst))
		}
		landed := w.landed[:len(dst)]
		if err := r.ep.Recv(ctx, l.RecvPeer, l.Channel, bytesOf(landed)); err != nil {
			return err
		}
		pair := [][]T{r.memory(in.Src[0]), landed}
		if in.RecvLeft {
			pair[0], pair[1] = pair[1], pair[0]
		}
		w.folder.fold(foldPair, &r.op, pair, [][]T{dst}, 0, len(dst), nil)
	case DoCopy:
		copy(dst, r.memory(in.Src[0]))
	case DoReduce:
		plan, err := compileFold(len(in.Src), in.Fold)
		if err != nil {
			return err
		}
		leaves := make([][]T, len(in.Src))
		for k := range in.Src {
			leaves[k] = r.memory(in.Src[k])
		}
		w.folder.fold(plan, &r.op, leaves, [][]T{dst}, 0, len(dst), nil)
	}
	return nil
}

// bytesOf views elements as the bytes that they are in memory.
func bytesOf[T Number](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}
