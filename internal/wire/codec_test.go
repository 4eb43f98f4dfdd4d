package wire

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/grpc/mem"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// hostile has data that is not a message, or in which an encoded length exceeds the remaining
// bytes. why is a part of the error.
var hostile = []struct{ name, data, why string }{
	{"nothing", "", "ends early"},
	{"array of 4 billion", "\xdd\xff\xff\xff\xff", "ends early"},
	{"array of 65535", "\xdc\xff\xff\xc0", "ends early"},
	{"map of 4 billion", "\xdf\xff\xff\xff\xff", "ends early"},
	{"map of 65535", "\x81\xa1x\xde\xff\xff", "ends early"},
	{"bytes of 4 GB", "\xc6\xff\xff\xff\xff", "ends early"},
	{"field of 4 GB", "\x81\xa3job\xc6\xff\xff\xff\xff", "ends early"},
	{"text of 4 GB", "\x81\xa3job\xdb\xff\xff\xff\xff", "ends early"},
	{"text of 2 GB", "\x81\xa3job\xdb\x7f\xff\xff\xff", "ends early"},
	{"length cut off", "\x81\xa3job\xdb\x7f\xff", "ends early"},
	{"extension of 4 GB", "\x81\xa3job\xc9\xff\xff\xff\xff\x01", "begins no value"},
	{"extension of our own", "\x81\xa3job\xd6\x05\x01\x02\x03\x04", "extension of type 5"},
	{"time of 200 bytes", "\x81\xa3job\xc7\xc8\xff" + strings.Repeat("x", 200), "is no time"},
	{"time cut off", "\x81\xa3job\xd7\xff\x01\x02", "ends early"},
	{"no code", "\xc1", "0xc1 begins no value"},
	{"two messages", "\x80\x80", "bytes follow"},
	{"deep arrays", strings.Repeat("\x91", 60_000) + "\xc0", "nests deeper"},
	{"deep unknown field", "\x81\xa1x" + strings.Repeat("\x81\xa1x", 100) + "\xc0", "nests deeper"},
	{"array for a struct", "\x92\x01\x02", "array-encoded"},
	{"text for a struct", "\xa3job", "unexpected code"},
	{"number for a text", "\x81\xa3job\x05", "invalid code"},
	{"array for a text", "\x81\xa3job\x91\x05", "invalid code"},
}

func TestHostileBytesAreRefused(t *testing.T) {
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			taken := allocated(func() {
				require.ErrorContains(t, Unmarshal([]byte(h.data), new(SubmitReply)), h.why)
			})
			require.Less(t, taken, uint64(1<<20))
		})
	}
}

func TestManyValuesAreRefused(t *testing.T) {
	data := append([]byte("\x81\xa7running\xdd"), binary.BigEndian.AppendUint32(nil, 4<<20)...)
	data = append(data, bytes.Repeat([]byte{0xc0}, 4<<20)...)
	taken := allocated(func() {
		require.ErrorContains(t, Unmarshal(data, new(Heartbeat)), "more than 2097152 values")
	})
	require.Less(t, taken, uint64(1<<20))
}

// TestNilForATime requires that Unmarshal returns an error if the library panics.
func TestNilForATime(t *testing.T) {
	require.ErrorContains(t, Unmarshal([]byte("\x81\xa7started\xc0"), new(Overview)), "message Overview does not decode")
}

func TestLimitsOfSizes(t *testing.T) {
	for _, m := range messages() {
		require.GreaterOrEqual(t, limit(m), MaxRequest)
		require.LessOrEqual(t, limit(m), MaxMessage)
		large := make([]byte, limit(m)+1)
		require.ErrorContains(t, Unmarshal(large, m), "larger than the limit", typeName(m))
		require.ErrorContains(t, codec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(large[:5]), mem.SliceBuffer(large[5:]), make(mem.SliceBuffer, sumBytes)}, m), "larger than the limit")
	}
	_, err := Marshal(&Chunk{Data: make([]byte, MaxChunk)})
	require.ErrorContains(t, err, "a message Chunk of")
	_, err = Marshal(&Chunk{Data: make([]byte, ChunkBytes)})
	require.NoError(t, err)
}

func TestWhatAWorkerSaysFitsIntoMessages(t *testing.T) {
	said := FromWorker{Collected: &Collected{Node: 1 << 60, Shard: 1 << 60, Rows: make([]byte, MaxFrame-64)}}
	_, err := Marshal(&said)
	require.NoError(t, err)
	_, err = Marshal(&Delivery{Collected: said.Collected})
	require.NoError(t, err)
	_, err = Marshal(&Event{Number: 1, Time: time.Unix(1, 1), Collected: said.Collected})
	require.NoError(t, err)
	_, err = Marshal(&FromTaskManager{Worker: &WorkerEvent{
		WorkerRef: WorkerRef{Job: JobID(strings.Repeat("x", 1000))}, Finished: &Finished{Outcome: said.Collected.Rows},
	}})
	require.NoError(t, err)
}

