package execute

import (
	"bytes"
	"encoding/binary"
	"math"
	"sync"
	"testing"
	"unsafe"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/overdue"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// view returns bytes as elements. The executor may place elements at any address that is
// aligned for the type; checkptr in builds with the race detector checks this.
func view[T any](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(x)))
}

// sum adds float64s.
type sum struct{}

func (sum) Fold(dst, left, right []byte) {
	d, l, r := view[float64](dst), view[float64](left), view[float64](right)
	for i := range d {
		d[i] = l[i] + r[i]
	}
}

// count adds uint64s. The result does not depend on the order of additions.
type count struct{}

func (count) Fold(dst, left, right []byte) {
	d, l, r := view[uint64](dst), view[uint64](left), view[uint64](right)
	for i := range d {
		d[i] = l[i] + r[i]
	}
}

// matrix is a 2×2 matrix of integers modulo 2^64: products are exact, and do not
// commute.
type matrix [4]uint64

type product struct{}

func (product) Fold(dst, left, right []byte) {
	d, l, r := view[matrix](dst), view[matrix](left), view[matrix](right)
	for i := range d {
		a, b := l[i], r[i]
		d[i] = matrix{
			a[0]*b[0] + a[1]*b[2], a[0]*b[1] + a[1]*b[3],
			a[2]*b[0] + a[3]*b[2], a[2]*b[1] + a[3]*b[3],
		}
	}
}

// kind is an operator with its element type. serves reports whether the results of the operator
// with algorithm a among p ranks must equal the results of the reference.
type kind struct {
	name    string
	elem    int
	reducer Reducer
	hostile bool // elements are float64s of magnitudes from 1e-8 to 1e16
	serves  func(a *algorithm.Algorithm, p int) bool
}

var (
	floats = kind{"sums of float64", 8, sum{}, true, func(a *algorithm.Algorithm, p int) bool {
		return a.Canonical != nil && a.Canonical(p)
	}}
	integers = kind{"sums of integers", 8, count{}, false, func(*algorithm.Algorithm, int) bool { return true }}
	matrices = kind{"products of matrices", 32, product{}, false, func(a *algorithm.Algorithm, p int) bool {
		return a.RankOrder != nil && a.RankOrder(p)
	}}
)

