package operators

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/textfile"
)

func TestWriteCSVSpelledOut(t *testing.T) {
	schema := batchtest.Schema(t, "t utf8 null", "b bool", "f float64 null", "v vector[2]", "s sparse[9]", "x binary", "when timestamp[ms]", "d date32 null")
	mem := batchtest.Allocator(t)
	rec := batchtest.Record(t, mem, schema, `[
		{"t": "a,\"b\"\n", "b": true, "f": 1e-7, "v": [1, 2.5], "s": {"indices": [0, 7], "values": [1, -2.5]}, "x": "AAE=", "when": "2020-01-02T03:04:05.678", "d": "1969-12-31"},
		{"t": null, "b": false, "f": null, "v": [0, 1e21], "s": {"indices": [], "values": []}, "x": "/w==", "when": "1970-01-01T00:00:00", "d": null},
		{"t": "", "b": false, "f": "NaN", "v": [0, 0], "s": {"indices": [], "values": []}, "x": "/w==", "when": "1970-01-01T00:00:00", "d": null},
		{"t": " NA", "b": false, "f": 0.1, "v": [0, 0], "s": {"indices": [], "values": []}, "x": "/w==", "when": "1970-01-01T00:00:00", "d": null},
		{"t": "NA", "b": false, "f": 100, "v": [0, 0], "s": {"indices": [], "values": []}, "x": "/w==", "when": "1970-01-01T00:00:00", "d": null},
		{"t": "#é;|", "b": false, "f": "+Inf", "v": [0, 0], "s": {"indices": [], "values": []}, "x": "/w==", "when": "1970-01-01T00:00:00", "d": null}]`)
	defer rec.Release()
	write := func(name string, o CSVWriteOptions) string {
		dir := t.TempDir()
		require.NoError(t, runSink(t, func(b *engine.Builder) {
			WriteCSV(fromRecords(b, []arrow.Record{rec}), filepath.Join(dir, name), o)
		}))
		return tree(t, dir)[name]
	}
	require.Equal(t, strings.Join([]string{
		"t,b,f,v,s,x,when,d",
		"\"a,\"\"b\"\"\n\",true,1e-07,[1 2.5],[0:1 7:-2.5],AAE=,2020-01-02T03:04:05.678,1969-12-31",
		",false,,[0 1e+21],[],/w==,1970-01-01T00:00:00,",
		`"",false,NaN,[0 0],[],/w==,1970-01-01T00:00:00,`,
		`" NA",false,0.1,[0 0],[],/w==,1970-01-01T00:00:00,`,
		`NA,false,100,[0 0],[],/w==,1970-01-01T00:00:00,`,
		`"#é;|",false,+Inf,[0 0],[],/w==,1970-01-01T00:00:00,`,
	}, "\n")+"\n", write("a.csv", CSVWriteOptions{}))
	require.Equal(t, strings.Join([]string{
		"\"a,\"\"b\"\"\n\";true;1e-07;[1 2.5];[0:1 7:-2.5];AAE=;2020-01-02T03:04:05.678;1969-12-31",
		"NA;false;NA;[0 1e+21];[];/w==;1970-01-01T00:00:00;NA",
		`"";false;NaN;[0 0];[];/w==;1970-01-01T00:00:00;NA`,
		`" NA";false;0.1;[0 0];[];/w==;1970-01-01T00:00:00;NA`,
		`"NA";false;100;[0 0];[];/w==;1970-01-01T00:00:00;NA`,
		`"#é;|";false;+Inf;[0 0];[];/w==;1970-01-01T00:00:00;NA`,
	}, "\n")+"\n", write("b.csv", CSVWriteOptions{NoHeader: true, Delimiter: ';', Null: "NA"}))
}

// csvRow is a row with a column of every type that a struct field can have.
type csvRow struct {
	Text  string
	Note  *string
	Real  float64
	Small float32
	Big   uint64
	Some  *int64
	On    bool
	Vec   []float64
	Pair  []float32
}

// show returns a row as text. The text of all NaNs is the same.
func (r csvRow) show() string {
	note, some := "null", "null"
	if r.Note != nil {
		note = fmt.Sprintf("%q", *r.Note)
	}
	if r.Some != nil {
		some = fmt.Sprint(*r.Some)
	}
	return fmt.Sprintf("%q %s %v %v %d %s %v %v %v", r.Text, note, r.Real, r.Small, r.Big, some, r.On, r.Vec, r.Pair)
}

