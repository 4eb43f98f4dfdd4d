//go:build !race

package builtin_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/stretchr/testify/require"
)

// writeTyped writes 40 rows to the files name.arrow and name.parquet. Column x has the numbers 0
// to 39. fields has the other columns, and row appends the cells of row i to the builders of
// these columns. The schema gets the given metadata.
func writeTyped(t *testing.T, w *testDir, name string, metadata map[string]string, fields []arrow.Field, row func(i int, b []array.Builder)) {
	m := arrow.MetadataFrom(metadata)
	schema := arrow.NewSchema(append([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Float64}}, fields...), &m)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
	for i := range 40 {
		b.Field(0).(*array.Float64Builder).Append(float64(i))
		row(i, b.Fields()[1:])
	}
	rec := b.NewRecord()
	var out bytes.Buffer
	stream := ipc.NewWriter(&out, ipc.WithSchema(schema))
	require.NoError(t, stream.Write(rec))
	require.NoError(t, stream.Close())
	w.write(name+".arrow", out.String())
	out.Reset()
	file, err := pqarrow.NewFileWriter(schema, &out, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, file.Write(rec))
	require.NoError(t, file.Close())
	w.write(name+".parquet", out.String())
}

// warnedOf runs a command line that must succeed and returns its error output.
func (w *testDir) warnedOf(line string) string {
	w.t.Helper()
	code, _, errOut := w.run(line + " --if-exists replace")
	require.Zero(w.t, code, errOut)
	return errOut
}

// TestRoundedNumbers requires that integers that are rounded to float64 are reported for every
// file format. Integers that are read as classes or clusters must not be rounded.
func TestRoundedNumbers(t *testing.T) {
	w := newTestDir(t)
	const id = 9007199254740993
	fields := []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "class", Type: arrow.PrimitiveTypes.Int64}, {Name: "y", Type: arrow.PrimitiveTypes.Float64}}
	text := "x,id,class,y\n"
	writeTyped(t, w, "ids", nil, fields, func(i int, b []array.Builder) {
		b[0].(*array.Int64Builder).Append(id + int64(i))
		b[1].(*array.Int64Builder).Append(id + 2*int64(i*7%2))
		b[2].(*array.Float64Builder).Append(float64(i % 5))
		text += fmt.Sprintf("%d,%d,%d,%d\n", i, id+i, id+2*(i*7%2), i%5)
	})
	w.write("ids.csv", text)
	for file, place := range map[string]string{"ids.csv": "ids.csv:2", "ids.arrow": "ids.arrow, row 1", "ids.parquet": "ids.parquet, row 1"} {
		ids := `warning: column "id" has 20 whole numbers beyond 2^53 that are rounded as numbers, the first at ` + place + `: "9007199254740993"`
		classes := `warning: column "class" has 40 whole numbers beyond 2^53 that are rounded as numbers`
		for _, p := range []string{"1", "3"} {
			told := w.warnedOf("train linear --l2 1 --label y --features x,id --model m.json --parallelism " + p + " --input " + file)
			require.Equal(t, 1, strings.Count(told, ids), told)
			require.NotContains(t, told, `"class"`)
		}
		told := w.warnedOf("train linear --l2 1 --label y --model all.json --input " + file)
		require.Contains(t, told, ids)
		require.Contains(t, told, classes)
		require.Contains(t, w.warnedOf("predict --model m.json --output p.csv --input "+file), ids)
		require.NotContains(t, w.warnedOf("train linear --l2 1 --label y --features x --model x.json --input "+file), "2^53")
		require.NotContains(t, w.warnedOf("predict --model x.json --output p.csv --input "+file), "2^53")
		require.Contains(t, w.warnedOf("train linear --l2 1 --label class --features x --model c.json --input "+file), classes)
		require.Contains(t, w.warnedOf("train linear --l2 1 --label y --features x --weight id --model c.json --input "+file), ids)

		for _, how := range []string{"logistic --l2 1", "gbdt --objective logistic --rounds 2", "kmeans --k 2"} {
			require.NotContains(t, w.warnedOf("train "+how+" --label class --features x --model c.json --input "+file), "2^53", how)
			code, _, errOut := w.run("evaluate --label class --model c.json --input " + file)
			require.Zero(t, code, errOut)
			require.NotContains(t, errOut, "2^53", how)
		}
		for _, how := range []string{"--kind multiclass --prediction class", "--kind clustering --prediction class"} {
			code, out, errOut := w.run("evaluate --label class " + how + " --input " + file)
			require.Zero(t, code, errOut)
			require.NotContains(t, errOut, "2^53", how)
			require.Regexp(t, `(?m)^(accuracy|purity) +1$`, out)
		}
		_, _, told = w.run("evaluate --label class --kind regression --prediction id --input " + file)
		require.Contains(t, told, ids)
		require.Contains(t, told, classes)
	}
}

