package parquet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/metadata"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

const shards = 8

// columns has a column of every kind.
var columns = []string{
	"i int64", "small uint8", "big uint64 null", "on bool null", "x float64 null", "t utf8 null", "raw binary", "v vector[2] null", "v32 vector32[3]",
	"list vector null", "list32 vector32", "s sparse[9] null", "day date32", "when timestamp[us] null", "sec timestamp[s, Europe/Prague] null", "nano timestamp[ns, UTC]",
}

// record returns n rows with the columns of the variable columns.
func record(t testing.TB, mem memory.Allocator, n int) arrow.Record {
	rows := make([]string, n)
	for i := range rows {
		row := fmt.Sprintf(`{"i": %d, "small": %d, "raw": "%s", "v32": [%d, 0.5, -1], "list32": [%s], "day": %d, "nano": %d`,
			i, i%256, strings.Repeat("AAAA", i%3), i, strings.Join([]string{"1", "2"}[:i%3], ","), i, i)
		if i%3 != 0 {
			row += fmt.Sprintf(`, "big": %d, "on": %t, "x": %d.25, "t": "%s", "list": [%s]`, uint64(1)<<63+uint64(i), i%2 == 0, i, strings.Repeat("é", i%5), strings.Join([]string{"1", "2", "3"}[:i%4], ","))
		}
		if i%4 != 0 {
			row += fmt.Sprintf(`, "v": [%d, 1e-9], "s": {"indices": [%s], "values": [%s]}, "when": %d, "sec": %d`,
				i, strings.Join([]string{"1", "8"}[:i%3], ","), strings.Join([]string{"-1.5", "3"}[:i%3], ","), i, i)
		}
		rows[i] = row + "}"
	}
	return batchtest.Record(t, mem, batchtest.Schema(t, columns...), "["+strings.Join(rows, ",")+"]")
}

// run runs the job that build defines, with mem as its allocator.
func run(t require.TestingT, mem memory.Allocator, build func(b *engine.Builder), opts ...engine.Option) (*engine.Result, error) {
	return engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		build(b)
		return nil
	}), struct{}{}, append([]engine.Option{engine.Shards(shards), engine.Allocator(mem)}, opts...)...)
}

// setting has the options of a run: the parallelism, the rows per batch, and the number of
// workers, or 0 for a job that runs without workers.
type setting struct{ P, Rows, Workers int }

func (s setting) options() []engine.Option {
	return []engine.Option{engine.Parallelism(s.P), engine.BatchRows(s.Rows), engine.Workers(s.Workers)}
}

// wholeSettings has all combinations of parallelism and rows per batch for a job that runs
// without workers. fewSettings has each of these values at least once.
var (
	fewSettings   = []setting{{1, 7, 0}, {2, 1024, 2}, {3, 1, 0}, {8, 7, 0}, {8, 7, 3}}
	wholeSettings = []setting{{1, 1, 0}, {1, 7, 0}, {1, 1024, 0}, {2, 1, 0}, {2, 7, 0}, {2, 1024, 0}, {3, 1, 0}, {3, 7, 0}, {3, 1024, 0}, {8, 1, 0}, {8, 7, 0}, {8, 1024, 0}}
)

// requireRows requires that a dataset has the given rows at the given settings.
func requireRows(t testing.TB, at []setting, want arrow.Record, build func(b *engine.Builder) *engine.Dataset) {
	for _, s := range at {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		result, err := run(t, mem, func(b *engine.Builder) { engine.Collect(build(b), "rows") }, s.options()...)
		require.NoError(t, err)
		schema, err := result.Schema("rows")
		require.NoError(t, err)
		require.Equal(t, batch.Columns(want.Schema()), batch.Columns(arrowrows.Arrow(schema)))
		recs, err := arrowbridge.Records(result, "rows")
		require.NoError(t, err)
		var got []string
		for _, rec := range recs {
			require.NoError(t, batch.Validate(rec))
			got = append(got, batchtest.Rows(rec)...)
		}
		require.Equal(t, batchtest.Rows(want), append([]string{}, got...))
		result.Release()
		mem.AssertSize(t, 0)
	}
}

