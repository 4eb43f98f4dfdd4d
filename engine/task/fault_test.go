package task

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// faulty is a network that changes messages on their way to the receivers.
type faulty struct {
	transport.Network
	receiver func(transport.Receiver) transport.Receiver
}

func (f *faulty) Listen(a transport.Address, r transport.Receiver) error {
	return f.Network.Listen(a, f.receiver(r))
}

// receiverFunc is a function as a transport.Receiver.
type receiverFunc func(m transport.Message)

func (f receiverFunc) Receive(m transport.Message) { f(m) }

// TestArrivalOrderIsSeen requires that the comparison with the reference can fail: operators
// must see other rows if the network reverses the order of the source shards.
func TestArrivalOrderIsSeen(t *testing.T) {
	g := parseGraph(8, `
		a = source rows=400
		b = number a/hash
		c = tap b`)
	net := &faulty{transport.NewMem(0), func(r transport.Receiver) transport.Receiver {
		return receiverFunc(func(m transport.Message) {
			// The rows of source shard s are passed on as rows of shard 7-s.
			m.Shard = 7 - m.Shard
			r.Receive(m)
		})
	}}
	got := g.run(t, context.Background(), 3, Env{Network: net}, hooks{})
	require.NoError(t, got.err)
	require.NotEqual(t, g.reference(), got.taps)
}

// TestBrokenTransport requires that lost, repeated, changed and misdirected messages cause an
// error, and not wrong results.
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
				continue // in a side input, all rows go to all subtasks
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
					// The forward edge is corrupted too, so the failure of either edge may be
					// reported.
					text, want = "a = source rows=400\nb = source rows=20\nc = addside b a/side", "received"
				}
				got := parseGraph(8, text).run(t, context.Background(), 1, Env{Network: net, BatchRows: 16}, hooks{})
				require.ErrorContains(t, got.err, want)
			})
		}
	}
}

// TestSideInputsAreChecked requires that a side input reports missing, repeated and reordered
// messages, and missing or additional rows.
func TestSideInputsAreChecked(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	column := array.MakeArrayOfNull(mem, schema.Field(0).Type, 2)
	defer column.Release()
	two := array.NewRecord(schema, []arrow.Array{column}, 2)
	defer two.Release()
	rows := func(shard int, seq int64) transport.Message {
		return transport.Message{Shard: shard, Seq: seq, Rows: two}
	}
	end := func(shard int, seq, sent, sentRows int64) transport.Message {
		return transport.Message{Shard: shard, Seq: seq, Last: true, Sent: sent, SentRows: sentRows}
	}
	for name, c := range map[string]struct {
		messages []transport.Message
		says     string // "": no error
	}{
		"as sent":        {[]transport.Message{rows(1, 0), rows(0, 0), rows(0, 1), end(0, 2, 2, 4), end(1, 1, 1, 2)}, ""},
		"end with rows":  {[]transport.Message{end(1, 0, 0, 0), {Rows: two, Last: true, Sent: 1, SentRows: 2}}, ""},
		"no rows":        {[]transport.Message{end(0, 0, 0, 0), end(1, 0, 0, 0)}, ""},
		"changed places": {[]transport.Message{rows(0, 1), rows(0, 0), end(0, 2, 2, 4)}, "received message 1 of source shard 0 out of order"},
		"twice":          {[]transport.Message{rows(0, 0), rows(0, 0), end(0, 1, 1, 2)}, "received message 0 of source shard 0 out of order"},
		"lost":           {[]transport.Message{rows(0, 0), rows(0, 2)}, "received message 2 of source shard 0 out of order"},
		"end first":      {[]transport.Message{rows(0, 0), end(0, 2, 2, 4), rows(0, 1)}, "received message 2 of source shard 0 out of order"},
		"end twice":      {[]transport.Message{end(0, 0, 0, 0), end(0, 0, 0, 0)}, "received message 0 of source shard 0 out of order"},
		"behind the end": {[]transport.Message{rows(0, 0), end(0, 1, 1, 2), rows(0, 1)}, "received message 1 of source shard 0 out of order"},
		"no shard":       {[]transport.Message{rows(2, 0)}, "received message 0 of source shard 2 out of order"},
		"below shards":   {[]transport.Message{rows(-1, 0)}, "received message 0 of source shard -1 out of order"},
		"too few rows":   {[]transport.Message{rows(0, 0), end(0, 1, 1, 3)}, "received 2 rows in 1 messages of source shard 0, which sent 3 rows in 1"},
		"too many rows":  {[]transport.Message{rows(0, 0), end(0, 1, 1, 1)}, "received 2 rows in 1 messages of source shard 0, which sent 1 rows in 1"},
		"too few":        {[]transport.Message{rows(0, 0), end(0, 1, 2, 2)}, "received 2 rows in 1 messages of source shard 0, which sent 2 rows in 2"},
		"too many":       {[]transport.Message{rows(0, 0), end(0, 1, 0, 2)}, "received 2 rows in 1 messages of source shard 0, which sent 2 rows in 0"},
	} {
		t.Run(name, func(t *testing.T) {
			var got error
			s := newSideInput("source", 2, 1, &sideMemory{budget: NewBudget("", 1<<20, nil)}, func(err error) { got = cmp.Or(got, err) })
			defer s.leave()
			for _, m := range c.messages {
				if m.Rows != nil {
					m.Rows.Retain() // the receiver owns the rows that it is given
				}
				s.Receive(m)
			}
			if c.says == "" {
				require.NoError(t, got)
				<-s.done
				return
			}
			require.ErrorContains(t, got, c.says)
		})
	}
}

