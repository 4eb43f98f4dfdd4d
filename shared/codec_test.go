package shared

import (
	"bytes"
	"encoding/hex"
	"math"
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type record struct {
	Name    string
	Weights []float64
	Counts  map[int]float32 `msgpack:"n"`
	Next    *record
	Any     any
	hidden  int
}

func TestCodecLayout(t *testing.T) {
	check := func(want string, data []byte, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Equal(t, want, hex.EncodeToString(data))
	}
	data, err := Float64s().Append([]byte{0xee}, []float64{1, -2})
	check("ee"+"000000000000f03f"+"00000000000000c0", data, err)
	data, err = Float32s().Append(nil, []float32{1, -2})
	check("0000803f"+"000000c0", data, err)
	data, err = Int64s().Append(nil, []int64{1, -2})
	check("0100000000000000"+"feffffffffffffff", data, err)
	data, err = Float64().Append(nil, -2)
	check("00000000000000c0", data, err)
	data, err = Int64().Append(nil, -2)
	check("feffffffffffffff", data, err)
	data, err = Int().Append(nil, -2)
	check("feffffffffffffff", data, err)
	data, err = Bool().Append(nil, true)
	check("01", data, err)
	data, err = String().Append(nil, "é")
	check("c3a9", data, err)
	// Map entries are sorted by their encoded keys, at every depth.
	data, err = Msgpack[map[string]map[int8]bool]().Append([]byte{0xee}, map[string]map[int8]bool{"b": {2: true, 1: false, -1: true}, "a": nil})
	check("ee"+"82"+"a161"+"c0"+"a162"+"83"+"d001c2"+"d002c3"+"d0ffc3", data, err)
}

func roundTrip[T any](t *rapid.T, c Codec[T], v T) {
	prefix := []byte("prefix")
	data, err := c.Append(prefix, v)
	require.NoError(t, err)
	require.Equal(t, "prefix", string(data[:6]))
	back, err := c.Decode(data[6:])
	require.NoError(t, err)
	again, err := c.Append(nil, back)
	require.NoError(t, err)
	require.Equal(t, data[6:], append([]byte{}, again...), "the decoded value must be encoded as the same bytes")
	require.Equal(t, reflect.ValueOf(&v).Elem().IsZero(), reflect.ValueOf(&back).Elem().IsZero())
}

func TestCodecsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nonEmpty := func(n int) int { return max(n, 1) }
		n := nonEmpty(rapid.IntRange(0, 9).Draw(t, "n"))
		roundTrip(t, Float64s(), rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 { return math.Float64frombits(rapid.Uint64().Draw(t, "bits")) }), n, n).Draw(t, "float64s"))
		roundTrip(t, Float32s(), rapid.SliceOfN(rapid.Float32(), n, n).Draw(t, "float32s"))
		roundTrip(t, Int64s(), rapid.SliceOfN(rapid.Int64(), n, n).Draw(t, "int64s"))
		roundTrip(t, Float64(), rapid.Float64().Draw(t, "float64"))
		roundTrip(t, Int64(), rapid.Int64().Draw(t, "int64"))
		roundTrip(t, Int(), rapid.Int().Draw(t, "int"))
		roundTrip(t, Bool(), rapid.Bool().Draw(t, "bool"))
		roundTrip(t, String(), rapid.String().Draw(t, "string"))
		counts := rapid.MapOf(rapid.Int(), rapid.Float32())
		v := record{Name: rapid.String().Draw(t, "name"), Weights: []float64{math.Inf(1)}, Counts: counts.Draw(t, "n"), Any: "x", hidden: 1}
		v.Next = &record{Counts: counts.Draw(t, "next n")}
		c := Msgpack[record]()
		roundTrip(t, c, v)
		data, err := c.Append(nil, v)
		require.NoError(t, err)
		back, err := c.Decode(data)
		require.NoError(t, err)
		v.hidden = 0
		require.Equal(t, v, back)
	})
	for _, c := range []Codec[[]float64]{Float64s(), Msgpack[[]float64]()} {
		data, err := c.Append(nil, nil)
		require.NoError(t, err)
		v, err := c.Decode(data)
		require.NoError(t, err)
		require.Nil(t, v)
	}
}

// TestMsgpackIsCanonical requires that equal maps are encoded as equal bytes, although Go
// iterates over them in random order.
func TestMsgpackIsCanonical(t *testing.T) {
	v := map[float64][]any{math.NaN(): {1}, math.Copysign(math.NaN(), -1): {2}}
	for i := range 100 {
		v[float64(i)] = []any{map[string]any{"a": i, "b": "x", "c": nil}}
	}
	v[math.NaN()] = []any{0}
	c := Msgpack[map[float64][]any]()
	want, err := c.Append(nil, v)
	require.NoError(t, err)
	for range 20 {
		got, err := c.Append(nil, v)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
	}
}

func TestMsgpackOfUnsupportedTypes(t *testing.T) {
	data, err := Msgpack[any]().Append([]byte("kept"), func() {})
	require.ErrorContains(t, err, "encode interface {}")
	require.Equal(t, "kept", string(data))
	_, err = Msgpack[chan int]().Append(nil, make(chan int))
	require.ErrorContains(t, err, "chan int")
	_, err = Msgpack[chan int]().Decode([]byte{1})
	require.Error(t, err)
	deep := any(nil)
	for range maxPackedDepth + 2 {
		deep = []any{deep}
	}
	_, err = Msgpack[any]().Append(nil, deep)
	require.ErrorContains(t, err, "nested more than")
}