// written returns a file of the rows, in row groups of groupRows rows, that Arrow's library has
// written without this package.
func written(t testing.TB, rec arrow.Record, groupRows int64, arrowSchema bool) []byte {
	var out bytes.Buffer
	props := pqarrow.DefaultWriterProps()
	if arrowSchema {
		props = pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema())
	}
	w, err := pqarrow.NewFileWriter(rec.Schema(), &out, pq.NewWriterProperties(pq.WithMaxRowGroupLength(groupRows)), props)
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// ours returns a file of the rows as Write writes it, but with row groups of groupRows rows.
func ours(t testing.TB, rec arrow.Record, groupRows int) []byte {
	var out bytes.Buffer
	w, err := newWriter(&out, rec.Schema(), codecs[Snappy], memory.NewGoAllocator())
	require.NoError(t, err)
	for part := range batch.Rechunk(rec, groupRows) {
		copied, err := batch.Concat(memory.NewGoAllocator(), []arrow.Record{part})
		require.NoError(t, err)
		require.NoError(t, w.Write(arrowrows.Batch(copied)))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestRoundTrip(t *testing.T) {
	for k, o := range []WriteOptions{{}, {Compression: Zstd}, {Compression: Gzip}, {Compression: Uncompressed, PerShard: true}} {
		for _, n := range []int{0, 60} {
			at := fewSettings
			if k == 0 && n > 0 {
				at = append(slices.Clone(wholeSettings), testsize.AsWorkers[setting]()...)
			}
			rec := record(t, memory.NewGoAllocator(), n)
			var first map[string]string
			var dir string
			for _, s := range at {
				dir = t.TempDir()
				mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
				result, err := run(t, mem, func(b *engine.Builder) {
					Write(arrowbridge.FromRecords(b, []arrow.Record{rec}), filepath.Join(dir, "x"), o)
				}, s.options()...)
				require.NoError(t, err)
				result.Release()
				mem.AssertSize(t, 0)
				got := files(t, dir)
				if first == nil {
					first = got
				}
				require.Equal(t, first, got)
			}
			require.Equal(t, o.PerShard, len(first) == shards)
			requireRows(t, at, rec, func(b *engine.Builder) *engine.Dataset { return Read(b, filepath.Join(dir, "x"), ReadOptions{}) })
		}
	}
}

// files returns the content of all files below a directory.
func files(t testing.TB, dir string) map[string]string {
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all[path[len(dir):]] = string(content)
		return err
	}))
	return all
}

func TestRowGroupsDoNotShow(t *testing.T) {
	rec := record(t, memory.NewGoAllocator(), 60)
	for _, groupRows := range []int{7, 59} {
		path := filepath.Join(t.TempDir(), "x.parquet")
		require.NoError(t, os.WriteFile(path, ours(t, rec, groupRows), 0o600))
		requireRows(t, fewSettings, rec, func(b *engine.Builder) *engine.Dataset { return Read(b, path, ReadOptions{}) })
	}
}

// TestRowsAreCutByIndex reads files of many row groups, and requires that the shard of each row
// depends only on its index.
func TestRowsAreCutByIndex(t *testing.T) {
	rec := batchtest.Record(t, memory.NewGoAllocator(), batchtest.Schema(t, "n int64 null", "x float64"),
		`[{"n": 0, "x": 0}, {"n": 1, "x": 1}, {"n": null, "x": 2}, {"n": 3, "x": 3}, {"n": 4, "x": 4}]`)
	for _, groupRows := range []int64{1, 2, 3, 100} {
		dir := t.TempDir()
		for k := range 3 {
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(k)), written(t, rec, groupRows, false), 0o600))
		}
		for _, s := range []setting{{1, 7, 0}, {3, 7, 0}, {8, 7, 0}, {3, 7, 2}} {
			out := filepath.Join(t.TempDir(), "out")
			result, err := run(t, memory.NewGoAllocator(), func(b *engine.Builder) {
				d := Read(b, dir, ReadOptions{Columns: []string{"x", "n"}})
				operators.WriteCSV(d, out, operators.CSVWriteOptions{PerShard: true, NoHeader: true})
			}, s.options()...)
			require.NoError(t, err)
			result.Release()
			got := files(t, out)
			at := 0
			for s := range shards {
				want := ""
				for ; at < (s+1)*15/shards; at++ {
					if want += fmt.Sprintf("%d,%d\n", at%5, at%5); at%5 == 2 {
						want = strings.TrimSuffix(want, "2\n") + "\n"
					}
				}
				require.Equal(t, want, got[fmt.Sprintf("/part-%05d.csv", s)])
			}
		}
	}
}