// TestDamagedMessages requires that a message cannot be decoded if any bit of it is flipped or
// if it is truncated at any byte.
func TestDamagedMessages(t *testing.T) {
	sent := &Event{Number: 3, Time: time.Unix(1, 1), Collected: &Collected{Node: 1, Shard: 2, Rows: []byte("rows")}}
	data, err := codec{}.Marshal(sent)
	require.NoError(t, err)
	whole := data.Materialize()
	back := new(Event)
	require.NoError(t, codec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(whole)}, back))
	require.Equal(t, sent.Collected, back.Collected)
	for bit := range 8 * len(whole) {
		damaged := bytes.Clone(whole)
		damaged[bit/8] ^= 1 << (bit % 8)
		require.ErrorIs(t, codec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(damaged)}, new(Event)), checksum.ErrDamaged)
	}
	for n := range whole {
		err := codec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(whole[:n])}, new(Event))
		require.ErrorIs(t, err, checksum.ErrDamaged)
		require.ErrorContains(t, err, "a message Event of")
	}
}

func TestUnmarshalKeepsNothingOfItsInput(t *testing.T) {
	data, err := Marshal(&Chunk{Hash: "hash", Data: []byte("data")})
	require.NoError(t, err)
	var c Chunk
	require.NoError(t, Unmarshal(data, &c))
	clear(data)
	require.Equal(t, Chunk{Hash: "hash", Data: []byte("data")}, c)
}

func TestWhatDoesNotEncode(t *testing.T) {
	_, err := Marshal(&struct{ C chan int }{})
	require.ErrorContains(t, err, "does not encode")
	_, err = codec{}.Marshal(&struct{ C chan int }{})
	require.ErrorContains(t, err, "does not encode")
	require.Equal(t, "nil", typeName(nil))
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// FuzzExamine compares the result of examine with the result of the library's function that
// skips a value.
func FuzzExamine(f *testing.F) {
	for _, h := range hostile {
		f.Add([]byte(h.data))
	}
	for _, m := range messages() {
		data, err := Marshal(m)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte("\xcb\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\xd6\xff\x00\x00\x00\x01"))
	f.Add([]byte("\xc7\x0c\xff\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		err := examine(data)
		if err == errTooDeep || err == errTooMany || len(data) > 1<<16 {
			return
		}
		rest := bytes.NewReader(data)
		skipped := msgpack.NewDecoder(rest).Skip()
		if err == nil {
			require.NoError(t, skipped)
			require.Zero(t, rest.Len())
			return
		}
		if skipped == nil && rest.Len() == 0 { // the data is one value, but its type does not occur in messages
			require.Regexp(t, "extension|begins no value", err.Error())
		}
	})
}

// FuzzUnmarshal decodes data as each type of message. If data can be decoded, the message must
// be equal after it has been encoded and decoded again.
func FuzzUnmarshal(f *testing.F) {
	for i, m := range messages() {
		data, err := Marshal(m)
		require.NoError(f, err)
		f.Add(i, data)
	}
	for i, h := range hostile {
		f.Add(i, []byte(h.data))
	}
	f.Add(33, []byte("\x83\xa7started\xd6\xff\x00\x00\x00\x01\xa4jobs\x81\xa1a\x01\xa9platforms\x91\xc0"))
	f.Fuzz(func(t *testing.T, which int, data []byte) {
		all := messages()
		m := all[int(uint(which)%uint(len(all)))]
		if Unmarshal(data, m) != nil {
			return
		}
		again, err := Marshal(m)
		require.NoError(t, err)
		other := reflect.New(reflect.TypeOf(m).Elem()).Interface()
		require.NoError(t, Unmarshal(again, other))
		thrice, err := Marshal(other)
		require.NoError(t, err)
		if !strings.Contains(string(again), "\xa4jobs") { // jobs is a map, which is encoded in random order
			require.Equal(t, again, thrice)
		}
	})
}

func BenchmarkHeartbeat(b *testing.B) {
	m := &FromTaskManager{Heartbeat: &Heartbeat{Number: 1000}}
	for w := range 10 {
		m.Heartbeat.Running = append(m.Heartbeat.Running, WorkerRef{Job: "20260102-150405-iris-kmeans-7f3a", Attempt: 1, Worker: w})
	}
	b.ReportAllocs()
	for b.Loop() {
		data, err := Marshal(m)
		if err != nil {
			b.Fatal(err)
		}
		if err := Unmarshal(data, new(FromTaskManager)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChunk(b *testing.B) {
	m := &Chunk{Data: make([]byte, ChunkBytes)}
	b.SetBytes(ChunkBytes)
	b.ReportAllocs()
	for b.Loop() {
		data, err := Marshal(m)
		if err != nil {
			b.Fatal(err)
		}
		if err := Unmarshal(data, new(Chunk)); err != nil {
			b.Fatal(err)
		}
	}
}
