package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/transport"
)

// values maps every type of column to a function that draws a JSON value of the type.
var values = map[string]func(r *rand.Rand) string{
	"bool":              func(r *rand.Rand) string { return fmt.Sprint(r.IntN(2) == 0) },
	"int8":              func(r *rand.Rand) string { return fmt.Sprint(int8(r.Int())) },
	"int64":             func(r *rand.Rand) string { return fmt.Sprint(r.Int64()) },
	"uint32":            func(r *rand.Rand) string { return fmt.Sprint(r.Uint32()) },
	"float32":           func(r *rand.Rand) string { return fmt.Sprint(r.Float32()) },
	"float64":           func(r *rand.Rand) string { return fmt.Sprint(r.NormFloat64()) },
	"utf8":              text,
	"date32":            func(r *rand.Rand) string { return fmt.Sprintf(`"2024-01-%02d"`, 1+r.IntN(28)) },
	"timestamp[us]":     func(r *rand.Rand) string { return fmt.Sprintf(`"2024-01-01 00:00:%02d"`, r.IntN(60)) },
	"timestamp[s, UTC]": func(r *rand.Rand) string { return fmt.Sprintf(`"2024-01-01 00:00:%02d"`, r.IntN(60)) },
	"vector[3]":         func(r *rand.Rand) string { return vector(r, 3) },
	"vector32[1]":       func(r *rand.Rand) string { return vector(r, 1) },
	"vector":            func(r *rand.Rand) string { return vector(r, r.IntN(4)) },
	"sparse[9]": func(r *rand.Rand) string {
		return fmt.Sprintf(`{"indices": [%d, %d], "values": [1, %v]}`, r.IntN(4), 4+r.IntN(5), r.NormFloat64())
	},
	"sparse": func(r *rand.Rand) string { return `{"size": 7, "indices": [6], "values": [0.5]}` },
}

func text(r *rand.Rand) string { return fmt.Sprintf("%q", strings.Repeat("ä,", r.IntN(5))) }

func vector(r *rand.Rand, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(r.NormFloat64())
	}
	return "[" + strings.Join(list, ",") + "]"
}

var types = []string{"bool", "int8", "int64", "uint32", "float32", "float64", "utf8", "date32", "timestamp[us]",
	"timestamp[s, UTC]", "vector[3]", "vector32[1]", "vector", "sparse[9]"}

func drawSchema(t *rapid.T, tt testing.TB) *arrow.Schema {
	var columns []string
	for i := range rapid.IntRange(0, 5).Draw(t, "columns") {
		c := fmt.Sprintf("c%d %s", i, rapid.SampledFrom(types).Draw(t, "type"))
		if rapid.Bool().Draw(t, "nullable") {
			c += " null"
		}
		columns = append(columns, c)
	}
	return batchtest.Schema(tt, columns...)
}

func drawRows(t *rapid.T, tt testing.TB, mem memory.Allocator, schema *arrow.Schema) arrow.Record {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	var lines []string
	for range rapid.IntRange(0, 20).Draw(t, "rows") {
		var cells []string
		for _, f := range schema.Fields() {
			if f.Nullable && r.IntN(3) == 0 {
				continue
			}
			cells = append(cells, fmt.Sprintf("%q: %s", f.Name, values[typeOf(f)](r)))
		}
		lines = append(lines, "{"+strings.Join(cells, ",")+"}")
	}
	rec := batchtest.Record(tt, mem, schema, "["+strings.Join(lines, ",")+"]")
	if rapid.Bool().Draw(t, "slice") {
		defer rec.Release()
		return batchtest.WithOffset(tt, mem, rec)
	}
	return rec
}

func drawMessage(t *rapid.T, rows arrow.Record) transport.Message {
	number := func(name string) int { return int(rapid.Int32().Draw(t, name)) }
	m := transport.Message{
		Shard: number("shard"), Seq: rapid.Int64().Draw(t, "seq"), To: number("to"),
		Last: rapid.Bool().Draw(t, "last"), Sent: rapid.Int64().Draw(t, "sent"), Rows: rows,
	}
	end, shard := 0, -5
	for range rapid.IntRange(0, 6).Draw(t, "parts") {
		if rows != nil {
			end = rapid.IntRange(end, int(rows.NumRows())).Draw(t, "end")
		}
		shard += rapid.IntRange(1, 1000).Draw(t, "step")
		m.Parts = append(m.Parts, transport.Part{Shard: shard, End: end})
	}
	return m
}

