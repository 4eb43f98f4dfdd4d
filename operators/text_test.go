package operators

import (
	"bytes"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/shared/sharding"
)

type noted struct {
	ID   int64
	Note *string
}

// note returns a row whose text is not UTF-8 if bad is true.
func note(id int64, bad bool) noted {
	text := "grün"
	if bad {
		text = "a\xff"
	}
	return noted{id, &text}
}

// textRecord returns a batch of one text column. It does not check the values: for example, two
// consecutive values may be the two halves of a character, which are valid UTF-8 only if they
// are concatenated.
func textRecord(values ...string) arrow.Record {
	schema := arrow.NewSchema([]arrow.Field{{Name: "note", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.StringBuilder).AppendValues(values, nil)
	return b.NewRecord()
}

// TestTextIsUTF8 requires that, if a function returns text that is not UTF-8, its operator
// fails before the text is written to an output.
func TestTextIsUTF8(t *testing.T) {
	const want = `column "note"`
	rows := func(b *engine.Builder) *engine.Dataset { return Range(b, 0, 100) }
	for name, c := range map[string]struct {
		build func(b *engine.Builder) *engine.Dataset
		where string
	}{
		// Row 37 of the 100 rows is the first row of shard 3, so row 42 has index 5 within the
		// shard.
		"Map": {func(b *engine.Builder) *engine.Dataset {
			return Map(rows(b), func(v int64) noted { return note(v, v == 42) })
		}, "operator Map (text_test.go:"},
		"FlatMap": {func(b *engine.Builder) *engine.Dataset {
			return FlatMap(rows(b), func(v int64, emit func(noted)) error { emit(note(v, false)); emit(note(v, v == 42)); return nil })
		}, "operator FlatMap (text_test.go:"},
		"Generate": {func(b *engine.Builder) *engine.Dataset {
			return Generate(b, 100, func(_ sharding.Random, i int64) noted { return note(i, i == 42) })
		}, "operator Generate (text_test.go:"},
		"WithColumn": {func(b *engine.Builder) *engine.Dataset {
			return WithColumn(rows(b), "note", func(v int64) string { return *note(v, v == 42).Note })
		}, "operator WithColumn (text_test.go:"},
		"Reduce": {func(b *engine.Builder) *engine.Dataset {
			return Reduce(Map(rows(b), func(v int64) noted { return note(v, false) }), func(l, r noted) noted { return note(r.ID, true) })
		}, "operator ReduceShards (text_test.go:"},
		"MapBatch": {func(b *engine.Builder) *engine.Dataset {
			return MapBatch(rows(b), arrowrows.Schema(textRecord().Schema()), ofRecords(func(*engine.Context, arrow.Record) (arrow.Record, error) { return textRecord("x", "a\xff"), nil }))
		}, "operator MapBatch (text_test.go:"},
		"MapBatch within a character": {func(b *engine.Builder) *engine.Dataset {
			return MapBatch(rows(b), arrowrows.Schema(textRecord().Schema()), ofRecords(func(*engine.Context, arrow.Record) (arrow.Record, error) { return textRecord("\xc3", "\xbc"), nil }))
		}, "operator MapBatch (text_test.go:"},
	} {
		t.Run(name, func(t *testing.T) {
			err := runSink(t, func(b *engine.Builder) { Print(c.build(b), PrintOptions{Writer: &bytes.Buffer{}}) })
			require.ErrorContains(t, err, c.where)
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, "is not UTF-8")
			require.ErrorContains(t, err, "[]byte")
			if name == "Map" || name == "FlatMap" || name == "WithColumn" {
				require.ErrorContains(t, err, "shard 3: row 5 of the shard: ")
			}
		})
	}
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return FromSlice(b, []noted{note(1, false), note(2, true)}) }, "row 1", want, "is not UTF-8")
}

// TestTextIsWrittenAsUTF8 requires that rows of files may have invalid text, that functions can
// repair it, and that sinks return an error for invalid text.
func TestTextIsWrittenAsUTF8(t *testing.T) {
	rows := func(b *engine.Builder) *engine.Dataset {
		return fromRecords(b, []arrow.Record{textRecord("x", "y", "z"), textRecord("ü", "\xff", "")})
	}
	for op, write := range map[string]func(d *engine.Dataset, path string){
		"WriteCSV":   func(d *engine.Dataset, path string) { WriteCSV(d, path, CSVWriteOptions{}) },
		"WriteArrow": func(d *engine.Dataset, path string) { WriteArrow(d, path, ArrowWriteOptions{PerShard: true}) },
		"Print":      func(d *engine.Dataset, _ string) { Print(d, PrintOptions{Writer: &bytes.Buffer{}}) },
	} {
		path := t.TempDir() + "/out"
		for _, rowsEach := range []int{1, 1024} {
			err := runSink(t, func(b *engine.Builder) { write(rows(b), path) }, engine.Shards(2), engine.BatchRows(rowsEach))
			require.ErrorContains(t, err, "operator "+op+" (text_test.go:")
			require.ErrorContains(t, err, "shard 1: ")
			require.ErrorContains(t, err, `row 1 of the shard: column "note": "\xff" is not UTF-8`)
			require.NoFileExists(t, path)
			require.NoDirExists(t, path)
		}
	}
	requireRows(t, "value utf8", []string{"1 | x", "2 | y", "3 | z", "5 | ü", "6 | ?", "7 | "}, func(b *engine.Builder) *engine.Dataset {
		return Map(rows(b), func(r struct{ Note string }) string { return strings.ToValidUTF8(r.Note, "?") })
	})
}

// TestTextOfNulls requires that invalid bytes in the values of nulls are accepted.
func TestTextOfNulls(t *testing.T) {
	values := memory.NewBufferBytes([]byte("a\xffü"))
	offsets := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, 2, 4}))
	data := array.NewData(arrow.BinaryTypes.String, 2, []*memory.Buffer{memory.NewBufferBytes([]byte{2}), offsets, values}, nil, 1, 0)
	schema := arrow.NewSchema([]arrow.Field{{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	rec := array.NewRecord(schema, []arrow.Array{array.MakeFromData(data)}, 2)
	var out bytes.Buffer
	require.NoError(t, runSink(t, func(b *engine.Builder) { Print(fromRecords(b, []arrow.Record{rec}), PrintOptions{Writer: &out}) }))
	require.Contains(t, out.String(), "null\nü\n")
}