// TestEndsAreChecked requires that a source shard is settled when all messages and rows that it
// sent are stored, whether the message that ends it arrives before or after them. Another number
// of messages or rows must be an error, in whatever order they arrive.
func TestEndsAreChecked(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	column := array.MakeArrayOfNull(mem, schema.Field(0).Type, 2)
	defer column.Release()
	two := array.NewRecord(schema, []arrow.Array{column}, 2)
	defer two.Release()
	stored := func(seq int64) transport.Message { return transport.Message{Shard: 3, Seq: seq, Rows: two} }
	end := func(sent, sentRows int64) transport.Message {
		return transport.Message{Shard: 3, Last: true, Sent: sent, SentRows: sentRows}
	}
	for name, c := range map[string]struct {
		messages []transport.Message
		says     string // "": no error
	}{
		"as sent":              {[]transport.Message{stored(0), stored(1), end(2, 4)}, ""},
		"end before":           {[]transport.Message{end(2, 4), stored(0), stored(1)}, ""},
		"no rows":              {[]transport.Message{end(0, 0)}, ""},
		"too few rows":         {[]transport.Message{stored(0), stored(1), end(2, 5)}, "received 4 rows of source shard 3, which sent 5"},
		"too many rows":        {[]transport.Message{stored(0), stored(1), end(2, 3)}, "received 4 rows of source shard 3, which sent 3"},
		"too few, end before":  {[]transport.Message{end(2, 5), stored(0), stored(1)}, "received 4 rows of source shard 3, which sent 5"},
		"too many, end before": {[]transport.Message{end(2, 3), stored(0), stored(1)}, "received 4 rows of source shard 3, which sent 3"},
		"too many messages":    {[]transport.Message{stored(0), stored(1), end(1, 4)}, "received 2 messages of source shard 3, which sent 1"},
		"message behind":       {[]transport.Message{stored(0), end(1, 2), stored(1)}, "received message 1 of source shard 3 after its end"},
		"end twice":            {[]transport.Message{end(2, 4), end(2, 4)}, "received message 0 of source shard 3 after its end"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnds(sharding.Range{Lo: 3, Hi: 4}, false, nil)
			var got error
			for _, m := range c.messages {
				require.True(t, c.says != "" || e.firstUnsettled(0) == 3, "the source shard must not be settled before its last message has arrived")
				got = cmp.Or(got, e.count(&m))
			}
			if c.says != "" {
				require.ErrorContains(t, got, c.says)
				return
			}
			require.NoError(t, got)
			require.Equal(t, 4, e.firstUnsettled(0))
		})
	}
}

// TestPlacesAreChecked requires that an inbox accepts a message only if it places each of its
// rows in a shard of the subtask, and lists each shard once and in order. On a forward edge the
// shard must be the source shard.
func TestPlacesAreChecked(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	const rows = 4 // of source shard 3, for a subtask with the shards 2 to 4
	for name, c := range map[string]struct {
		aligned bool
		to      int
		parts   []transport.Part
		says    string // "": no error
	}{
		"one shard":             {to: 4},
		"parts":                 {parts: []transport.Part{{Shard: 2, End: 1}, {Shard: 4, End: rows}}},
		"forward":               {aligned: true, to: 3},
		"elsewhere, forward":    {aligned: true, to: 2, says: "received 4 rows for shards up to 2 from source shard 3"},
		"parts, forward":        {aligned: true, parts: []transport.Part{{Shard: 2, End: 1}, {Shard: 3, End: rows}}, says: "received 4 rows for shards up to 3 from source shard 3"},
		"shard below":           {to: 1, says: "want all 4 rows placed within"},
		"shard above":           {to: 5, says: "want all 4 rows placed within"},
		"first part below":      {parts: []transport.Part{{Shard: 1, End: 1}, {Shard: 4, End: rows}}, says: "want all 4 rows placed within"},
		"parts in other order":  {parts: []transport.Part{{Shard: 4, End: 1}, {Shard: 2, End: rows}}, says: "want all 4 rows placed within"},
		"a shard twice":         {parts: []transport.Part{{Shard: 4, End: 1}, {Shard: 4, End: rows}}, says: "want all 4 rows placed within"},
		"a part without rows":   {parts: []transport.Part{{Shard: 2, End: 1}, {Shard: 3, End: 1}, {Shard: 4, End: rows}}, says: "want all 4 rows placed within"},
		"a part that goes back": {parts: []transport.Part{{Shard: 2, End: 3}, {Shard: 3, End: 1}, {Shard: 4, End: rows}}, says: "want all 4 rows placed within"},
		"rows without a place":  {parts: []transport.Part{{Shard: 2, End: rows - 1}}, says: "received 3 rows for shards up to 2 from source shard 3, want all 4 rows placed within"},
		"places without a row":  {parts: []transport.Part{{Shard: 2, End: rows + 1}}, says: "received 5 rows for shards up to 2 from source shard 3, want all 4 rows placed within"},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInbox(sharding.Range{Lo: 2, Hi: 5}, newEnds(sharding.Range{Lo: 0, Hi: 8}, c.aligned, nil))
			in.budget, in.spill = NewBudget("", 1<<20, nil), &spillFile{}
			var got error
			in.fail = func(_ int, err error) { got = err }
			in.Receive(transport.Message{Shard: 3, Rows: makeRows(mem, make([]row, rows)), To: c.to, Parts: c.parts})
			if c.says == "" {
				require.NoError(t, got)
			} else {
				require.ErrorContains(t, got, c.says)
			}
			require.NoError(t, in.close())
		})
	}
}
