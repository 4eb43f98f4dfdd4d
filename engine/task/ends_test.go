package task

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// TestSparseExchanges requires that a few rows in many shards arrive as in the reference. There
// must be at most one message per row and one per source shard, so that the number of messages
// does not grow with the pairs of shards or subtasks.
func TestSparseExchanges(t *testing.T) {
	for _, how := range []string{"rebalance", "hash", "custom"} {
		for _, size := range []struct{ shards, p int }{{1 << 10, 1}, {1 << 10, 3}, {1 << 10, 1 << 10}, {1 << 14, 2}} {
			t.Run(fmt.Sprintf("%s/S%d/p%d", how, size.shards, size.p), func(t *testing.T) {
				const rows = 100
				g := parseGraph(size.shards, fmt.Sprintf("a = source rows=%d\nb = number a/%s\nc = tap b", rows, how))
				var messages atomic.Int64
				net := &faulty{transport.NewMem(0), func(r transport.Receiver) transport.Receiver {
					return receiverFunc(func(m transport.Message) { messages.Add(1); r.Receive(m) })
				}}
				got := g.run(t, context.Background(), size.p, Env{Network: net}, hooks{})
				require.NoError(t, got.err)
				require.Equal(t, g.reference(), got.taps)
				require.LessOrEqual(t, messages.Load(), int64(size.shards+rows))
			})
		}
	}
}

// TestEndBeforeRows requires that inboxes give the same rows in whatever order the rows and the
// ends of source shards arrive. The message that ends a source shard may overtake rows on their
// way to another inbox. The shard is settled only when all rows that this message announces have
// arrived.
func TestEndBeforeRows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(t, 0)
		const sources = 5
		e := newEnds(sharding.Range{Lo: 0, Hi: sources}, false, func(err error) { rt.Fatal(err) })
		inboxes := make([]*inbox, 2) // of shards 0 and 1
		for i := range inboxes {
			inboxes[i] = newInbox(sharding.Range{Lo: i, Hi: i + 1}, e)
			inboxes[i].batchRows, inboxes[i].mem = 2, mem
			inboxes[i].fail = func(_ int, err error) { rt.Fatal(err) }
			inboxes[i].spill = &spillFile{}
		}
		// Messages from one source to one inbox keep their order. Everything else, including the
		// end of a source, is interleaved at random.
		var lines [][]func()
		want := make([][]row, 2)
		for source := range sources {
			sent := int64(0)
			for i, in := range inboxes {
				n := rapid.IntRange(0, 3).Draw(rt, "messages")
				var line []func()
				for seq := range n {
					r := row{int64(source), fmt.Sprint(seq)}
					want[i] = append(want[i], r)
					line = append(line, func() {
						in.Receive(transport.Message{Shard: source, Seq: int64(seq), Rows: makeRows(mem, []row{r}), To: i})
					})
				}
				lines = append(lines, line)
				sent += int64(n)
			}
			lines = append(lines, []func(){func() { e.Receive(transport.Message{Shard: source, Last: true, Sent: sent, SentRows: sent}) }})
		}
		got := make([]chan []row, 2)
		for i, in := range inboxes {
			got[i] = make(chan []row, 1)
			go func() {
				var rows []row
				defer func() { got[i] <- rows }()
				var waited time.Duration
				for {
					rec, err := in.next(context.Background(), i, &waited)
					if err != nil {
						if err != io.EOF {
							rows = append(rows, row{t: err.Error()})
						}
						return
					}
					rows = append(rows, readRows(rec)...)
					rec.Release()
				}
			}()
		}
		for {
			lines = slices.DeleteFunc(lines, func(l []func()) bool { return len(l) == 0 })
			if len(lines) == 0 {
				break
			}
			i := rapid.IntRange(0, len(lines)-1).Draw(rt, "line")
			lines[i][0]()
			lines[i] = lines[i][1:]
		}
		for i := range inboxes {
			require.Equal(rt, want[i], <-got[i])
			require.NoError(rt, inboxes[i].close())
		}
	})
}

// TestPieceQueue requires that the heap returns pieces in the order in which a sort puts them.
func TestPieceQueue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var q pieceQueue
		var all []*piece
		for i, source := range rapid.SliceOf(rapid.IntRange(0, 9)).Draw(rt, "sources") {
			p := &piece{source: source, number: int64(i)}
			q.push(p)
			all = append(all, p)
		}
		slices.SortFunc(all, func(a, b *piece) int {
			return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.number, b.number))
		})
		for _, p := range all {
			require.Same(rt, p, q.pop())
		}
		require.Empty(rt, q)
	})
}

// TestSortsAgree requires that both methods of sorting put rows in the same order.
func TestSortsAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const shards = 50
		o := &splitOutput{shards: shards, dst: rapid.SliceOfN(rapid.Int32Range(0, shards-1), 1, 200).Draw(rt, "dst")}
		o.order = make([]int32, len(o.dst))
		o.sortFew()
		few := slices.Clone(o.order)
		o.sortMany()
		require.Equal(rt, few, o.order)
	})
}
