package parquet

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// benchmarkRows returns rows of a column of the given type. About every nulls-th value is null;
// if nulls is 0, no value is null. The other values are drawn from the given number of
// different values.
func benchmarkRows(b *testing.B, kind string, nulls, different int) arrow.Record {
	const rows = 400_000
	if nulls > 0 {
		kind += " null"
	}
	builder := array.NewRecordBuilder(memory.NewGoAllocator(), batchtest.Schema(b, "x "+kind))
	defer builder.Release()
	for i := range rows {
		v := i * 7919 % different
		if nulls > 0 && v%nulls == 0 {
			builder.Field(0).AppendNull()
			continue
		}
		switch f := builder.Field(0).(type) {
		case *array.Float64Builder:
			f.Append(float64(v) / 8)
		case *array.Float32Builder:
			f.Append(float32(v) / 8)
		case *array.Int64Builder:
			f.Append(int64(v))
		case *array.Int32Builder:
			f.Append(int32(v))
		case *array.Int8Builder:
			f.Append(int8(v))
		case *array.TimestampBuilder:
			f.Append(arrow.Timestamp(v))
		case *array.BooleanBuilder:
			f.Append(v%3 == 0)
		case *array.StringBuilder:
			f.Append(fmt.Sprint("text ", v))
		case *array.ListBuilder:
			f.Append(true)
			f.ValueBuilder().(*array.Float64Builder).AppendValues([]float64{float64(v), 1, 2}[:1+v%3], nil)
		}
	}
	return builder.NewRecord()
}

// BenchmarkRead reads files of one column, in each encoding that the column's type can have.
func BenchmarkRead(b *testing.B) {
	const many, few = 400_000, 1000
	delta, lengths, prefixes := pq.WithEncoding(pq.Encodings.DeltaBinaryPacked), pq.WithEncoding(pq.Encodings.DeltaLengthByteArray), pq.WithEncoding(pq.Encodings.DeltaByteArray)
	plain := pq.WithEncoding(pq.Encodings.Plain)
	none, version2 := pq.WithCompression(compress.Codecs.Uncompressed), pq.WithDataPageVersion(pq.DataPageV2)
	for _, c := range []struct {
		name, kind       string
		nulls, different int
		dictionary       bool
		properties       []pq.WriterProperty
	}{
		{"float64 plain", "float64", 0, many, false, []pq.WriterProperty{plain}},
		{"float64 plain null", "float64", 7, many, false, []pq.WriterProperty{plain}},
		{"float64 plain half null", "float64", 2, many, false, []pq.WriterProperty{plain, none}},
		{"float64 dictionary", "float64", 0, few, true, nil},
		{"float64 dictionary null", "float64", 7, few, true, nil},
		{"float32 plain null v2", "float32", 7, many, false, []pq.WriterProperty{plain, version2}},
		{"int64 plain", "int64", 0, many, false, []pq.WriterProperty{plain, none}},
		{"int64 plain null", "int64", 7, many, false, []pq.WriterProperty{plain}},
		{"int64 dictionary null", "int64", 7, few, true, nil},
		{"int64 delta", "int64", 0, many, false, []pq.WriterProperty{delta}},
		{"int64 delta null", "int64", 7, many, false, []pq.WriterProperty{delta}},
		{"int32 dictionary", "int32", 0, few, true, nil},
		{"int32 delta null", "int32", 7, many, false, []pq.WriterProperty{delta}},
		{"int8 plain null", "int8", 7, few, false, []pq.WriterProperty{plain}},
		{"timestamp null", "timestamp[us]", 7, many, false, []pq.WriterProperty{plain}},
		{"bool", "bool", 0, many, false, []pq.WriterProperty{plain}},
		{"bool null", "bool", 7, many, false, []pq.WriterProperty{plain}},
		{"utf8 plain", "utf8", 0, many, false, []pq.WriterProperty{plain}},
		{"utf8 plain null", "utf8", 7, many, false, []pq.WriterProperty{plain}},
		{"utf8 dictionary", "utf8", 0, few, true, nil},
		{"utf8 dictionary null", "utf8", 7, few, true, nil},
		{"utf8 lengths null", "utf8", 7, many, false, []pq.WriterProperty{lengths}},
		{"utf8 prefixes null", "utf8", 7, many, false, []pq.WriterProperty{prefixes}},
		{"lists plain", "vector", 0, many, false, []pq.WriterProperty{plain}},
		{"lists dictionary", "vector", 7, few, true, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			rec := benchmarkRows(b, c.kind, c.nulls, c.different)
			var out bytes.Buffer
			properties := append([]pq.WriterProperty{pq.WithCompression(compress.Codecs.Snappy), pq.WithDictionaryDefault(c.dictionary), pq.WithMaxRowGroupLength(1 << 16)}, c.properties...)
			w, err := pqarrow.NewFileWriter(rec.Schema(), &out, pq.NewWriterProperties(properties...), pqarrow.DefaultWriterProps())
			require.NoError(b, err)
			require.NoError(b, w.Write(rec))
			require.NoError(b, w.Close())
			b.SetBytes(rec.NumRows())
			b.ReportAllocs()
			for b.Loop() {
				f, err := open(bytes.NewReader(out.Bytes()), int64(out.Len()))
				require.NoError(b, err)
				rows, err := f.Rows(0, []int{0}, memory.NewGoAllocator())
				require.NoError(b, err)
				for got := 0; ; {
					batch, err := rows.Next(1024)
					if err == io.EOF {
						require.Equal(b, int(rec.NumRows()), got)
						break
					}
					require.NoError(b, err)
					got += batch.Len()
					batch.Release()
				}
			}
		})
	}
}
