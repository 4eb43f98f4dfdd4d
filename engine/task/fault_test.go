package task

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/transport"
)

// faulty is a network that changes messages on their way to the receivers.
type faulty struct {
	transport.Network
	receiver func(transport.Receiver) transport.Receiver
}

func (f *faulty) Listen(a transport.Address, r transport.Receiver) error {
	return f.Network.Listen(a, f.receiver(r))
}

// receiverFunc is a receiver made of a function.
type receiverFunc func(m transport.Message)

func (f receiverFunc) Receive(m transport.Message) { f(m) }

// TestArrivalOrderIsSeen shows that the comparison with the reference can fail:
// a network that numbers source shards as they might arrive, instead of as they
// are, changes what operators see.
func TestArrivalOrderIsSeen(t *testing.T) {
	g := parseGraph(8, `
		a = source rows=400
		b = number a/hash
		c = tap b`)
	net := &faulty{transport.NewMem(0), func(r transport.Receiver) transport.Receiver {
		return receiverFunc(func(m transport.Message) {
			// From the last to the first is an order in which they may well arrive.
			m.Shard = 7 - m.Shard
			r.Receive(m)
		})
	}}
	got := g.run(t, context.Background(), 3, Env{Network: net}, hooks{})
	require.NoError(t, got.err)
	require.NotEqual(t, g.reference(), got.taps)
}

// TestBrokenTransport: lost, repeated and misdirected messages are errors, not
// wrong results.
func TestBrokenTransport(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(m *transport.Message) (copies int)
		want  string
	}{
		"lost": {func(m *transport.Message) int {
			if m.Seq == 1 {
				return 0
			}
			return 1
		}, "want message 1: the transport lost or reordered messages"},
		"repeated": {func(m *transport.Message) int {
			if m.Rows == nil {
				return 1
			}
			return 2
		}, "want message 1: the transport"},
		"repeated end": {func(m *transport.Message) int {
			if m.Rows != nil {
				return 1
			}
			return 2
		}, "after its end"},
		"too few": {func(m *transport.Message) int { m.Sent--; return 1 }, ", which sent "},
		"a row too few": {func(m *transport.Message) int {
			if m.Rows != nil && m.Rows.NumRows() > 1 {
				last := int(m.Rows.NumRows()) - 1
				fewer := m.Rows.NewSlice(0, int64(last))
				m.Rows.Release()
				m.Rows = fewer
				if n := len(m.Parts); n > 0 {
					m.Parts = slices.Clone(m.Parts)
					if m.Parts[n-1].End--; n > 1 && m.Parts[n-2].End == last {
						m.Parts = m.Parts[:n-1]
					}
				}
			}
			return 1
		}, "rows were lost or added in transit"},
		"a row without a place": {func(m *transport.Message) int {
			if n := len(m.Parts); n > 1 {
				m.Parts = slices.Clone(m.Parts)
				if m.Parts[n-1].End--; m.Parts[n-2].End == m.Parts[n-1].End {
					m.Parts = m.Parts[:n-1]
				}
			}
			return 1
		}, "rows placed within"},
		"misdirected": {func(m *transport.Message) int {
			for i := range m.Parts {
				m.Parts[i].Shard += 8
			}
			if m.To < 0 {
				m.Shard += 8
			} else {
				m.To += 8
			}
			return 1
		}, "placed within"},
		"stranger": {func(m *transport.Message) int { m.Shard += 8; return 1 }, "received rows of source shard"},
	} {
		for _, side := range []bool{false, true} {
			if side && name == "a row without a place" {
				continue // there all rows go to everybody
			}
			t.Run(fmt.Sprintf("%s/side=%t", name, side), func(t *testing.T) {
				net := &faulty{transport.NewMem(0), func(r transport.Receiver) transport.Receiver {
					return receiverFunc(func(m transport.Message) {
						defer m.Release()
						for range test.spoil(&m) {
							if m.Rows != nil {
								m.Rows.Retain()
							}
							r.Receive(m)
						}
					})
				}}
				text, want := "a = source rows=400\nb = number a/hash", test.want
				if side {
					// Its forward edge is spoilt too, so either may be told of.
					text, want = "a = source rows=400\nb = source rows=20\nc = addside b a/side", "received"
				}
				got := parseGraph(8, text).run(t, context.Background(), 1, Env{Network: net, BatchRows: 16}, hooks{})
				require.ErrorContains(t, got.err, want)
			})
		}
	}
}

// TestSideInputsAreCounted: rows that are missing from messages that came are missed.
func TestSideInputsAreCounted(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil)
	for _, sentRows := range []int64{0, 1} {
		var got error
		s := newSideInput("source", 1, 1, &sideMemory{budget: NewBudget("", 1<<20, nil)}, func(err error) { got = err })
		s.Receive(transport.Message{Rows: batch.Empty(schema)})
		s.Receive(transport.Message{Seq: 1, Last: true, Sent: 1, SentRows: sentRows})
		if sentRows == 0 {
			require.NoError(t, got)
			continue
		}
		require.ErrorContains(t, got, "received 0 rows in 1 messages of source shard 0, which sent 1 rows in 1")
	}
}