func TestDecodersRefuse(t *testing.T) {
	fails := func(err error, says string) {
		t.Helper()
		require.ErrorContains(t, err, says)
	}
	_, err := Float64s().Decode(make([]byte, 9))
	fails(err, "9 bytes are no multiple of 8")
	_, err = Float32s().Decode(make([]byte, 5))
	fails(err, "no multiple of 4")
	_, err = Int64s().Decode(make([]byte, 7))
	fails(err, "no multiple of 8")
	_, err = Float64().Decode(nil)
	fails(err, "0 bytes, want 8")
	_, err = Int().Decode(make([]byte, 16))
	fails(err, "16 bytes, want 8")
	for _, src := range []string{"", "\x02", "\x00\x00"} {
		_, err = Bool().Decode([]byte(src))
		fails(err, "0 or 1")
	}
	_, err = String().Decode([]byte("a\xff"))
	fails(err, "not UTF-8")
	_, err = Msgpack[int]().Decode([]byte{1, 2})
	fails(err, "1 bytes left over")
	_, err = Msgpack[int]().Decode(nil)
	fails(err, "end within a value")
	_, err = Msgpack[int]().Decode([]byte{0xc1})
	fails(err, "begins no value")
	_, err = Msgpack[int]().Decode([]byte{0xa1, 'x'})
	fails(err, "decode int")
	_, err = Msgpack[any]().Decode(bytes.Repeat([]byte{0x91}, 1_000_000))
	fails(err, "nested more than")
}

// TestHostileLengthsAreNotBelieved requires that a decoder allocates little memory for a length
// field that exceeds the available bytes.
func TestHostileLengthsAreNotBelieved(t *testing.T) {
	tries := map[string]func([]byte) error{
		"floats": func(b []byte) error { _, err := Msgpack[[]float64]().Decode(b); return err },
		"nested": func(b []byte) error { _, err := Msgpack[[][][]record]().Decode(b); return err },
		"map":    func(b []byte) error { _, err := Msgpack[map[string]record]().Decode(b); return err },
		"text":   func(b []byte) error { _, err := Msgpack[string]().Decode(b); return err },
		"bytes":  func(b []byte) error { _, err := Msgpack[[]byte]().Decode(b); return err },
		"any":    func(b []byte) error { _, err := Msgpack[any]().Decode(b); return err },
	}
	for name, decode := range tries {
		for _, head := range []string{"\xdd\xff\xff\xff\xff", "\xdf\xff\xff\xff\xff", "\xdb\xff\xff\xff\xff", "\xc6\xff\xff\xff\xff", "\xc9\xff\xff\xff\xff\x01", "\xdc\xff\xff", "\xde\xff\xff"} {
			src := bytes.Repeat([]byte(head), 20)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := decode(src)
			runtime.ReadMemStats(&after)
			require.Error(t, err, name)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<18), "%s: % x", name, head)
		}
	}
}

// checkDecoder checks the contract of a decoder: if it accepts src, then the decoded value,
// encoded, decoded and encoded again, gives the same bytes both times.
func checkDecoder[T any](t *testing.T, c Codec[T], src []byte) {
	t.Helper()
	kept := bytes.Clone(src)
	v, err := c.Decode(src)
	require.Equal(t, kept, src, "Decode must not write to src")
	if err != nil {
		return
	}
	first, err := c.Append(nil, v)
	require.NoError(t, err)
	back, err := c.Decode(first)
	require.NoError(t, err)
	second, err := c.Append(nil, back)
	require.NoError(t, err)
	require.Equal(t, first, second)
}

func FuzzFixedWidthDecoders(f *testing.F) {
	for _, seed := range []string{"", "\x00", "\x01", "12345678", "1234567", "1234567812345678", "\xff\xff\xff\xff\xff\xff\xff\x7f"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		checkDecoder(t, Float64s(), src)
		checkDecoder(t, Float32s(), src)
		checkDecoder(t, Int64s(), src)
		checkDecoder(t, Float64(), src)
		checkDecoder(t, Int64(), src)
		checkDecoder(t, Int(), src)
		checkDecoder(t, Bool(), src)
		checkDecoder(t, String(), src)
	})
}

func FuzzMsgpackDecoder(f *testing.F) {
	data, err := Msgpack[record]().Append(nil, record{Name: "x", Weights: []float64{1}, Counts: map[int]float32{1: 2}, Next: &record{}, Any: map[string]any{"k": []any{1, "s", nil, true}}})
	require.NoError(f, err)
	f.Add(data)
	for _, seed := range []string{"", "\xc0", "\x93\x01\x02\x03", "\x81\xa1a\x01", "\xdd\xff\xff\xff\xff", "\xd6\xff\x00\x00\x00\x00", "\xc7\x0c\xff", "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01", "\x82\xa1a\x01\xa1a\x02"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		checkDecoder(t, Msgpack[record](), src)
		checkDecoder(t, Msgpack[any](), src)
		checkDecoder(t, Msgpack[map[float64][]int32](), src)
		checkDecoder(t, Msgpack[[][]string](), src)
		checkDecoder(t, Msgpack[*int64](), src)
	})
}