// TestCSVRoundTrip writes random rows and requires that ReadCSV reads the same rows.
func TestCSVRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.csv")
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"", "NA", " ", "#", "\"", "a\rb", ",", "\t", "\n", "\ufeff", "[1 2]", "é\x01"}),
		rapid.StringMatching(`[a-zA-Z0-9 ,;"#\n\t|.-]{0,12}`))
	real := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 1e21, 1e-5, math.MaxFloat64, math.SmallestNonzeroFloat64}))
	codec, err := batch.NewCodec[csvRow]()
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) csvRow {
			return csvRow{
				Text: text.Draw(rt, "text"), Note: rapid.Ptr(text, true).Draw(rt, "note"), Real: real.Draw(rt, "real"), Small: rapid.Float32().Draw(rt, "small"),
				Big: rapid.Uint64().Draw(rt, "big"), Some: rapid.Ptr(rapid.Int64(), true).Draw(rt, "some"), On: rapid.Bool().Draw(rt, "on"),
				Vec: rapid.SliceOfN(real, 0, 3).Draw(rt, "vec"), Pair: []float32{rapid.Float32().Draw(rt, "x"), 1},
			}
		}), 1, 20).Draw(rt, "rows")
		o := CSVWriteOptions{
			NoHeader:  rapid.Bool().Draw(rt, "no header"),
			Delimiter: rapid.SampledFrom([]byte{',', ';', '\t', '.', ' ', '1', 'e', '-'}).Draw(rt, "delimiter"),
			Null:      rapid.SampledFrom([]string{"", "NA", "xyz"}).Draw(rt, "null"),
		}
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(rt, 0)

		var file bytes.Buffer
		if !o.NoHeader {
			file.Write(o.form().Header(codec.Schema()))
		}
		app := codec.Appender(mem)
		defer app.Release()
		for i := range rows {
			require.NoError(rt, app.AppendFrom(&rows[i]))
		}
		rec := app.NewRecord()
		defer rec.Release()
		w := textfile.NewWriter(&file, o.form())
		require.NoError(rt, w.Write(rec))
		require.NoError(rt, os.WriteFile(path, file.Bytes(), 0o600))

		read := CSVOptions{Header: !o.NoHeader, Delimiter: o.Delimiter, Nulls: []string{o.Null}}
		for _, c := range batch.Columns(codec.Schema()) {
			read.Columns = append(read.Columns, Column(c))
		}
		p, n := rapid.IntRange(1, 8).Draw(rt, "p"), rapid.IntRange(1, 9).Draw(rt, "batch rows")
		result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
			engine.Collect(ReadCSV(b, path, read), "rows")
			return nil
		}), struct{}{}, engine.Shards(testShards), engine.Parallelism(p), engine.BatchRows(n), engine.Allocator(mem), drawWorkers(rt))
		require.NoError(rt, err)
		defer result.Release()
		got, err := engine.Rows[csvRow](result, "rows")
		require.NoError(rt, err)
		require.Len(rt, got, len(rows))
		for i := range rows {
			require.Equal(rt, rows[i].show(), got[i].show())
		}
	})
}

// TestWriteCSVOfZeroBytes requires that WriteCSV refuses text that ReadCSV could not read.
func TestWriteCSVOfZeroBytes(t *testing.T) {
	dir := t.TempDir()
	err := runSink(t, func(b *engine.Builder) {
		type row struct {
			I    int64
			Note *string
		}
		note := "a\x00b"
		WriteCSV(FromSlice(b, []row{{1, nil}, {2, &note}}), filepath.Join(dir, "x.csv"), CSVWriteOptions{})
	})
	require.ErrorContains(t, err, `column "note": the text "a\x00b" has a byte of 0, which no file of text can have`)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// TestWriteCSVTimes requires that times of a type without a zone are written and read without a
// zone, and that other times are written and read in UTC. Times in UTC must not be read as a
// type without a zone.
func TestWriteCSVTimes(t *testing.T) {
	rec := batchtest.Record(t, batchtest.Allocator(t), batchtest.Schema(t, "naive timestamp[ms] null", "berlin timestamp[s, Europe/Berlin] null"),
		`[{"naive": "2020-07-01T12:00:00.5", "berlin": "2020-07-01T10:00:00"}, {"naive": null, "berlin": null}]`)
	defer rec.Release()
	path := filepath.Join(t.TempDir(), "a.csv")
	require.NoError(t, runSink(t, func(b *engine.Builder) { WriteCSV(fromRecords(b, []arrow.Record{rec}), path, CSVWriteOptions{}) }))
	require.Equal(t, "naive,berlin\n2020-07-01T12:00:00.5,2020-07-01T10:00:00Z\n,\n", tree(t, filepath.Dir(path))["a.csv"])
	read := func(naive, berlin string) func(b *engine.Builder) *engine.Dataset {
		return func(b *engine.Builder) *engine.Dataset {
			return ReadCSV(b, path, CSVOptions{Header: true, Types: map[string]string{"naive": naive, "berlin": berlin}})
		}
	}
	require.Equal(t, []string{"shard int64 | naive timestamp[ms] null | berlin timestamp[s, Europe/Berlin] null", "2 | 2020-07-01T12:00:00.5 | 2020-07-01T10:00:00Z", "125 | null | null"},
		outcome(t, read("timestamp[ms]", "timestamp[s, Europe/Berlin]")))
	require.ErrorContains(t, runError(t, read("timestamp[ms]", "timestamp[s]")),
		`a.csv:2: column "berlin": cannot read "2020-07-01T10:00:00Z" as timestamp[s]: it has a time zone, and the type has none: that of such times is timestamp[s, UTC]`)
}

func TestWriteCSVOfOneColumn(t *testing.T) {
	dir := t.TempDir()
	one, none := int64(1), (*int64)(nil)
	require.NoError(t, runSink(t, func(b *engine.Builder) {
		WriteCSV(FromSlice(b, []*int64{none, &one, none}), filepath.Join(dir, "a.csv"), CSVWriteOptions{})
	}))
	require.Equal(t, "value\n\"\"\n1\n\"\"\n", tree(t, dir)["a.csv"])
	got := outcome(t, csvOf(dir, CSVOptions{Header: true, Types: map[string]string{"value": "int64"}}))
	require.Len(t, got, 4)
	require.Contains(t, got[1], "| null")
}

func TestWriteCSVRefusesNoColumns(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.csv": "1\n"})
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		WriteCSV(ReadCSV(b, dir, CSVOptions{Select: []string{}}), filepath.Join(t.TempDir(), "x.csv"), CSVWriteOptions{})
		return nil
	}, "WriteCSV", "no columns")
}

