package operators

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// arrowColumns describes columns of every kind.
var arrowColumns = []string{
	"i int64", "small uint8", "on bool null", "x float64 null", "t utf8 null", "raw binary", "v vector[2] null", "v32 vector32[3]",
	"list vector null", "s sparse[9] null", "day date32", "when timestamp[us] null",
}

// arrowRows returns n rows of arrowColumns; the first row has the index from.
func arrowRows(t testing.TB, mem memory.Allocator, from, n int) arrow.Record {
	rows := make([]string, n)
	for k := range rows {
		i := from + k
		row := fmt.Sprintf(`{"i": %d, "small": %d, "raw": "%s", "v32": [%d, 0.5, -1], "day": %d`, i, i%256, strings.Repeat("AAAA", i%3), i, i)
		if i%3 != 0 {
			row += fmt.Sprintf(`, "on": %t, "x": %d.25, "t": "%s", "list": [%s]`, i%2 == 0, i, strings.Repeat("é", i%5), strings.Join([]string{"1", "2", "3"}[:i%4], ","))
		}
		if i%4 != 0 {
			row += fmt.Sprintf(`, "v": [%d, 1e-9], "s": {"indices": [%d, 8], "values": [1.5, %d]}, "when": %d`, i, i%8, i, i)
		}
		rows[k] = row + "}"
	}
	return batchtest.Record(t, mem, batchtest.Schema(t, arrowColumns...), "["+strings.Join(rows, ",")+"]")
}

