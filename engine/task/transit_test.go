package task

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// TestTransit requires that the limits of bytes in transit together never exceed the budget,
// however many exchanges, subtasks and workers there are, and that no limit is below minShare.
func TestTransit(t *testing.T) {
	const budget = 1 << 28
	for _, exchanges := range []int{0, 1, 3, 20} {
		text := "n0 = source rows=10\n"
		for i := range exchanges {
			text += fmt.Sprintf("n%d = map n%d/%s\n", i+1, i, []string{"hash", "rebalance"}[i%2])
		}
		g := parseGraph(64, strings.TrimSuffix(text, "\n"))
		for _, p := range []int{1, 2, 7} {
			compiled, err := plan.Compile(g.Graph, p)
			require.NoError(t, err)
			require.Len(t, compiled.Edges, exchanges)
			for _, workers := range []int{1, 2, 7} {
				for i, credits := range []int{0, 1, 30} {
					x := newTransit(compiled, i, budget, p, workers, credits)
					edges, subtasks := int64(exchanges+i), int64(p)
					under := int64(max(credits, 2*(workers-1))) // messages under way from other workers, per inbox
					if credits == 0 {
						under = int64(max(transport.DefaultCredits, 2*(workers-1)))
					}
					held := x.keepBytes*edges*subtasks + // rows held back
						budget/8 + x.messageBytes + // rows sent, at least one message
						2*x.messageBytes*edges*subtasks + // messages being sent or written to disk
						3*x.joinBytes*int64(len(compiled.Vertices))*subtasks
					if workers > 1 {
						held += under * x.messageBytes * edges * subtasks
					}
					require.LessOrEqual(t, held, int64(budget), "%d exchanges, parallelism %d, %d workers", exchanges, p, workers)
					tiny := newTransit(compiled, 0, 1, p, workers, credits)
					require.EqualValues(t, minShare, min(tiny.keepBytes, tiny.messageBytes, tiny.joinBytes))
					require.LessOrEqual(t, x.keepBytes, int64(keepBytes))
				}
			}
		}
	}
}

// keeper is a network that keeps the rows of all messages that it is given to send.
type keeper struct{ rows []arrow.Record }

func (k *keeper) Listen(transport.Address, transport.Receiver) error { return nil }
func (k *keeper) Dial(transport.Address) (transport.Sender, error)   { return k, nil }
func (k *keeper) Close() error                                       { return nil }
func (k *keeper) Send(_ context.Context, m transport.Message) error {
	m.Rows.Retain()
	k.rows = append(k.rows, m.Rows)
	m.Release()
	return nil
}

// TestMessagesHoldWhatTheyCount requires that a message cut from a long batch does not keep the
// whole batch in memory, as the inbox that stores the message counts only the message's rows.
func TestMessagesHoldWhatTheyCount(t *testing.T) {
	mem := memory.NewGoAllocator()
	numbers := array.NewInt64Builder(mem)
	for i := range 1 << 14 {
		numbers.Append(int64(i))
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil)
	long := array.NewRecord(schema, []arrow.Array{numbers.NewArray()}, 1<<14)
	const message = 4 << 10
	for name, made := range map[string]func(*keeper) output{
		"forward": func(k *keeper) output {
			return &directOutput{senders: newSenders(0, k, transport.NewGate(1<<30)), ranges: []sharding.Range{{Lo: 0, Hi: 1}}, hosts: []int{0}, mem: mem, messageBytes: message}
		},
		"one shard": func(k *keeper) output {
			return &splitOutput{
				senders: newSenders(0, k, transport.NewGate(1<<30)), ranges: []sharding.Range{{Lo: 0, Hi: 1}}, hosts: []int{0}, sent: make([]sent, 1), shards: 1,
				place: rebalancePlacement(1), mem: mem, batchRows: 1 << 20, messageBytes: message, keepBytes: 1,
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var k keeper
			require.NoError(t, made(&k).emit(t.Context(), 0, long))
			require.Greater(t, len(k.rows), 16)
			at := int64(0)
			for _, rows := range k.rows {
				held := 0
				for _, b := range rows.Column(0).Data().Buffers() {
					if b != nil {
						held += b.Len()
					}
				}
				require.LessOrEqual(t, held, 2*message)
				for _, x := range rows.Column(0).(*array.Int64).Int64Values() {
					require.Equal(t, at, x)
					at++
				}
			}
			require.EqualValues(t, 1<<14, at)
		})
	}
}

// TestCheckedRowsAreSentAsCopies requires that, with CheckRows, a change of rows by one vertex is
// not visible in another vertex, which would otherwise be reported as having changed them.
func TestCheckedRowsAreSentAsCopies(t *testing.T) {
	mem := memory.NewGoAllocator()
	numbers := array.NewInt64Builder(mem)
	numbers.AppendValues([]int64{1, 2}, nil)
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil)
	rows := array.NewRecord(schema, []arrow.Array{numbers.NewArray()}, 2)
	var k keeper
	to := &chainOutput{output: &directOutput{senders: newSenders(0, &k, transport.NewGate(1<<20)), ranges: []sharding.Range{{Lo: 0, Hi: 1}}, hosts: []int{0}, mem: mem, messageBytes: 1 << 10}}
	s := &subtask{run: &run{env: Env{CheckRows: true, Allocator: mem}}, context: t.Context()}
	require.NoError(t, s.send(to, 0, rows))
	rows.Column(0).(*array.Int64).Int64Values()[0] = 9
	require.Equal(t, []int64{1, 2}, k.rows[0].Column(0).(*array.Int64).Int64Values())
}