func TestWriteCSVRefusesNullsThatAreValues(t *testing.T) {
	columns := []string{"t utf8 null", "i int64 null", "u uint8 null", "f float32 null", "b bool null", "d date32 null",
		"when timestamp[ms] null", "x binary null", "v vector[2] null", "s sparse[9] null", "sure int64"}
	row := `[{"t": null, "i": null, "u": null, "f": null, "b": null, "d": null, "when": null, "x": null, "v": null, "s": null, "sure": 5}]`
	rec := batchtest.Record(t, batchtest.Allocator(t), batchtest.Schema(t, columns...), row)
	defer rec.Release()
	write := func(null string, names ...string) func(b *engine.Builder) *engine.Dataset {
		path := filepath.Join(t.TempDir(), "x.csv")
		return func(b *engine.Builder) *engine.Dataset {
			d := Select(fromRecords(b, []arrow.Record{rec}), names...)
			WriteCSV(d, path, CSVWriteOptions{Null: null})
			return nil
		}
	}
	for _, c := range []struct{ null, column string }{
		{"5", "i"}, {"-999", "i"}, {"5", "u"}, {"NaN", "f"}, {"-1", "f"}, {"inf", "f"}, {"true", "b"}, {"0", "b"},
		{"1970-01-01", "d"}, {"1970-01-01T00:00:00", "when"}, {"NULL", "x"}, {"[1 2]", "v"}, {"[]", "s"},
	} {
		requireMisuse(t, write(c.null, "t", "sure", c.column), "WriteCSV", "write_csv_test.go:",
			fmt.Sprintf("the spelling %q of a missing value is also a value of column %q, which is ", c.null, c.column))
	}
	for _, c := range []struct{ null, column string }{
		{"5", "t"}, {"NaN", "t"}, {"NA", "i"}, {"256", "u"}, {"-1", "u"}, {"NULL", "f"}, {"yes", "b"}, {"5", "d"}, {"?", "when"}, {"NA", "x"}, {"NA", "v"}, {"", "x"},
	} {
		build := write(c.null, "sure", c.column)
		require.NoError(t, runSink(t, func(b *engine.Builder) { build(b) }), "%v", c)
	}
	requireMisuse(t, write("256", "t", "u", "i"), `column "i"`)
}

// The job reads a file, drops some of its rows and writes the other rows to another file.
func Example_files() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "cities.csv"), filepath.Join(dir, "large.csv")
	text := "city,people\nBrno,402739\n\"Aix-en-Provence\",147122\nVaduz,5774\n"
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}

	type city struct {
		City   string
		People int64
	}
	job := engine.Anonymous(func(b *engine.Builder) error {
		cities := ReadCSV(b, in, CSVOptions{Header: true})
		large := Filter(cities, func(c city) bool { return c.People > 100_000 })
		WriteCSV(large, out, CSVWriteOptions{Delimiter: ';'})
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		log.Fatal(err)
	}
	defer result.Release()
	written, err := os.ReadFile(out)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(written))
	// Output:
	// city;people
	// Brno;402739
	// Aix-en-Provence;147122
}