// TestIndexOfPandas requires that an index column of pandas is a feature only if a flag names
// it, and that otherwise one warning reports this.
func TestIndexOfPandas(t *testing.T) {
	w := newTestDir(t)
	fields := []arrow.Field{{Name: "y", Type: arrow.PrimitiveTypes.Float64}, {Name: "__index_level_0__", Type: arrow.PrimitiveTypes.Int64}}
	pandas := map[string]string{"pandas": `{"index_columns": ["__index_level_0__"], "columns": []}`}
	writeTyped(t, w, "t", pandas, fields, func(i int, b []array.Builder) {
		b[0].(*array.Float64Builder).Append(float64(3 * i % 7))
		b[1].(*array.Int64Builder).Append(int64(i * i % 11))
	})
	for _, file := range []string{"t.arrow", "t.parquet"} {
		note := `warning: column "__index_level_0__" of ` + file + ` is an index of pandas, and is left out of the features: --features can name it`
		told := w.warnedOf("train linear --label y --model m.json --test " + file + " --input " + file)
		require.Equal(t, 1, strings.Count(told, note), told)
		require.Contains(t, w.read("m.json"), `"inputs":[{"column":"x","type":"float64"}]`)
		require.NotContains(t, w.warnedOf("predict --model m.json --output p.csv --input "+file), "index")
		require.NotContains(t, w.warnedOf("train linear --label y --features x,__index_level_0__ --model m.json --input "+file), "index of pandas")
		require.Contains(t, w.read("m.json"), `"__index_level_0__"`)
		require.NotContains(t, w.warnedOf("train linear --label __index_level_0__ --model m.json --input "+file), "index of pandas")
	}
	writeTyped(t, w, "x", map[string]string{"pandas": `{"index_columns": ["x"]}`}, fields[:1], func(i int, b []array.Builder) { b[0].(*array.Float64Builder).Append(float64(i)) })
	w.fails(1, "train linear --label y --input x.parquet --model n.json", `x.parquet has no column left to predict from, as "x" is an index of pandas: --features can name it`)
}

// TestTimesAreNoFeatures requires that a column of timestamps, dates or bytes is not accepted as
// a feature. If a flag names such a column, the error must name the type of the column and a
// remedy.
func TestTimesAreNoFeatures(t *testing.T) {
	w := newTestDir(t)
	fields := []arrow.Field{{Name: "y", Type: arrow.PrimitiveTypes.Float64}, {Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond}},
		{Name: "day", Type: arrow.FixedWidthTypes.Date32}, {Name: "raw", Type: arrow.BinaryTypes.Binary}}
	writeTyped(t, w, "t", nil, fields, func(i int, b []array.Builder) {
		b[0].(*array.Float64Builder).Append(float64(i))
		b[1].(*array.TimestampBuilder).Append(arrow.Timestamp(i))
		b[2].(*array.Date32Builder).Append(arrow.Date32(i))
		b[3].(*array.BinaryBuilder).Append([]byte("a"))
	})
	const train = "train linear --label y --model n.json --input t.arrow"
	const way = ", not a number: derive a column of numbers from it, such as the hour or the days since the first"
	told := w.fails(1, train+" --features x,at", `--features: column "at" of t.arrow is timestamp[us]`+way)
	require.NotContains(t, told, "name the columns")
	w.fails(1, train+" --features x,day", `--features: column "day" of t.arrow is date32`+way)
	w.fails(1, train+" --features x,raw", `--features: column "raw" of t.arrow is binary, not a number: write it as a column of numbers or of text`)
	w.fails(1, train, `column "at" of t.arrow is timestamp[us], not a number: name the columns to use with --features`)
}

// TestTrueAndFalseAsNumbers requires that a model trained on numbers reads true and false as 1
// and 0, in every file format.
func TestTrueAndFalseAsNumbers(t *testing.T) {
	w := newTestDir(t)
	fields := []arrow.Field{{Name: "b", Type: arrow.FixedWidthTypes.Boolean}, {Name: "y", Type: arrow.PrimitiveTypes.Float64}}
	numbers, words := "x,b,y\n", "x,b,y\n"
	writeTyped(t, w, "bools", nil, fields, func(i int, b []array.Builder) {
		b[0].(*array.BooleanBuilder).Append(i%3 == 0)
		b[1].(*array.Float64Builder).Append(float64(i % 5))
		number, word := 0, "False"
		if i%3 == 0 {
			number, word = 1, "True"
		}
		numbers += fmt.Sprintf("%d,%d,%d\n", i, number, i%5)
		words += fmt.Sprintf("%d,%s,%d\n", i, word, i%5)
	})
	w.write("numbers.csv", numbers)
	w.write("bools.csv", words)
	w.ok("train linear --label y --input numbers.csv --model m.json")
	predicted := func(file string) (got []string) {
		w.ok("predict --model m.json --keep x --output p.csv --if-exists replace --input " + file)
		for _, row := range w.table("p.csv") {
			got = append(got, row["prediction"])
		}
		return got
	}
	want := predicted("numbers.csv")
	for _, file := range []string{"bools.csv", "bools.parquet", "bools.arrow"} {
		require.Equal(t, want, predicted(file), file)
		w.ok("evaluate --model m.json --label y --input " + file)
		w.ok("train linear --label y --input numbers.csv --model n.json --if-exists replace --test " + file)
	}
	w.fails(1, "predict --model m.json --output q.csv --types b=float64 --input bools.csv", `cannot read "True" as float64`)
	w.write("mixed.csv", "x,b\n1,0\n2,True\n")
	w.fails(1, "predict --model m.json --output q.csv --input mixed.csv", `mixed.csv:3: column "b": cannot read "True" as float64`)
}
