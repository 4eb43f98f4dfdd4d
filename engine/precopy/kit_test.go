package precopy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/peerlink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rowsOf returns the rows of a shard and a data port, which depend on the arguments only.
func rowsOf(mem memory.Allocator, queue string, port, shard, n int) arrow.Record {
	draw := rand.New(rand.NewPCG(uint64(len(queue)*1000+port), uint64(shard)))
	numbers, texts := array.NewFloat64Builder(mem), array.NewStringBuilder(mem)
	defer numbers.Release()
	defer texts.Release()
	for i := range n {
		numbers.Append(draw.NormFloat64())
		if i%7 == 3 {
			texts.AppendNull()
		} else {
			texts.Append(fmt.Sprintf("%s %d %d", queue, shard, draw.IntN(1000)))
		}
	}
	columns := []arrow.Array{numbers.NewArray(), texts.NewArray()}
	defer columns[0].Release()
	defer columns[1].Release()
	schema := arrow.NewSchema([]arrow.Field{{Name: "number", Type: arrow.PrimitiveTypes.Float64}, {Name: "text", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	return array.NewRecord(schema, columns, int64(n))
}

// place is a shard of a queue.
type place struct {
	queue string
	shard int
}

// store is a Rows that has made-up rows, in pieces, of two data ports.
type store struct {
	mem   memory.Allocator
	sizes map[place]int // number of rows of the shards that can be given

	offer func(queue string, shard int, sizes []task.PortSize) []task.PortSize // changes an offer; may be nil
	give  func(queue string, port, shard, piece int) error                     // is called before each piece; may be nil

	mu    sync.Mutex
	room  int64
	taken map[place]map[int]columnar.Batch
}

const pieceRows = 100

func (s *store) Offer(queue string, shard int) (sizes []task.PortSize) {
	n, there := s.sizes[place{queue, shard}]
	for port := 0; port < 2 && there; port++ {
		rows := rowsOf(s.mem, queue, port, shard, n)
		sizes = append(sizes, task.PortSize{Port: port, Rows: int64(n), Bytes: batch.Size(rows)})
		rows.Release()
	}
	if s.offer != nil {
		return s.offer(queue, shard, sizes)
	}
	return sizes
}

func (s *store) Give(queue string, port, shard int, give func(rows columnar.Batch) error) error {
	rows := rowsOf(s.mem, queue, port, shard, s.sizes[place{queue, shard}])
	defer rows.Release()
	piece := 0
	for part := range batch.Rechunk(rows, pieceRows) {
		var err error
		if s.give != nil {
			err = s.give(queue, port, shard, piece)
		}
		if err == nil {
			err = give(arrowrows.Batch(part))
		}
		part.Release()
		if err != nil {
			return err
		}
		piece++
	}
	if piece == 0 {
		return give(arrowrows.Batch(rows))
	}
	return nil
}

func (s *store) HasAhead(queue string, shard int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken[place{queue, shard}] != nil
}

func (s *store) RoomAhead(bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes > s.room {
		return false
	}
	s.room -= bytes
	return true
}

func (s *store) LeaveAhead(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room += bytes
}

func (s *store) AddAhead(queue string, shard int, ports map[int]columnar.Batch, reserved int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room += reserved
	at := place{queue, shard}
	if s.taken[at] != nil {
		return errors.New("twice")
	}
	s.taken[at] = ports
	for _, rows := range ports {
		s.room -= batch.Size(arrowrows.Record(rows))
	}
	return nil
}

func (s *store) DropAhead(wanted func(queue string, shard int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range s.taken {
		if !wanted(at.queue, at.shard) {
			s.drop(at)
		}
	}
}

func (s *store) drop(at place) {
	for _, rows := range s.taken[at] {
		s.room += batch.Size(arrowrows.Record(rows))
		rows.Release()
	}
	delete(s.taken, at)
}

const roomOfStore = 1 << 30

// group has processes with a Node each.
type group struct {
	t         testing.TB
	mem       *memory.CheckedAllocator
	stores    []*store
	nodes     []*Node
	addresses []string
}

// newGroup makes n processes, of which each has 4 shards of queue "q".
func newGroup(t testing.TB, n int, change func(worker int, c *Config)) *group {
	g := &group{t: t, mem: memory.NewCheckedAllocator(memory.NewGoAllocator())}
	t.Cleanup(func() {
		for i, node := range g.nodes {
			node.Close()
			for at := range g.stores[i].taken {
				g.stores[i].drop(at)
			}
			require.EqualValues(t, roomOfStore, g.stores[i].room, "bytes that were reserved are given up")
		}
		g.mem.AssertSize(t, 0)
	})
	for w := range n {
		s := &store{mem: g.mem, sizes: make(map[place]int), room: roomOfStore, taken: make(map[place]map[int]columnar.Batch)}
		for i := range 4 {
			s.sizes[place{"q", 4*w + i}] = []int{250, 0, 1, 100}[i]
		}
		port, err := peerlink.Listen(peerlink.Config{Job: "test", Secret: []byte("known to all that are of the test")})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, port.Close()) })
		c := Config{Port: port, Worker: w, Attempt: 3, Rows: s, Allocator: g.mem}
		if change != nil {
			change(w, &c)
		}
		node, err := New(c)
		require.NoError(t, err)
		g.stores, g.nodes, g.addresses = append(g.stores, s), append(g.nodes, node), append(g.addresses, port.Address())
	}
	return g
}

func (g *group) process(w int) Process { return Process{w, g.addresses[w]} }

// order returns an order for a process to take the shards of others.
func (g *group) order(to int, from ...int) Order {
	o := Order{To: g.process(to), Within: time.Minute}
	for _, w := range from {
		o.Takes = append(o.Takes, Take{"q", g.process(w), []int{4 * w, 4*w + 1, 4*w + 2, 4*w + 3}})
	}
	return o
}

// requireRows requires that a process has taken shards with their rows, and no others.
func (g *group) requireRows(to int, shards ...int) {
	s := g.stores[to]
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Len(g.t, s.taken, len(shards))
	for _, shard := range shards {
		for port := range 2 {
			n := g.stores[shard/4].sizes[place{"q", shard}]
			want := rowsOf(g.mem, "q", port, shard, n)
			require.NotNil(g.t, s.taken[place{"q", shard}], "shard %d", shard)
			got := s.taken[place{"q", shard}][port]
			require.Empty(g.t, batch.Diff(want, arrowrows.Record(got)), "shard %d, port %d", shard, port)
			want.Release()
		}
	}
}