func TestForeignFiles(t *testing.T) {
	mem := memory.NewGoAllocator()
	// The rows have fixed-size lists, large text and dictionaries, which programs that use
	// Arrow write.
	kind := array.NewDictionaryBuilder(mem, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}).(*array.BinaryDictionaryBuilder)
	large := array.NewLargeStringBuilder(mem)
	lists := array.NewListBuilder(mem, arrow.PrimitiveTypes.Float64)
	fixed := array.NewFixedSizeListBuilder(mem, 2, arrow.PrimitiveTypes.Float32)
	for i, text := range []string{"a", "b", "a"} {
		require.NoError(t, kind.AppendString(text))
		large.Append(text)
		lists.Append(true)
		lists.ValueBuilder().(*array.Float64Builder).AppendValues([]float64{1, 2, 3}[:i], nil)
		fixed.Append(true)
		fixed.ValueBuilder().(*array.Float32Builder).AppendValues([]float32{float32(i), 1}, nil)
	}
	cols := []arrow.Array{kind.NewArray(), large.NewArray(), lists.NewArray(), fixed.NewArray()}
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		fields[i] = arrow.Field{Name: []string{"kind", "large", "list", "fixed"}[i], Type: c.DataType(), Nullable: true}
	}
	foreign := array.NewRecord(arrow.NewSchema(fields, nil), cols, 3)
	want := func(fixed string) arrow.Record {
		return batchtest.Record(t, mem, batchtest.Schema(t, "kind utf8 null", "large utf8 null", "list vector null", "fixed "+fixed+" null"), `[
			{"kind": "a", "large": "a", "list": [], "fixed": [0, 1]}, {"kind": "b", "large": "b", "list": [1], "fixed": [1, 1]}, {"kind": "a", "large": "a", "list": [1, 2], "fixed": [2, 1]}]`)
	}
	for _, arrowSchema := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "x.parquet")
		require.NoError(t, os.WriteFile(path, written(t, foreign, 100, arrowSchema), 0o600))
		requireRows(t, fewSettings, want(map[bool]string{false: "vector32", true: "vector32[2]"}[arrowSchema]), func(b *engine.Builder) *engine.Dataset { return Read(b, path, ReadOptions{}) })
	}
}

func misuse(t *testing.T, build func(b *engine.Builder), words ...string) {
	t.Helper()
	_, err := run(t, memory.NewGoAllocator(), build)
	var refused *engine.BuildError
	require.ErrorAs(t, err, &refused)
	for _, word := range append(words, "parquet_test.go:") {
		require.ErrorContains(t, err, word)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.parquet")
	good := ours(t, record(t, memory.NewGoAllocator(), 9), 4)
	read := func(o ReadOptions) func(b *engine.Builder) {
		return func(b *engine.Builder) { operators.Count(Read(b, path, o)) }
	}
	misuse(t, read(ReadOptions{}), "ReadParquet: input "+path+" does not exist")
	for name, data := range map[string]string{
		"empty": "", "text": "a,b\n1,2\n", "cut": string(good[:len(good)-10]), "no footer": string(good[:len(good)/2]) + "PAR1",
	} {
		require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
		misuse(t, read(ReadOptions{}), "ReadParquet: input "+path, name[:0])
	}
	require.NoError(t, os.WriteFile(path, good, 0o600))
	misuse(t, read(ReadOptions{Columns: []string{"wen"}}), `no column "wen"; did you mean "when"`)
	misuse(t, func(b *engine.Builder) {
		Write(Read(b, path, ReadOptions{}), filepath.Join(dir, "y"), WriteOptions{Compression: "lzma"})
	}, `WriteParquet: unknown compression "lzma"`)
	misuse(t, func(b *engine.Builder) { Write(nil, "y", WriteOptions{}) }, "dataset is nil")
	misuse(t, func(b *engine.Builder) {
		Write(Read(b, path, ReadOptions{Columns: []string{}}), filepath.Join(dir, "y"), WriteOptions{})
	}, "no columns")

	mem := memory.NewGoAllocator()
	for typ, b := range map[string]array.Builder{
		`column "c": type decimal(9, 2) is not supported`: array.NewDecimal128Builder(mem, &arrow.Decimal128Type{Precision: 9, Scale: 2}),
		`column "c": type list`:                           array.NewListBuilder(mem, arrow.BinaryTypes.String),
		`column "c": type struct`:                         array.NewStructBuilder(mem, arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true})),
	} {
		b.AppendNull()
		col := b.NewArray()
		rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "c", Type: col.DataType(), Nullable: true}}, nil), []arrow.Array{col}, 1)
		require.NoError(t, os.WriteFile(path, written(t, rec, 1, false), 0o600))
		misuse(t, read(ReadOptions{}), typ)
	}
}

