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

// writeUnsupported writes 30 rows as an Arrow file and as a Parquet file. The columns x and y
// are numbers. The columns none, price and pair have types that are not supported.
func writeUnsupported(t *testing.T, w *testDir, arrowName, parquetName string) {
	mem := memory.NewGoAllocator()
	decimal := &arrow.Decimal128Type{Precision: 9, Scale: 2}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "none", Type: arrow.Null, Nullable: true},
		{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "price", Type: decimal, Nullable: true},
		{Name: "y", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "pair", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}), Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(mem, schema)
	for i := range 30 {
		for _, c := range []int{0, 2, 4} {
			b.Field(c).AppendNull()
		}
		b.Field(1).(*array.Float64Builder).Append(float64(i))
		b.Field(3).(*array.Float64Builder).Append(float64(3*i + 1))
	}
	rec := b.NewRecord()
	var out bytes.Buffer
	stream := ipc.NewWriter(&out, ipc.WithSchema(schema))
	require.NoError(t, stream.Write(rec))
	require.NoError(t, stream.Close())
	w.write(arrowName, out.String())
	out.Reset()
	file, err := pqarrow.NewFileWriter(schema, &out, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, file.Write(rec))
	require.NoError(t, file.Close())
	w.write(parquetName, out.String())
}

// TestColumnsThatCannotBeRead requires that columns of unsupported types are left out with one
// warning, and that a flag that names such a column is an error.
func TestColumnsThatCannotBeRead(t *testing.T) {
	w := newTestDir(t)
	writeUnsupported(t, w, "t.arrow", "t.parquet")
	for _, file := range []string{"t.arrow", "t.parquet"} {
		note := "warning: columns of " + file + " whose types are not supported are left out: "
		told := func(line string) string {
			code, out, errOut := w.run(line + " --if-exists replace")
			require.Zero(t, code, errOut)
			require.Equal(t, 1, strings.Count(errOut, note), errOut)
			require.Contains(t, errOut, `"price" (decimal(9, 2))`)
			return out
		}
		told("train linear --label y --model m.json --input " + file)
		require.Contains(t, w.read("m.json"), `"inputs":[{"column":"x","type":"float64"}]`)
		told("predict --model m.json --output p.csv --input " + file)
		require.Len(t, w.table("p.csv"), 30)
		require.Equal(t, "1", w.table("p.csv")[0]["y"])
		require.Len(t, w.table("p.csv")[0], 3)
		code, out, errOut := w.run("evaluate --model m.json --label y --input " + file)
		require.Zero(t, code, errOut)
		require.Contains(t, out, "r2")

		const why = ": type decimal(9, 2) is not supported; write the column as float64"
		w.fails(1, "train linear --label y --features x,price --model n.json --input "+file, `--features: column "price" of `+file+why)
		w.fails(1, "train linear --label price --model n.json --input "+file, `--label: column "price" of `+file+why)
		w.fails(1, "predict --model m.json --keep price --output n.csv --input "+file, `--keep: column "price" of `+file+why)
		w.fails(1, "evaluate --model m.json --label price --input "+file, `--label: column "price" of `+file+why)
	}
	w.write("named.csv", "price,y\n1,2\n2,4\n3,5\n")
	w.ok("train linear --label y --input named.csv --model named.json")
	w.fails(1, "predict --model named.json --input t.parquet --output n.csv", `column "price" of t.parquet, which the model reads: type decimal(9, 2) is not supported`)
}

// TestLateValuesOfColumnsThatNobodyReads requires that a value that does not fit the inferred
// type of its column makes a job fail only if the job uses the column. The message must name
// the flags that help. The value comes after the rows from which the type is inferred.
func TestLateValuesOfColumnsThatNobodyReads(t *testing.T) {
	w := newTestDir(t)
	var rows strings.Builder
	rows.WriteString("x,y,code\n")
	for i := range 40 {
		code := fmt.Sprint(i)
		if i == 30 {
			code = "A7"
		}
		fmt.Fprintf(&rows, "%d,%d,%s\n", i, 2*i%9, code)
	}
	w.write("t.csv", rows.String())
	const all = " --infer-rows 10 --if-exists replace --input t.csv "
	w.ok("train linear --label y --features x --model m.json" + all)
	w.ok("train gbdt --label y --features x --model g.json --objective squared --rounds 2 --test t.csv" + all)
	w.ok("evaluate --model m.json --label y --infer-rows 10 --input t.csv")
	for _, ending := range []string{"csv", "arrow", "parquet"} {
		w.ok("predict --model m.json --keep x --output p." + ending + all)
	}
	w.ok("evaluate --kind regression --label y --prediction x --infer-rows 10 --input t.csv")

	const why = `t.csv:32: column "code": cannot read "A7" as int64: it is not a whole number; the type was inferred from the first 10 rows: give column "code" a type with --types, or infer from more rows with --infer-rows`
	w.fails(1, "predict --model m.json --output p.parquet"+all, why)
	w.fails(1, "predict --model m.json --keep code --output p.arrow"+all, why)
	w.fails(1, "train linear --label y --model n.json"+all, why)
	w.fails(1, "evaluate --kind regression --label y --prediction code --infer-rows 10 --input t.csv", why)
	w.ok("predict --model m.json --output p.parquet --types code=utf8" + all)
}