// TestEverythingArrives sends random messages with rows of several schemas, and requires that
// all fields and rows of the received messages are equal.
func TestEverythingArrives(t *testing.T) {
	j := connected(t, 2, nil)
	k := newKeeper(1)
	j.listen(at(0, transport.Ends, 1), k)
	s := j.dial(0, at(0, transport.Ends, 1))
	rapid.Check(t, func(rt *rapid.T) {
		schemas := []*arrow.Schema{drawSchema(rt, t), drawSchema(rt, t)}
		for range rapid.IntRange(1, 5).Draw(rt, "messages") {
			var rows arrow.Record
			if rapid.IntRange(0, 4).Draw(rt, "with rows") > 0 {
				rows = drawRows(rt, t, j.mem, rapid.SampledFrom(schemas).Draw(rt, "schema"))
				defer rows.Release()
				rows.Retain()
			}
			m := drawMessage(rt, rows)
			require.NoError(t, s.Send(soon(t), m))
			got := k.next(t)
			if rows == nil {
				require.Nil(t, got.Rows)
			} else {
				require.True(t, rows.Schema().Equal(got.Rows.Schema()))
				batchtest.Equal(t, rows, got.Rows)
			}
			got.Release()
			m.Rows = nil
			require.Equal(t, m, got)
		}
	})
	j.close()
	j.noFailures()
}