// TestPagesThatAreRefusedByName requires that a column that is compressed by LZ4 in Hadoop's
// frames, which is not supported, is refused, and that other columns can be read.
func TestPagesThatAreRefusedByName(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "packed", "lz41.parquet"))
	require.NoError(t, err)
	data = withFooter(t, data, func(m *metadata.FileMetaData) { m.RowGroups[0].Columns[1].MetaData.Codec = 5 })
	require.NoError(t, readsColumn(data, 0))
	require.ErrorContains(t, readsColumn(data, 1), `column "text": its pages are compressed by LZ4, which is not supported: write the file with snappy, zstd, gzip, brotli, LZ4_RAW or`)
}

func TestChangeIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.parquet")
	require.NoError(t, os.WriteFile(path, ours(t, record(t, memory.NewGoAllocator(), 9), 4), 0o600))
	builds := 0
	_, err := run(t, memory.NewGoAllocator(), func(b *engine.Builder) {
		engine.Collect(Read(b, path, ReadOptions{}), "n")
		if builds++; builds == 2 {
			require.NoError(t, os.WriteFile(path, ours(t, record(t, memory.NewGoAllocator(), 19), 4), 0o600))
		}
	})
	require.ErrorContains(t, err, "x.parquet changed between building and reading")
}

// TestDamagedFiles changes files at random. It requires that reading them ends, either with an
// error or with any values.
func TestDamagedFiles(t *testing.T) {
	values := make([]*int64, 30)
	for i := range values {
		if v := int64(i*i) << (i % 40); i%4 != 1 {
			values[i] = &v
		}
	}
	files := map[string][]byte{
		"plain":  ours(t, record(t, memory.NewGoAllocator(), 30), 20),
		"deltas": inDeltas(t, longs(t, values), 20, false, 1000),
	}
	for _, name := range []string{"pages1", "pages2"} {
		data, err := os.ReadFile(filepath.Join("testdata", "flat", name+".parquet"))
		require.NoError(t, err)
		files[name] = data
	}
	for name, good := range files {
		t.Run(name, func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { damaged(rt, t.TempDir(), good) }) })
	}
}

// damaged changes a file at random and reads it.
func damaged(rt *rapid.T, dir string, good []byte) {
	path := filepath.Join(dir, "x.parquet")
	data := bytes.Clone(good)
	for range rapid.IntRange(1, 3).Draw(rt, "changes") {
		at := rapid.IntRange(0, len(data)-5).Draw(rt, "at")
		if rapid.Bool().Draw(rt, "bit") {
			data[at] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "which")
		} else {
			binary.LittleEndian.PutUint32(data[at:], rapid.Uint32().Draw(rt, "word"))
		}
	}
	require.NoError(rt, os.WriteFile(path, data, 0o600))
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		engine.Collect(Read(b, path, ReadOptions{}), "rows")
		return nil
	}), struct{}{}, engine.Shards(4), engine.Parallelism(2))
	if err == nil {
		result.Release()
		return
	}
	require.ErrorContains(rt, err, "x.parquet")
	require.NotContains(rt, err.Error(), "panic")
}

// TestVersionsOfPages requires that Write writes pages of version 2 if the rows have lists, and
// otherwise pages of version 1, which more programs can read.
func TestVersionsOfPages(t *testing.T) {
	for kind, want := range map[string]int64{"float64 null": pageOfData, "utf8": pageOfData, "vector": pageOfData2, "vector[2]": pageOfData2, "sparse[4]": pageOfData2} {
		schema := batchtest.Schema(t, "x "+kind)
		var out bytes.Buffer
		w, err := newWriter(&out, schema, compress.Codecs.Snappy, memory.NewGoAllocator())
		require.NoError(t, err)
		value := map[string]string{"float64 null": `1`, "utf8": `"a"`, "sparse[4]": `{"indices": [1], "values": [2]}`}[kind]
		if value == "" {
			value = `[1, 2]`
		}
		rows := batchtest.Record(t, memory.NewGoAllocator(), schema, `[{"x": `+value+`}]`)
		require.NoError(t, w.Write(arrowrows.Batch(rows)))
		require.NoError(t, w.Close())
		meta, err := readFooter(bytes.NewReader(out.Bytes()), int64(out.Len()))
		require.NoError(t, err)
		group := meta.RowGroup(0)
		for i := range group.NumColumns() {
			chunk, err := group.ColumnChunk(i)
			require.NoError(t, err)
			h, _, err := parseHead(out.Bytes()[chunk.DataPageOffset():])
			require.NoError(t, err)
			require.Equal(t, want, h.kind, kind)
		}
	}
}