// arrowBytes returns an Arrow file or stream of n rows; the first row has the index from. The
// sizes of the batches are sizes, repeated as often as necessary.
func arrowBytes(t testing.TB, stream bool, from, n int, sizes ...int) []byte {
	mem := memory.NewGoAllocator()
	var out bytes.Buffer
	schema := batchtest.Schema(t, arrowColumns...)
	var w interface {
		Write(arrow.Record) error
		Close() error
	}
	if w = ipc.NewWriter(&out, ipc.WithSchema(schema)); !stream {
		f, err := ipc.NewFileWriter(&positioned{w: &out}, ipc.WithSchema(schema))
		require.NoError(t, err)
		w = f
	}
	for k := 0; n > 0; k++ {
		size := min(n, sizes[k%len(sizes)])
		rec := arrowRows(t, mem, from, size)
		if size == 0 { // a slice without rows would make Arrow's writer fail
			rec = batch.Empty(schema)
		}
		require.NoError(t, w.Write(rec))
		rec.Release()
		from, n = from+size, n-size
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// arrowLines returns rows 0 to n-1 as text; each line begins with the row's shard.
func arrowLines(t testing.TB, n int) []string {
	rec := arrowRows(t, memory.NewGoAllocator(), 0, n)
	defer rec.Release()
	lines := batchtest.Rows(rec)
	for i := range lines {
		lines[i] = fmt.Sprintf("%d | %s", place(i, n), lines[i])
	}
	return lines
}

func TestReadArrow(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"one batch":   {"a.arrow": string(arrowBytes(t, false, 0, 50, 50))},
		"batches":     {"a.arrow": string(arrowBytes(t, false, 0, 50, 1, 0, 7, 20))},
		"stream":      {"a.arrow": string(arrowBytes(t, true, 0, 50, 3, 0, 11))},
		"several":     {"1": string(arrowBytes(t, true, 0, 3, 2)), "2": string(arrowBytes(t, false, 0, 0)), "3": string(arrowBytes(t, false, 3, 47, 9))},
		"empty":       {"a.arrow": string(arrowBytes(t, false, 0, 0))},
		"empty batch": {"a.arrow": string(arrowBytes(t, true, 0, 0, 0))},
	} {
		dir := writeFiles(t, files)
		n := 50
		if strings.HasPrefix(name, "empty") {
			n = 0
		}
		requireRows(t, strings.Join(arrowColumns, " | "), arrowLines(t, n), func(b *engine.Builder) *engine.Dataset {
			return ReadArrow(b, dir, ArrowOptions{})
		})
	}
}

// TestReadCompressedArrow requires that the files of pyarrow in testdata/compressed are read as
// the rows that the README there describes.
func TestReadCompressedArrow(t *testing.T) {
	files, err := filepath.Glob("testdata/compressed/*.[af]*")
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, path := range files {
		job := engine.Anonymous(func(b *engine.Builder) error {
			engine.Collect(ReadArrow(b, path, ArrowOptions{Columns: []string{"flag", "name", "x", "id"}}), "rows")
			return nil
		})
		result, err := engine.Run(t.Context(), job, struct{}{}, engine.Shards(8), engine.Parallelism(3))
		require.NoError(t, err, path)
		rows, err := engine.Rows[struct {
			ID   *int64   `column:"id"`
			X    *float64 `column:"x"`
			Name *string  `column:"name"`
			Flag *bool    `column:"flag"`
		}](result, "rows")
		require.NoError(t, err)
		require.Len(t, rows, 200)
		for i, got := range rows {
			require.Equal(t, int64(i), *got.ID)
			require.Equal(t, i%3 == 0, *got.Flag)
			require.Equal(t, i%7 == 3, got.X == nil)
			require.Equal(t, i%11 == 5, got.Name == nil)
			if got.X != nil {
				require.Equal(t, float64(i)/8, *got.X)
			}
			if got.Name != nil {
				require.Equal(t, fmt.Sprintf("row %d", i%5), *got.Name)
			}
		}
		result.Release()
	}
}

func TestReadArrowColumns(t *testing.T) {
	fsys := opaque{fstest.MapFS{"a.arrow": {Data: arrowBytes(t, false, 0, 9, 4)}}}
	got := sameEverywhere(t, func(b *engine.Builder) *engine.Dataset {
		return ReadArrow(b, "a.arrow", ArrowOptions{Columns: []string{"v32", "i"}, FS: fsys})
	})
	require.Equal(t, "shard int64 | v32 vector32[3] | i int64", got[0])
	require.Equal(t, "7 | [8 0.5 -1] | 8", got[9])
	read := func(cols ...string) func(b *engine.Builder) *engine.Dataset {
		return func(b *engine.Builder) *engine.Dataset {
			return ReadArrow(b, "a.arrow", ArrowOptions{Columns: cols, FS: fsys})
		}
	}
	requireMisuse(t, read("wen"), "ReadArrow: ", `no column "wen"; did you mean "when"`)
	requireMisuse(t, read("i", "i"), `column "i" is selected twice`)
}

func TestReadArrowRefused(t *testing.T) {
	whole := arrowBytes(t, false, 0, 9, 4)
	stream := arrowBytes(t, true, 0, 9, 4)
	decimal := func() []byte {
		var out bytes.Buffer
		w := ipc.NewWriter(&out, ipc.WithSchema(arrow.NewSchema([]arrow.Field{{Name: "price", Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}}}, nil)))
		require.NoError(t, w.Close())
		return out.Bytes()
	}()
	twice := func() []byte {
		var out bytes.Buffer
		f := arrow.Field{Name: strings.Repeat("x", 10_000), Type: arrow.PrimitiveTypes.Int64}
		w := ipc.NewWriter(&out, ipc.WithSchema(arrow.NewSchema([]arrow.Field{f, f}, nil)))
		require.NoError(t, w.Close())
		return out.Bytes()
	}()
	many := func() []byte {
		var out bytes.Buffer
		empty := arrow.NewSchema(nil, nil)
		w := ipc.NewWriter(&out, ipc.WithSchema(empty))
		require.NoError(t, w.Write(array.NewRecord(empty, nil, 1<<31)))
		require.NoError(t, w.Close())
		return out.Bytes()
	}()
	for name, c := range map[string]struct {
		files map[string]string
		words []string
	}{
		"many":       {map[string]string{"a.arrow": string(many)}, []string{"it claims 2147483648 rows, where a batch holds at most 2147483647"}},
		"twice":      {map[string]string{"a.arrow": string(twice)}, []string{`columns 1 and 2 are both named "` + strings.Repeat("x", 60) + `"…`}},
		"no file":    {map[string]string{"b.arrow": "x"}, []string{"a.arrow does not exist", "there is b.arrow"}},
		"no bytes":   {map[string]string{"a.arrow": ""}, []string{"a.arrow: it is empty"}},
		"text":       {map[string]string{"a.arrow": "a,b\n1,2\n3,4\n"}, []string{"neither an Arrow file nor an Arrow stream"}},
		"cut file":   {map[string]string{"a.arrow": string(whole[:len(whole)-20])}, []string{"truncated: it has no footer"}},
		"cut stream": {map[string]string{"a.arrow": string(stream[:len(stream)-8])}, []string{"no end mark"}},
		"cut body":   {map[string]string{"a.arrow": string(stream[:len(stream)-100])}, []string{"cut off"}},
		"decimal":    {map[string]string{"a.arrow": string(decimal)}, []string{`column "price": type decimal(9, 2) is not supported; write the column as float64`}},
	} {
		dir := writeFiles(t, c.files)
		requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
			return ReadArrow(b, filepath.Join(dir, "a.arrow"), ArrowOptions{})
		}, append(c.words, "ReadArrow: ", "a.arrow")...)
		_ = name
	}
	other := func() []byte {
		var out bytes.Buffer
		w := ipc.NewWriter(&out, ipc.WithSchema(batchtest.Schema(t, "i int32")))
		require.NoError(t, w.Close())
		return out.Bytes()
	}()
	dir := writeFiles(t, map[string]string{"a": string(other), "b": string(stream)})
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return ReadArrow(b, dir, ArrowOptions{}) }, "the columns of", "differ: the first has 1, the second 12")
}