// fill fills b with the elements of the given source, beginning with element e of the source.
func (k kind) fill(b []byte, source, e int) {
	for i := 0; i < len(b); i += 8 {
		x := mix(uint64(source)<<40 + uint64(e*k.elem+i))
		if k.hostile {
			magnitude := math.Pow(10, float64(x%25)-8)
			x = math.Float64bits(math.Copysign(magnitude*(1+float64(x>>20)/(1<<44)), float64(int64(x<<7))))
		}
		binary.NativeEndian.PutUint64(b[i:], x)
	}
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// task is one operation of all ranks. It computes the expected results.
type task struct {
	progs   []*program.Program
	kind    kind
	layouts []program.Layout // layouts[r] is the layout of rank r
	inPlace bool
	absent  [][]bool // absent[r][k]: node k of rank r is absent

	brought map[[2]int][]byte // (rank, node) -> contribution
	folds   map[[3]int][]byte // (first rank, end of ranks, chunk) -> fold
}

// in returns the contribution of a rank for a node of its forest, or nil if it is absent.
func (t *task) in(rank, node int) []byte {
	if t.brought == nil {
		t.brought, t.folds = map[[2]int][]byte{}, map[[3]int][]byte{}
	}
	p := t.progs[rank]
	if t.absent != nil && t.absent[rank][node] {
		return nil
	}
	at := [2]int{rank, node}
	if b, made := t.brought[at]; made {
		return b
	}
	off := t.layouts[rank].In
	b := make([]byte, t.layouts[rank].Size(program.In, p.In)*t.kind.elem)
	t.brought[at] = b
	if p.In.Empty() {
		return b
	}
	source := rank
	if p.Nodes != nil {
		source = 1000 + p.Nodes[node].Range().Lo
	}
	t.kind.fill(b, source, off[p.In.Lo])
	return b
}

// chunk returns a chunk of a rank's contribution.
func (t *task) chunk(rank, node, c int) []byte {
	b := t.in(rank, node)
	if b == nil {
		return nil
	}
	off, lo := t.layouts[rank].In, t.progs[rank].In.Lo
	return b[(off[c]-off[lo])*t.kind.elem : (off[c+1]-off[lo])*t.kind.elem]
}

// want returns the expected chunk c of a rank's output, or nil if it is absent.
func (t *task) want(rank, c int) []byte {
	p := t.progs[rank]
	switch p.Collective {
	case program.Broadcast, program.Scatter:
		return t.chunk(p.Root, 0, c)
	case program.Gather, program.AllGather:
		for s, other := range t.progs {
			if other.In.Contains(c) {
				return t.chunk(s, 0, c)
			}
		}
	case program.AllToAll:
		return t.chunk(c, 0, rank)
	case program.Scan:
		return t.fold(0, rank+1, c)
	case program.Exscan:
		return t.fold(0, rank, c)
	}
	return t.fold(0, len(t.progs), c)
}

// fold returns the fold of chunk c of the ranks [lo, hi) in the canonical tree.
func (t *task) fold(lo, hi, c int) []byte {
	at := [3]int{lo, hi, c}
	b, folded := t.folds[at]
	if !folded {
		b = t.folded(lo, hi, c)
		t.folds[at] = b
	}
	return b
}

func (t *task) folded(lo, hi, c int) []byte {
	merge := func(a, b []byte) []byte {
		switch {
		case a == nil:
			return b
		case b == nil:
			return a
		}
		x := make([]byte, len(a))
		t.kind.reducer.Fold(x, a, b)
		return x
	}
	if t.progs[0].Nodes != nil {
		var nodes []sharding.Node
		var values [][]byte
		for r := lo; r < hi; r++ {
			for k, n := range t.progs[r].Nodes {
				nodes = append(nodes, n)
				values = append(values, t.chunk(r, k, c))
			}
		}
		steps, err := sharding.FoldSchedule(nodes, nil)
		if err != nil {
			panic(err)
		}
		for _, s := range steps {
			values[s.Left] = merge(values[s.Left], values[s.Right])
		}
		return values[0]
	}
	var values [][]byte
	for r := lo; r < hi; r++ {
		values = append(values, t.chunk(r, 0, c))
	}
	return sharding.FoldRanks(values, merge)
}

// memory has the input and the output of a rank.
type memory struct {
	in  [][]byte
	out []byte
}

// memories returns the memory of all ranks, with their contributions.
func (t *task) memories() []memory {
	ms := make([]memory, len(t.progs))
	for r, p := range t.progs {
		l, elem := t.layouts[r], t.kind.elem
		m := &ms[r]
		all := make([]byte, l.Out[p.Chunks]*elem) // in place: input and output are the same memory
		for k := range p.Partials() {
			in := t.in(r, k)
			if !t.inPlace || k > 0 {
				in = bytes.Clone(in)
			} else if in != nil {
				at := all[l.Out[p.In.Lo]*elem:][:len(in)]
				copy(at, in)
				in = at
			}
			m.in = append(m.in, in)
		}
		m.out = make([]byte, l.Size(program.Out, p.Out)*elem)
		if t.inPlace {
			m.out = all[l.Out[p.Out.Lo]*elem:][:len(m.out)]
		}
	}
	return ms
}

// network returns connected nodes for p ranks.
type network func(t testing.TB, p int) []mesh.Node

func inMemory(_ testing.TB, p int) []mesh.Node {
	local := mesh.NewLocal(p)
	nodes := make([]mesh.Node, p)
	for r := range nodes {
		nodes[r] = local.Node(r)
	}
	return nodes
}

// team has a Runner for every rank.
type team struct {
	runners []*Runner
	seq     uint64
	what    *mesh.Operation
}

func newTeam(t testing.TB, nodes []mesh.Node, progs []*program.Program, opt Options) *team {
	m := &team{runners: make([]*Runner, len(nodes)), what: &mesh.Operation{Hash: progs[0].GroupHash(), Text: progs[0].Algorithm}}
	errs := everyone(len(nodes), func(r int) (err error) {
		m.runners[r], err = New(t.Context(), progs[r], nodes[r], opt)
		return err
	})
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *team) close() {
	for _, r := range m.runners {
		if r != nil {
			r.Close()
		}
	}
}

// everyone calls do for all ranks at once, and returns their errors.
func everyone(p int, do func(rank int) error) []error {
	defer overdue.Watch("all ranks of a program")()
	errs := make([]error, p)
	var wg sync.WaitGroup
	for r := range p {
		wg.Go(func() { errs[r] = do(r) })
	}
	wg.Wait()
	return errs
}

// run runs a task once on all ranks. It returns their memory and what Run returned.
func (m *team) run(t *task) (ms []memory, present []bool, errs []error) {
	ms, present = t.memories(), make([]bool, len(m.runners))
	m.seq++
	errs = everyone(len(m.runners), func(r int) (err error) {
		present[r], err = m.runners[r].Run(&Operation{
			Seq: m.seq, What: m.what, Elem: t.kind.elem, Layout: t.layouts[r],
			In: ms[r].in, Out: ms[r].out, Reducer: t.kind.reducer,
		})
		return err
	})
	return ms, present, errs
}