// TestCloseAfterAFailedWrite requires that a writer can be closed without a panic after the
// disk has become full.
func TestCloseAfterAFailedWrite(t *testing.T) {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), batchtest.Schema(t, "x float64", "v vector"))
	defer b.Release()
	for i := range 1 << 12 {
		b.Field(0).(*array.Float64Builder).Append(float64(i))
		b.Field(1).(*array.ListBuilder).Append(true)
		b.Field(1).(*array.ListBuilder).ValueBuilder().(*array.Float64Builder).Append(float64(i))
	}
	rec := b.NewRecord()
	defer rec.Release()
	for room := 0; room < 1<<16; room += 1 << 12 {
		w, err := newWriter(&fullDisk{room: room}, rec.Schema(), compress.Codecs.Uncompressed, memory.NewGoAllocator())
		require.NoError(t, err)
		err = w.Write(arrowrows.Batch(rec))
		closed := w.Close()
		require.ErrorIs(t, errors.Join(err, closed), syscall.ENOSPC, "room %d", room)
		if err != nil {
			require.ErrorIs(t, closed, syscall.ENOSPC, "room %d", room)
		}
	}
}

// TestStatisticsOfIntegers requires that, if a file has a minimum and a maximum of a column,
// these are the minimum and maximum of the column's values. Readers use them to leave out row
// groups.
func TestStatisticsOfIntegers(t *testing.T) {
	var fields []arrow.Field
	for _, nullable := range []bool{false, true} {
		for _, typed := range []arrow.DataType{
			arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
			arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		} {
			fields = append(fields, arrow.Field{Name: fmt.Sprintf("%v.%v", typed, nullable), Type: typed, Nullable: nullable})
		}
	}
	for _, null := range []int{-1, 0, 7} { // index of the row that is null in nullable columns; -1: none
		b := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema(fields, nil))
		for i := range 20 {
			for j, f := range fields {
				if f.Nullable && i == null {
					b.Field(j).AppendNull()
					continue
				}
				require.NoError(t, b.Field(j).AppendValueFromString(strconv.Itoa(100+i)))
			}
		}
		rec := b.NewRecord()
		var out bytes.Buffer
		w, err := newWriter(&out, rec.Schema(), compress.Codecs.Snappy, memory.NewGoAllocator())
		require.NoError(t, err)
		require.NoError(t, w.Write(arrowrows.Batch(rec)))
		require.NoError(t, w.Close())
		rec.Release()
		b.Release()
		meta, err := readFooter(bytes.NewReader(out.Bytes()), int64(out.Len()))
		require.NoError(t, err)
		for j, f := range fields {
			chunk, err := meta.RowGroup(0).ColumnChunk(j)
			require.NoError(t, err)
			stats, err := chunk.Statistics()
			require.NoError(t, err)
			if f.Nullable && arrow.IsUnsignedInteger(f.Type.ID()) {
				require.True(t, stats == nil || !stats.HasMinMax(), f.Name)
				continue
			}
			least := 100
			if f.Nullable && null == 0 {
				least = 101
			}
			number := func(b []byte) int { return int(b[0]) } // all numbers are below 128, so the lowest byte is the number
			require.Equal(t, []int{least, 119}, []int{number(stats.EncodeMin()), number(stats.EncodeMax())}, f.Name)
		}
	}
}

// TestIncompleteFooters requires that writing a file with an incomplete footer gives an error.
func TestIncompleteFooters(t *testing.T) {
	for _, end := range []string{"", "PAR1", "\x00\x00\x01\x00PAR1", "meta\x05\x00\x00\x00PAR1"} {
		require.ErrorContains(t, (&footerSink{w: io.Discard, end: []byte(end)}).finish(), "footer", "%q", end)
	}
}

// fullDisk is a writer that fails with ENOSPC after room bytes.
type fullDisk struct{ room int }

func (d *fullDisk) Write(b []byte) (int, error) {
	n := min(len(b), d.room)
	d.room -= n
	if n < len(b) {
		return n, syscall.ENOSPC
	}
	return n, nil
}