func TestReadArrowNullabilityIsThatOfAllFiles(t *testing.T) {
	one := func(column, rows string) string {
		mem := memory.NewGoAllocator()
		rec := batchtest.Record(t, mem, batchtest.Schema(t, column), rows)
		var out bytes.Buffer
		w := ipc.NewWriter(&out, ipc.WithSchema(rec.Schema()))
		require.NoError(t, w.Write(rec))
		require.NoError(t, w.Close())
		return out.String()
	}
	dir := writeFiles(t, map[string]string{"a": one("x int64", `[{"x": 1}]`), "b": one("x int64 null", `[{"x": null}]`)})
	requireRows(t, "x int64 null", []string{"3 | 1", "7 | null"}, func(b *engine.Builder) *engine.Dataset { return ReadArrow(b, dir, ArrowOptions{}) })
}

func TestReadArrowNoticesChanges(t *testing.T) {
	for _, late := range []bool{false, true} {
		dir := writeFiles(t, map[string]string{"a.arrow": string(arrowBytes(t, false, 0, 50, 5))})
		path := filepath.Join(dir, "a.arrow")
		change := func() { require.NoError(t, os.WriteFile(path, arrowBytes(t, false, 1, 50, 5), 0o600)) }
		builds := 0
		err := runError(t, func(b *engine.Builder) *engine.Dataset {
			d := ReadArrow(b, path, ArrowOptions{Columns: []string{"i"}})
			if builds++; builds == 2 && !late {
				change()
			}
			return Map(d, func(i struct{ I int64 }) int64 {
				if late && i.I == 30 {
					change()
				}
				return i.I
			})
		}, engine.Parallelism(1))
		require.ErrorContains(t, err, "a.arrow changed between building and reading")
	}
}

// shortened is an open file that seems to end at the offset end.
type shortened struct {
	*bytes.Reader
	end int64 // 0 means that the file is not shortened
}

