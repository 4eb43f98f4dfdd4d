package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// allocated returns about how many bytes f allocates. It does not count all small objects.
func allocated(f func()) uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	f()
	metrics.Read(sample)
	return sample[0].Value.Uint64() - before
}

// thousand returns 1000 rows of a column x of the given type. Depending on the type, row i has
// the number 3i+1 as a number, as a text, as a list of one number, or as the boolean that says
// whether the number is odd.
func thousand(t testing.TB, kind string) arrow.Record {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), batchtest.Schema(t, "x "+kind))
	defer b.Release()
	for i := range 1000 {
		v := i*3 + 1
		switch f := b.Field(0).(type) {
		case *array.Float64Builder:
			f.Append(float64(v % 27))
		case *array.Int64Builder:
			f.Append(int64(v))
		case *array.Int32Builder:
			f.Append(int32(v))
		case *array.BooleanBuilder:
			f.Append(v%2 == 1)
		case *array.StringBuilder:
			f.Append(fmt.Sprint("v", v%27))
		case *array.ListBuilder:
			f.Append(true)
			f.ValueBuilder().(*array.Float64Builder).Append(float64(v))
		}
	}
	return b.NewRecord()
}

// form describes the pages of a file.
type form struct {
	encoding   pq.Encoding
	dictionary bool
	version2   bool
}