// TestOrder requires that the messages of one sender arrive in order, each once, even if
// several senders and inboxes share a connection.
func TestOrder(t *testing.T) {
	const inboxes, senders, messages = 3, 3, 100
	for _, credits := range []int{0, 1, 2} {
		j := connected(t, 3, func(_ int, c *Config) { c.Credits, c.window = credits, 1000 })
		seven := j.rows(7)
		var all sync.WaitGroup
		var keepers []*keeper
		for i := range inboxes {
			k := newKeeper(2 * senders * messages)
			keepers = append(keepers, k)
			j.listen(at(1, i, 2), k)
			for s := range 2 * senders {
				sender := j.dial(s%2, at(1, i, 2))
				ctx := soon(t)
				all.Go(func() {
					for seq := range messages {
						m := transport.Message{Shard: s, Seq: int64(seq)}
						if seq%3 == 0 {
							m.Rows = seven.NewSlice(0, int64(seq%7))
						}
						if err := sender.Send(ctx, m); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		all.Wait()
		seven.Release()
		for _, k := range keepers {
			next := make(map[int]int64)
			for range 2 * senders * messages {
				m := k.next(t)
				require.Equal(t, next[m.Shard], m.Seq)
				next[m.Shard]++
				if m.Seq%3 == 0 {
					require.EqualValues(t, m.Seq%7, m.Rows.NumRows())
				}
				m.Release()
			}
		}
		j.close()
		j.noFailures()
	}
}

// TestCreditsBoundWhatIsUnderWay requires that, while a receiver takes no messages, only as
// many messages are sent to it as its inbox has granted credits, and that messages to other
// inboxes are still sent.
func TestCreditsBoundWhatIsUnderWay(t *testing.T) {
	for _, credits := range []int{1, 2, 4} { // few, so that credits are granted again soon after messages are taken
		j := connected(t, 2, func(_ int, c *Config) { c.Credits = credits })
		slow, fast := newKeeper(100), newKeeper(100)
		slow.turns = make(chan struct{})
		unblock := sync.OnceFunc(func() { close(slow.turns) })
		t.Cleanup(unblock)
		j.listen(at(0, 0, 1), slow)
		j.listen(at(0, 1, 1), fast)
		s, other := j.dial(0, at(0, 0, 1)), j.dial(0, at(0, 1, 1))
		for range credits {
			require.NoError(t, s.Send(soon(t), transport.Message{Rows: j.rows(1)}))
		}
		stop := errors.New("stop")
		for range 3 {
			ctx, cancel := context.WithCancelCause(context.Background())
			refused := make(chan error, 1)
			go func() { refused <- s.Send(ctx, transport.Message{Rows: j.rows(1)}) }()
			// Meanwhile, messages to another inbox of the same worker must be sent.
			for range 20 {
				require.NoError(t, other.Send(soon(t), transport.Message{Rows: j.rows(2)}))
				m := fast.next(t)
				m.Release()
			}
			select {
			case err := <-refused:
				require.FailNow(t, "sent without a credit", "%v", err)
			default:
			}
			cancel(stop)
			require.ErrorIs(t, <-refused, stop)
		}
		// Credits of messages that were taken must be granted again.
		for range 4 {
			for range credits {
				slow.turns <- struct{}{}
				m := slow.next(t)
				m.Release()
			}
			for range credits {
				require.NoError(t, s.Send(soon(t), transport.Message{Rows: j.rows(1)}))
			}
		}
		unblock()
		j.close()
		for len(slow.came) > 0 {
			m := <-slow.came
			m.Release()
		}
		j.noFailures()
	}
}

// TestEarlyMessages requires that senders may call Send before the addresses of workers are
// known, and before inboxes have receivers.
func TestEarlyMessages(t *testing.T) {
	j := newJob(t, 2, nil)
	s := j.dial(0, at(5, 1, 1))
	sent := make(chan error, 3)
	go func() {
		for i := range 3 {
			sent <- s.Send(soon(t), transport.Message{Seq: int64(i)})
		}
	}()
	j.connect()
	// A message to another inbox is sent first, so that the connection exists.
	k := newKeeper(9)
	j.listen(at(5, 2, 1), k)
	require.NoError(t, j.dial(0, at(5, 2, 1)).Send(soon(t), transport.Message{}))
	k.next(t)
	require.Empty(t, sent)
	j.listen(at(5, 1, 1), k.sibling())
	for i := range 3 {
		require.NoError(t, <-sent)
		require.EqualValues(t, i, k.next(t).Seq)
	}
	j.close()
	j.noFailures()
}

// TestLocalAddresses requires that messages within a worker are passed by reference, and that
// invalid addresses are refused.
func TestLocalAddresses(t *testing.T) {
	j := connected(t, 2, nil)
	k := newKeeper(2)
	j.listen(at(0, 0, 1), k)
	here, there := j.dial(1, at(0, 0, 1)), j.dial(0, at(0, 0, 1))
	rows := j.rows(3)
	require.NoError(t, here.Send(soon(t), transport.Message{Rows: rows}))
	got := k.next(t)
	require.True(t, rows == got.Rows)
	got.Release()
	require.NoError(t, there.Send(soon(t), transport.Message{Seq: 4}))
	require.EqualValues(t, 4, k.next(t).Seq)

	require.ErrorContains(t, j.nets[1].Listen(at(0, 0, 1), k), "it has a receiver already")
	require.EqualError(t, j.nets[1].Listen(at(0, 0, 0), k), "listen on edge 0, inbox 0 of worker 0: this is worker 1")
	_, err := j.nets[1].Dial(at(9, 9, 1))
	require.ErrorContains(t, err, "nobody listens there")
	_, err = j.nets[1].Dial(at(0, 0, 2))
	require.EqualError(t, err, "dial edge 0, inbox 0 of worker 2: there is no worker 2 among 2")
}

// TestWhatCannotBeSent requires that Send returns an error for a message that cannot be sent,
// and that the sender can then send other messages.
func TestWhatCannotBeSent(t *testing.T) {
	j := connected(t, 2, func(_ int, c *Config) { c.maxMessage, c.Credits = 4000, 1 })
	k := newKeeper(4)
	j.listen(at(2, 0, 1), k)
	s := j.dial(0, at(2, 0, 1))
	err := s.Send(soon(t), transport.Message{Shard: 6, Seq: 1, Rows: j.rows(1000)})
	require.ErrorContains(t, err, "send message 1 of shard 6 to edge 2, inbox 0 of worker 1: 1000 rows of ")
	require.ErrorContains(t, err, " bytes exceed the 4000 that a message can hold: use smaller batches")
	// The rows are smaller than the limit, but the encoded message exceeds it.
	require.ErrorContains(t, s.Send(soon(t), transport.Message{Rows: j.rows(240)}), "240 rows of ")
	parts := []transport.Part{{Shard: 3, End: 2}}
	require.ErrorContains(t, s.Send(soon(t), transport.Message{Parts: parts}), "part 0 ends at row 2, where 0 to 0 are possible")
	parts = []transport.Part{{Shard: 3}, {Shard: 3}}
	require.ErrorContains(t, s.Send(soon(t), transport.Message{Parts: parts}), "part 1 is of shard 3, after one of shard 3")
	require.ErrorContains(t, s.Send(soon(t), transport.Message{Shard: 1 << 40}), "does not fit in 32 bits")
	for i := range 3 {
		require.NoError(t, s.Send(soon(t), transport.Message{Seq: int64(i), Rows: j.rows(10)}))
		m := k.next(t)
		require.EqualValues(t, i, m.Seq)
		m.Release()
	}
	j.close()
	j.noFailures()
}

// TestAllToAll requires that all rows arrive if each of 16 workers sends to all inboxes of all
// workers, with few credits.
func TestAllToAll(t *testing.T) {
	const workers, inboxes, messages = 16, 2, 10
	j := newJob(t, workers, func(_ int, c *Config) { c.Credits = 2 })
	three := j.rows(3)
	defer three.Release()
	var senders sync.WaitGroup
	type count struct {
		sync.WaitGroup
		mu   sync.Mutex
		rows int64
	}
	var got count
	got.Add(workers * workers * inboxes * messages)
	for w := range workers {
		for i := range inboxes {
			j.listen(at(0, i, w), receive(func(m transport.Message) {
				got.mu.Lock()
				got.rows += m.Rows.NumRows()
				got.mu.Unlock()
				m.Release()
				got.Done()
			}))
		}
	}
	j.connect()
	ctx := soon(t)
	for from := range workers {
		senders.Go(func() {
			for to := range workers {
				for i := range inboxes {
					s := j.dial(from, at(0, i, to))
					senders.Go(func() {
						for seq := range messages {
							three.Retain()
							if err := s.Send(ctx, transport.Message{Shard: from, Seq: int64(seq), Rows: three}); err != nil {
								t.Error(err)
								got.Done()
							}
						}
					})
				}
			}
		})
	}
	senders.Wait()
	got.Wait()
	require.EqualValues(t, workers*workers*inboxes*messages*3, got.rows)
	j.close()
	j.noFailures()
}

// receive is a function that implements transport.Receiver.
type receive func(transport.Message)

func (f receive) Receive(m transport.Message) { f(m) }

func typeOf(f arrow.Field) string { return batch.TypeName(f.Type) }