func (s *shortened) ReadAt(b []byte, at int64) (int, error) {
	if s.end == 0 || at+int64(len(b)) <= s.end {
		return s.Reader.ReadAt(b, at)
	}
	n, err := s.Reader.ReadAt(b[:max(0, s.end-at)], at)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

// TestArrowFilesThatLoseTheirEnd requires that, if a file becomes shorter while it is read,
// complete rows are read, and then an error reports the early end. The bytes of the following
// section, such as the end of the stream, must never be taken for missing bytes.
func TestArrowFilesThatLoseTheirEnd(t *testing.T) {
	forms := map[string][]byte{"file": arrowBytes(t, false, 0, 9, 4), "stream": arrowBytes(t, true, 0, 9, 4)}
	for _, name := range []string{"pandas.feather", "replaced.arrows", "deltas.arrow"} {
		data, err := os.ReadFile(filepath.Join("testdata", "pandas", name))
		require.NoError(t, err)
		forms[name] = data
	}
	mem := memory.NewGoAllocator()
	for name, data := range forms {
		r := &shortened{Reader: bytes.NewReader(data)}
		read := func(end int64) (lines []string, err error) {
			r.end = 0
			f, err := openArrow(r, int64(len(data)))
			require.NoError(t, err)
			columns := make([]int, f.Schema().Len())
			for i := range columns {
				columns[i] = i
			}
			rows, err := f.Rows(0, columns, mem)
			require.NoError(t, err)
			defer rows.Close()
			r.end = end
			for {
				rec, err := rows.Next(1)
				if err != nil {
					return lines, err
				}
				lines = append(lines, batchtest.Rows(arrowrows.Record(rec))...)
				rec.Release()
			}
		}
		all, err := read(0)
		require.Equal(t, io.EOF, err, name)
		short := 0
		for end := int64(1); end < int64(len(data)); end += 1 + int64(len(data))/150 {
			got, err := read(end)
			require.LessOrEqual(t, len(got), len(all), "%s to %d", name, end)
			require.Equal(t, all[:len(got)], append([]string{}, got...), "%s to %d", name, end)
			if len(got) == len(all) {
				require.Equal(t, io.EOF, err, "%s to %d", name, end)
				continue
			}
			short++
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%s to %d", name, end)
			require.NotErrorIs(t, err, io.EOF, "%s to %d", name, end)
		}
		require.Greater(t, short, 10, name)
	}
}

// TestDamagedArrowFiles changes files at random. Reading a changed file must end, with an error
// or with other values, and must release all memory.
func TestDamagedArrowFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.arrow")
	forms := [][]byte{arrowBytes(t, false, 0, 9, 4), arrowBytes(t, true, 0, 9, 4)}
	for _, name := range []string{"compressed/lz4.arrows", "compressed/zstd.feather", "pandas/pandas.feather", "pandas/plain.feather", "pandas/replaced.arrows", "pandas/deltas.arrow"} {
		data, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
		require.NoError(t, err)
		forms = append(forms, data)
	}
	job := engine.Anonymous(func(b *engine.Builder) error {
		Count(ReadArrow(b, path, ArrowOptions{}))
		return nil
	})
	rapid.Check(t, func(rt *rapid.T) {
		data := bytes.Clone(rapid.SampledFrom(forms).Draw(rt, "form"))
		for range rapid.IntRange(1, 3).Draw(rt, "changes") {
			at := rapid.IntRange(0, len(data)-5).Draw(rt, "at")
			switch rapid.IntRange(0, 2).Draw(rt, "kind") {
			case 0:
				data[at] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
			case 1:
				binary.LittleEndian.PutUint32(data[at:], rapid.SampledFrom([]uint32{0, 1, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1}).Draw(rt, "word"))
			default:
				if data = data[:at]; len(data) < 6 {
					return
				}
			}
		}
		require.NoError(rt, os.WriteFile(path, data, 0o600))
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		result, err := engine.Run(context.Background(), job, struct{}{}, engine.Shards(4), engine.Parallelism(2), engine.Allocator(mem))
		if err == nil {
			result.Release()
		} else {
			require.ErrorContains(rt, err, "x.arrow")
			require.NotContains(rt, err.Error(), "panic")
		}
		mem.AssertSize(rt, 0)
	})
}

func TestWriteArrow(t *testing.T) {
	for _, n := range []int{0, 50} {
		rec := arrowRows(t, batchtest.Allocator(t), 0, n)
		defer rec.Release()
		files := sameFiles(t, "x.arrow", func(b *engine.Builder, path string) {
			WriteArrow(fromRecords(b, []arrow.Record{rec}), path, ArrowWriteOptions{})
		})
		require.Len(t, files, 1)
		r, err := ipc.NewFileReader(bytes.NewReader([]byte(files["x.arrow"])))
		require.NoError(t, err)
		defer r.Close()
		require.Equal(t, min(n, 1), r.NumRecords(), "few rows must be in one batch")
		if n > 0 {
			got, err := r.Record(0)
			require.NoError(t, err)
			batchtest.Equal(t, rec, got)
		}
	}
	rec := arrowRows(t, batchtest.Allocator(t), 0, 50)
	defer rec.Release()
	dir := t.TempDir()
	files := sameFiles(t, "x", func(b *engine.Builder, path string) {
		WriteArrow(fromRecords(b, []arrow.Record{rec}), path, ArrowWriteOptions{PerShard: true})
	})
	require.Len(t, files, testShards+1)
	for name, content := range files {
		if content != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(content), 0o600))
		}
	}
	requireRows(t, strings.Join(arrowColumns, " | "), arrowLines(t, 50), func(b *engine.Builder) *engine.Dataset { return ReadArrow(b, dir, ArrowOptions{}) })
}