// bare returns a file of the rows that Arrow's library has written without this package,
// without compression or statistics.
func bare(t testing.TB, rec arrow.Record, f form) []byte {
	var out bytes.Buffer
	version := pq.DataPageV1
	if f.version2 {
		version = pq.DataPageV2
	}
	w, err := pqarrow.NewFileWriter(rec.Schema(), &out, pq.NewWriterProperties(pq.WithStats(false), pq.WithEncoding(f.encoding), pq.WithDictionaryDefault(f.dictionary), pq.WithDataPageVersion(version)), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// changed returns a copy of data in which the last occurrence of the bytes in from is replaced
// by the bytes in to.
func changed(t testing.TB, data []byte, from, to string) []byte {
	at := bytes.LastIndex(data, []byte(from))
	require.Positive(t, at, "the file must contain % x, or the test changes nothing", from)
	require.Len(t, to, len(from))
	data = bytes.Clone(data)
	copy(data[at:], to)
	return data
}

// requireDamaged requires that reading a file fails with the same message at any parallelism,
// that the message names the column, and that reading allocates little memory.
func requireDamaged(t testing.TB, data []byte, name, want string) {
	path := filepath.Join(t.TempDir(), "x.parquet")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	for _, p := range []int{1, 2, 8} {
		var err error
		bytes := allocated(func() {
			_, err = run(t, memory.NewGoAllocator(), func(b *engine.Builder) {
				engine.Collect(Read(b, path, ReadOptions{}), "rows")
			}, engine.Parallelism(p))
		})
		require.ErrorContains(t, err, "x.parquet: column \"x\": row group 0, page ", name)
		require.ErrorContains(t, err, want, name)
		require.Less(t, bytes, uint64(64<<20), name)
	}
}

// These are bytes of a header of a page with 1000 values and bytes of a run of 1000 levels.
// Each is also defined with one bit changed.
const (
	levelsOf1000 = "\xd0\x0f\x01"
	levelsOf488  = "\xd0\x07\x01"
	levelsOf3    = "\xd0\x0f\x03"
	headOf1000   = "\x80\x01\x04\xe8\x07"
	headOf500    = "\x80\x01\x04\xf4\x03"
	headOfMore   = "\x80\x01\x04\xe8\x87"
)

// TestPagesThatLie requires errors for pages whose headers and levels do not fit their data.
func TestPagesThatLie(t *testing.T) {
	e := pq.Encodings
	for _, version2 := range []bool{false, true} {
		for _, c := range []struct {
			kind       string
			encoding   pq.Encoding
			dictionary bool
			deltas     int // number of sequences in DELTA_BINARY_PACKED in a page
		}{
			{"int32", e.DeltaBinaryPacked, false, 1}, {"int64", e.DeltaBinaryPacked, false, 1},
			{"utf8", e.DeltaLengthByteArray, false, 1}, {"utf8", e.DeltaByteArray, false, 2},
			{"int32", e.Plain, false, 0}, {"int64", e.Plain, false, 0}, {"float64", e.Plain, false, 0}, {"utf8", e.Plain, false, 0}, {"bool", e.Plain, false, 0}, {"bool", e.RLE, false, 0},
			{"int32", e.Plain, true, 0}, {"int64", e.Plain, true, 0}, {"float64", e.Plain, true, 0}, {"utf8", e.Plain, true, 0},
		} {
			f := form{c.encoding, c.dictionary, version2}
			for _, null := range []string{"", " null"} {
				rec := thousand(t, c.kind+null)
				data := bare(t, rec, f)
				name := fmt.Sprint(c, version2, null)
				got, err := cursorOf(t, data).read(1000)
				require.NoError(t, err, name)
				require.Equal(t, batchtest.Rows(rec), batchtest.Rows(got), name)
				if null != "" && !(c.kind == "bool" && c.encoding == e.RLE) {
					at := bytes.Index(data, []byte(levelsOf1000))
					require.Positive(t, at, name)
					for to, want := range map[string]string{levelsOf488: "a page that says it has 1000 values has fewer levels", levelsOf3: "a page has a level of 3, where 1 is the highest"} {
						damaged := bytes.Clone(data)
						copy(damaged[at:], to)
						requireDamaged(t, damaged, name, want)
					}
				}
				if c.deltas == 0 {
					continue
				}
				requireDamaged(t, changed(t, data, headOf1000, headOf500), name, "a page with 1000 values that are not null says it has 500 deltas")
				requireDamaged(t, changed(t, data, headOf1000, headOfMore), name, "deltas")
				first := bytes.Clone(data)
				copy(first[bytes.Index(first, []byte(headOf1000)):], headOf500)
				requireDamaged(t, first, name, "says it has 500 deltas")
			}
		}
	}
}

// cutChunk returns a file of one column in whose footer the size of the column is only two
// thirds of its bytes.
func cutChunk(t testing.TB, data []byte) []byte {
	r, err := file.NewParquetReader(bytes.NewReader(data))
	require.NoError(t, err)
	chunk, err := r.MetaData().RowGroup(0).ColumnChunk(0)
	require.NoError(t, err)
	size := binary.AppendVarint(nil, chunk.TotalCompressedSize())
	short := binary.AppendVarint(nil, chunk.TotalCompressedSize()*2/3)
	for len(short) < len(size) {
		short[len(short)-1] |= 0x80
		short = append(short, 0)
	}
	return changed(t, data, "\x16"+string(size)+"\x26", "\x16"+string(short)+"\x26")
}

// TestCutChunks requires errors for files in which a column ends within a page, according to
// the footer.
func TestCutChunks(t *testing.T) {
	e := pq.Encodings
	for _, version2 := range []bool{false, true} {
		for kind, forms := range map[string][]form{
			"int64":       {{e.Plain, false, version2}, {e.DeltaBinaryPacked, false, version2}, {e.Plain, true, version2}},
			"int64 null":  {{e.Plain, false, version2}, {e.DeltaBinaryPacked, false, version2}, {e.Plain, true, version2}},
			"float64":     {{e.Plain, false, version2}},
			"utf8 null":   {{e.Plain, false, version2}, {e.DeltaLengthByteArray, false, version2}, {e.DeltaByteArray, false, version2}},
			"bool null":   {{e.Plain, false, version2}},
			"vector null": {{e.Plain, false, version2}},
		} {
			for _, f := range forms {
				requireDamaged(t, cutChunk(t, bare(t, thousand(t, kind), f)), fmt.Sprint(kind, f), "a page says it has")
			}
		}
	}
}

// TestHugeHeads requires that a page or dictionary whose header claims two billion bytes or
// values is refused before memory is allocated for it.
func TestHugeHeads(t *testing.T) {
	const huge = "\xfe\xff\xff\xff\x0f"
	for _, version2 := range []bool{false, true} {
		for _, dictionary := range []bool{false, true} {
			for _, packed := range []pq.WriterProperty{pq.WithCompression(codecs[Uncompressed]), pq.WithCompression(codecs[Snappy]), pq.WithCompression(codecs[Zstd]), pq.WithCompression(codecs[Gzip])} {
				version := pq.DataPageV1
				if version2 {
					version = pq.DataPageV2
				}
				var out bytes.Buffer
				rec := thousand(t, "int64")
				w, err := pqarrow.NewFileWriter(rec.Schema(), &out, pq.NewWriterProperties(pq.WithStats(false), pq.WithDictionaryDefault(dictionary), pq.WithDataPageVersion(version), packed), pqarrow.DefaultWriterProps())
				require.NoError(t, err)
				require.NoError(t, w.Write(rec))
				require.NoError(t, w.Close())
				// The file begins with 4 bytes of magic. The header of the first page follows,
				// with its kind and its two sizes.
				data := out.Bytes()
				sizes := data[6:]
				_, first := binary.Uvarint(sizes[1:])
				_, second := binary.Uvarint(sizes[2+first:])
				after := 6 + 2 + first + second
				_, count := binary.Uvarint(data[after+2:])
				for name, head := range map[string][]byte{
					"size":   bytes.Join([][]byte{data[:7], []byte(huge), data[7+first:]}, nil),
					"packed": bytes.Join([][]byte{data[:8+first], []byte(huge), data[8+first+second:]}, nil),
					"values": bytes.Join([][]byte{data[:after+2], []byte(huge), data[after+2+count:]}, nil),
				} {
					bytes := allocated(func() { err = readsOnce(head) })
					require.Error(t, err, "%s %t %t", name, version2, dictionary)
					require.Less(t, bytes, uint64(1<<20), "%s %t %t", name, version2, dictionary)
				}
			}
		}
	}
}

// TestWrongListOfEncodings requires that a page is read in the encoding of its header, whatever
// the list of encodings in the footer.
func TestWrongListOfEncodings(t *testing.T) {
	rec := thousand(t, "int64 null")
	data := bare(t, rec, form{encoding: pq.Encodings.DeltaBinaryPacked})
	r, err := file.NewParquetReader(bytes.NewReader(data))
	require.NoError(t, err)
	chunk, err := r.MetaData().RowGroup(0).ColumnChunk(0)
	require.NoError(t, err)
	list := []byte{0x19, byte(len(chunk.Encodings()))<<4 | 5}
	wrong := bytes.Clone(list)
	for _, e := range chunk.Encodings() {
		list, wrong = binary.AppendVarint(list, int64(e)), binary.AppendVarint(wrong, int64(pq.Encodings.Plain))
	}
	rows := cursorOf(t, changed(t, data, string(list), string(wrong)))
	var got []string
	for range 10 {
		part, err := rows.read(100)
		require.NoError(t, err)
		got = append(got, batchtest.Rows(part)...)
	}
	require.Equal(t, batchtest.Rows(rec), got)
}

// TestOneBitOfManyLengths changes one bit so that a page claims 8 billion texts. It requires an
// error, and that little memory is allocated.
func TestOneBitOfManyLengths(t *testing.T) {
	const rows = 100_003
	b := array.NewRecordBuilder(memory.NewGoAllocator(), batchtest.Schema(t, "x utf8 null"))
	defer b.Release()
	b.Field(0).(*array.StringBuilder).Append(strings.Repeat("a", 2000))
	for range rows - 1 {
		b.Field(0).(*array.StringBuilder).Append("")
	}
	data := bare(t, b.NewRecord(), form{encoding: pq.Encodings.DeltaLengthByteArray})
	head := string(binary.AppendUvarint([]byte{128, 1, 4}, rows))
	more := []byte(head)
	more[len(more)-1] |= 0x80
	requireDamaged(t, changed(t, data, head, string(more)), "lengths", "a page with 100003 values that are not null says it has 83")
}

// TestFlippedBits flips bits of the pages of files of each type, encoding and codec. Reading
// the files must not panic or take much memory, and must fail whenever pyarrow fails.
func TestFlippedBits(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.refused"))
	require.NoError(t, err)
	require.Len(t, files, 14)
	for _, path := range files {
		refused, err := os.ReadFile(path)
		require.NoError(t, err)
		name := strings.TrimSuffix(path, ".refused")
		data, err := os.ReadFile(name + ".parquet")
		require.NoError(t, err)
		require.Len(t, refused, len(data))
		r, err := file.NewParquetReader(bytes.NewReader(data))
		require.NoError(t, err)
		most := uint64(8 << 20)
		if strings.Contains(name, "brotli") {
			most = 40 << 20 // the window of brotli takes up to 16 MiB
		}
		for c := range r.MetaData().RowGroup(0).NumColumns() {
			chunk, err := r.MetaData().RowGroup(0).ColumnChunk(c)
			require.NoError(t, err)
			require.NoError(t, readsColumn(data, c))
			from := chunk.DataPageOffset()
			if chunk.HasDictionaryPage() {
				from = chunk.DictionaryPageOffset()
			}
			for bit := 8 * from; bit < 8*(from+chunk.TotalCompressedSize()); bit += flippedBits {
				where := fmt.Sprintf("%s, column %s, bit %d of byte %d", name, chunk.PathInSchema(), bit%8, bit/8)
				mask := byte(1 << (bit % 8))
				data[bit/8] ^= mask
				require.Less(t, allocated(func() { err = readsColumn(data, c) }), most, where)
				data[bit/8] ^= mask
				if refused[bit/8]&mask != 0 {
					assert.Error(t, err, where)
				}
				if err != nil {
					require.NotContains(t, err.Error(), "panic", where)
				}
			}
		}
	}
}

// TestNarrowNumbers requires that numbers with fewer bits than Parquet stores keep their
// values.
func TestNarrowNumbers(t *testing.T) {
	schema := batchtest.Schema(t, "i8 int8", "u8 uint8 null", "i16 int16", "i16n int16 null", "u16 uint16", "u16n uint16 null", "u32 uint32 null", "i32 int32", "f32 float32 null")
	rec := batchtest.Record(t, memory.NewGoAllocator(), schema, `[
		{"i8": -128, "u8": 255, "i16": -32768, "i16n": 32767, "u16": 65535, "u16n": 256, "u32": 4294967295, "i32": -2147483648, "f32": 0.5},
		{"i8": 127, "i16": 300, "u16": 300, "i32": 70000},
		{"i8": 1, "u8": 2, "i16": -3, "i16n": -4, "u16": 5, "u16n": 65534, "u32": 7, "i32": 8, "f32": -9.25}]`)
	want := []string{"-128 | 255 | -32768 | 32767 | 65535 | 256 | 4294967295 | -2147483648 | 0.5", "127 | null | 300 | null | 300 | null | null | 70000 | null", "1 | 2 | -3 | -4 | 5 | 65534 | 7 | 8 | -9.25"}
	for _, f := range []form{{encoding: pq.Encodings.Plain}, {dictionary: true}, {version2: true}} {
		got, err := rowsAs(t, bare(t, rec, f), 1, 1)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