// TestChunksDependOnRowsAlone divides the same rows into batches in two ways, with different
// bytes in the values of nulls, and compares the buffers of the chunks.
func TestChunksDependOnRowsAlone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(rt, 0)
		n := rapid.IntRange(1, 40).Draw(rt, "n")
		rows, size := rapid.IntRange(1, 50).Draw(rt, "rows"), rapid.Int64Range(1, 3000).Draw(rt, "size")
		whole := arrowRows(t, mem, 0, n)
		defer whole.Release()
		chunks := func(label string) (out []string) {
			k := chunker{mem: mem, rows: rows, size: size, emit: func(rec arrow.Record) error {
				require.LessOrEqual(rt, int(rec.NumRows()), rows)
				out = append(out, rawBuffers(rec))
				return nil
			}}
			defer k.release()
			for at := 0; at < n; {
				to := min(n, at+rapid.IntRange(1, 12).Draw(rt, label))
				part, err := batch.Slice(whole, at, to)
				require.NoError(rt, err)
				require.NoError(rt, k.push(part))
				part.Release()
				at = to
			}
			require.NoError(rt, k.flush())
			return out
		}
		require.Equal(rt, chunks("first"), chunks("second"))
	})
}

// rawBuffers returns all bytes of the buffers of a batch as text.
func rawBuffers(rec arrow.Record) string {
	var b strings.Builder
	var write func(d arrow.ArrayData)
	write = func(d arrow.ArrayData) {
		fmt.Fprintf(&b, "%v %d %d %d:", d.DataType(), d.Len(), d.Offset(), d.NullN())
		for _, buf := range d.Buffers() {
			if buf != nil {
				fmt.Fprintf(&b, " %x", buf.Bytes())
			}
		}
		for _, c := range d.Children() {
			write(c)
		}
		b.WriteByte('\n')
	}
	for _, col := range rec.Columns() {
		write(col.Data())
	}
	return b.String()
}

// TestNothingShowsUnderNulls passes rows with arbitrary bytes in the values of nulls through a
// chunker, and requires that these bytes are cleared.
func TestNothingShowsUnderNulls(t *testing.T) {
	mem := batchtest.Allocator(t)
	schema := batchtest.Schema(t, "x float64 null", "on bool null", "t utf8 null", "v vector[2] null", "list vector null", "s sparse[9] null")
	hide := func(json string) string {
		rec := batchtest.Record(t, mem, schema, json)
		defer rec.Release()
		// The second of three rows becomes null, but its values stay in the buffers.
		cols := make([]arrow.Array, rec.NumCols())
		for i, col := range rec.Columns() {
			d := col.Data()
			buffers := append([]*memory.Buffer{memory.NewBufferBytes([]byte{0b101})}, d.Buffers()[1:]...)
			data := array.NewData(d.DataType(), 3, buffers, d.Children(), 1, 0)
			cols[i] = array.MakeFromData(data)
			data.Release()
			defer cols[i].Release()
		}
		masked := array.NewRecord(schema, cols, 3)
		defer masked.Release()
		var out string
		k := chunker{mem: mem, rows: 10, size: 1 << 20, emit: func(rec arrow.Record) error {
			require.NoError(t, batch.Validate(rec))
			out = rawBuffers(rec) + strings.Join(batchtest.Rows(rec), "\n")
			return nil
		}}
		require.NoError(t, k.push(masked))
		require.NoError(t, k.flush())
		return out
	}
	row := `{"x": 1, "on": true, "t": "a", "v": [1, 2], "list": [3], "s": {"indices": [1], "values": [2]}}`
	secret := `{"x": 9, "on": true, "t": "secret", "v": [7, 8], "list": [3, 4], "s": {"indices": [1, 2], "values": [2, 5]}}`
	shown := hide("[" + row + "," + secret + "," + row + "]")
	require.Equal(t, shown, hide("["+row+","+row+","+row+"]"))
	require.Contains(t, shown, "null | null | null | null | null | null")
}
