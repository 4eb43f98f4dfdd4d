package batch_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

func TestTextRoundTrip(t *testing.T) {
	check(t, func(t *rapid.T, mem memory.Allocator) {
		rec := drawRecord(t, mem, drawSchema(t, allTypes, 1))
		defer rec.Release()
		b, err := batch.NewRecordBuilder(mem, rec.Schema())
		require.NoError(t, err)
		defer b.Release()
		for c := range int(rec.NumCols()) {
			p := batch.NewPrinter(rec.Column(c))
			for i := range int(rec.NumRows()) {
				text := batch.FormatValue(rec.Column(c), i)
				require.Equal(t, text, string(p.Append(nil, i)))
				require.Equal(t, rec.Column(c).IsNull(i), p.Null(i))
				if rec.Column(c).IsNull(i) {
					require.Empty(t, text)
					batch.AppendNull(b.Field(c))
					continue
				}
				require.NoError(t, batch.ParseInto(b.Field(c), []byte(text)))
			}
		}
		got, err := b.NewRecord()
		require.NoError(t, err)
		defer got.Release()
		require.Equal(t, oneNaN(lines(rec)), oneNaN(lines(got)))
	})
}

// oneNaN replaces every NaN in rows by math.NaN(), because texts do not preserve the bits of a
// NaN.
func oneNaN(rows []string) []string {
	for i := range rows {
		rows[i] = strings.ReplaceAll(rows[i], "f64:fff8000000000123", "f64:7ff8000000000001")
		rows[i] = strings.ReplaceAll(rows[i], "f32:ffc00000", "f32:7fc00000")
	}
	return rows
}

func TestFormatValue(t *testing.T) {
	mem := batchtest.Allocator(t)
	b := array.NewFloat64Builder(mem)
	defer b.Release()
	want := map[float64]string{
		0: "0", 1: "1", -1.5: "-1.5", 1234567: "1234567", 1e20: "100000000000000000000", 1e21: "1e+21", 0.0001: "0.0001",
		0.00001: "1e-05", 5.1: "5.1", math.Inf(1): "+Inf", math.Inf(-1): "-Inf", 5e-324: "5e-324", 1.0 / 3: "0.3333333333333333",
	}
	for x, text := range want {
		b.Append(x)
		arr := b.NewArray()
		require.Equal(t, text, batch.FormatValue(arr, 0))
		arr.Release()
	}
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "f float32", "r binary", "d date32", "t timestamp[us, Europe/Berlin]", "v vector[2]", "s sparse", "n int64 null", "b bool"),
		`[{"f": 0.1, "r": "/wA=", "d": "2000-02-29", "t": "2000-02-29T12:00:00.250", "v": [1, 0.1], "s": {"indices": [0, 7], "values": [1, 2.5]}, "b": true},
		  {"f": 3, "r": "", "d": "1969-12-31", "t": "1969-12-31T23:59:59", "v": [0, 0], "s": {"indices": [], "values": []}, "n": 7, "b": false}]`)
	defer rec.Release()
	rows := batchtest.Rows(rec)
	require.Equal(t, "0.1 | /wA= | 2000-02-29 | 2000-02-29T12:00:00.25Z | [1 0.1] | [0:1 7:2.5] | null | true", rows[0])
	require.Equal(t, "3 |  | 1969-12-31 | 1969-12-31T23:59:59Z | [0 0] | [] | 7 | false", rows[1])
}

func parseOne(t testing.TB, mem memory.Allocator, typ, text string) (string, error) {
	schema := batchtest.Schema(t, "c "+typ)
	b, err := batch.NewRecordBuilder(mem, schema)
	require.NoError(t, err)
	defer b.Release()
	perr := batch.ParseInto(b.Field(0), []byte(text))
	rec, err := b.NewRecord()
	require.NoError(t, err, "%s %q", typ, text)
	defer rec.Release()
	if perr != nil {
		require.Zero(t, rec.NumRows(), "after an error nothing may be appended")
		return "", perr
	}
	require.EqualValues(t, 1, rec.NumRows())
	return batch.FormatValue(rec.Column(0), 0), nil
}

func TestParseInto(t *testing.T) {
	mem := batchtest.Allocator(t)
	for _, c := range [][3]string{
		{"int64", "-9223372036854775808", "-9223372036854775808"}, {"int64", "9223372036854775807", "9223372036854775807"},
		{"int64", "+7", "7"}, {"int64", "007", "7"}, {"int64", "-0", "0"}, {"uint8", "-0", "0"}, {"int64", "0000000000000000000000000000001", "1"},
		{"uint64", "18446744073709551615", "18446744073709551615"}, {"int8", "-128", "-128"}, {"uint16", "65535", "65535"},
		{"float64", "1e3", "1000"}, {"float64", ".5", "0.5"}, {"float64", "5.", "5"}, {"float64", "-inf", "-Inf"}, {"float64", "nan", "NaN"},
		{"float64", "Infinity", "+Inf"}, {"float64", "1e-400", "0"}, {"float32", "0.1", "0.1"}, {"float32", "16777217", "16777216"},
		{"bool", "TRUE", "true"}, {"bool", "0", "false"}, {"utf8", " x ", " x "}, {"utf8", "", ""},
		{"date32", "2024-02-29", "2024-02-29"}, {"date32", "0000-01-01", "0000-01-01"}, {"date32", "-0001-12-31", "-0001-12-31"},
		{"timestamp[us, UTC]", "2024-01-02", "2024-01-02T00:00:00Z"}, {"timestamp[us, UTC]", "2024-01-02 03:04", "2024-01-02T03:04:00Z"},
		{"timestamp[us, Europe/Berlin]", "2024-01-02T03:04:05.123456+05:30", "2024-01-01T21:34:05.123456Z"}, {"timestamp[s, UTC]", "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00Z"},
		{"timestamp[us]", "2024-01-02", "2024-01-02T00:00:00"}, {"timestamp[us]", "2024-01-02 03:04", "2024-01-02T03:04:00"},
		{"timestamp[ms]", "2024-01-02T03:04:05.120", "2024-01-02T03:04:05.12"},
		{"vector[3]", "[1 2 3]", "[1 2 3]"}, {"vector[3]", "1,2 , 3", "[1 2 3]"}, {"vector[3]", " [ 1  2 3 ] ", "[1 2 3]"}, {"vector", "[]", "[]"},
		{"vector32", "[0.1]", "[0.1]"}, {"sparse[8]", "0:1 7:2.5", "[0:1 7:2.5]"}, {"sparse", "[]", "[]"},
	} {
		got, err := parseOne(t, mem, c[0], c[1])
		require.NoError(t, err, c)
		require.Equal(t, c[2], got, c)
	}
}

func TestParseIntoRefuses(t *testing.T) {
	mem := batchtest.Allocator(t)
	for _, c := range [][3]string{
		{"int64", "", "it is empty"}, {"int64", "9223372036854775808", "out of range"}, {"int64", "-9223372036854775809", "out of range"},
		{"int64", "99999999999999999999999", "out of range"}, {"int64", "1.0", "not a decimal number"}, {"int64", " 1", "not a decimal number"},
		{"int64", "-", "not a decimal number"}, {"int64", "99999999999999999999999x", "not a decimal number"}, {"uint8", "256", "out of range"},
		{"uint8", "-1", "out of range"}, {"int8", "128", "out of range"}, {"uint64", "18446744073709551616", "out of range"}, {"uint64", "-1", "out of range"},
		{"float64", "1e309", "out of range"}, {"float64", "0x1p4", "not a decimal number"}, {"float64", "1_000", "not a decimal number"},
		{"float64", "1.2.3", "not a decimal number"}, {"float64", "+nan", "not a decimal number"}, {"float32", "1e39", "out of range"},
		{"bool", "yes", "another form"}, {"bool", "", "empty"}, {"binary", "a", "illegal base64"},
		{"date32", "2023-02-29", "no such day"}, {"date32", "2023-13-01", "no such day"}, {"date32", "2023-1-1", "not a date"}, {"date32", "2023-01-01x", "another form"},
		{"date32", "20230-01-01", "not a date"}, {"date32", "+99999999-01-01", "out of range"},
		{"timestamp[us]", "2024-01-02T25:00", "not a time"}, {"timestamp[us]", "2024-01-02T00:00:00.1234567", "more decimals"}, {"timestamp[us]", "2024-01-02T00:00:00.", "not a time"},
		{"timestamp[ns]", "2300-01-01T00:00:00", "out of range"}, {"timestamp[ns, UTC]", "2300-01-01T00:00:00Z", "out of range"},
		{"timestamp[us]", "2024-01-02T00:00:00Z", "it has a time zone, and the type has none: that of such times is timestamp[us, UTC]"}, {"timestamp[ms]", "2024-01-02T00:00+02:00", "it has a time zone"}, {"timestamp[us]", "2024-01-02T00:00:00+5", "not a time"}, {"timestamp[us]", "2024-01-02x", "not a time"},
		{"vector[3]", "[1 2]", "it has 2 components"}, {"vector[3]", "[1 2 x]", "component 2, \"x\""}, {"vector[3]", "[1 2 3", "no closing bracket"}, {"vector", "", "empty"},
		{"vector", "1,,2", "empty"}, {"sparse[8]", "8:1", "not below the size"}, {"sparse", "1:1 1:2", "must ascend"}, {"sparse", "1", "not index:value"}, {"sparse", "-1:2", "out of range"},
	} {
		_, err := parseOne(t, mem, c[0], c[1])
		require.ErrorContains(t, err, c[2], c)
		require.ErrorContains(t, err, "is not a "+c[0], c)
	}
	_, err := parseOne(t, mem, "int64", strings.Repeat("x", 1000))
	require.Less(t, len(err.Error()), 200)
}

// TestDatesAgreeWithTime requires the same dates as package time, for the years 1 to 9999.
func TestDatesAgreeWithTime(t *testing.T) {
	mem := batchtest.Allocator(t)
	rapid.Check(t, func(rt *rapid.T) {
		us := rapid.Int64Range(-62135596800_000_000, 253402300799_999_999).Draw(rt, "us") // years 1 to 9999
		for zone, form := range map[string]string{"UTC": time.RFC3339Nano, "": "2006-01-02T15:04:05.999999999"} {
			b := array.NewTimestampBuilder(mem, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: zone})
			defer b.Release()
			b.Append(arrow.Timestamp(us))
			arr := b.NewArray()
			defer arr.Release()
			require.Equal(rt, time.UnixMicro(us).UTC().Format(form), batch.FormatValue(arr, 0))
		}
	})
}

func TestTextOfScalarsCostsNoAllocation(t *testing.T) {
	mem := memory.NewGoAllocator()
	for typ, text := range map[string]string{"int64": "123456", "int32": "-5", "uint64": "7", "float64": "5.125", "float32": "0.1", "bool": "true",
		"utf8": "setosa", "date32": "2024-02-29", "timestamp[us]": "2024-02-29T12:00:00.5"} {
		b, err := batch.NewRecordBuilder(mem, batchtest.Schema(t, "c "+typ))
		require.NoError(t, err)
		b.Field(0).Reserve(4000)
		if s, ok := b.Field(0).(*array.StringBuilder); ok {
			s.ReserveData(40000)
		}
		raw := []byte(text)
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			if err := batch.ParseInto(b.Field(0), raw); err != nil {
				panic(err)
			}
		}), typ)
		rec, err := b.NewRecord()
		require.NoError(t, err)
		buf := make([]byte, 0, 64)
		require.Zero(t, testing.AllocsPerRun(100, func() { buf = batch.AppendValue(buf[:0], rec.Column(0), 3) }), typ)
		require.Equal(t, text, string(buf))
	}
}

func FuzzParseInto(f *testing.F) {
	for i, text := range []string{"", "-128", "1e309", "0x1", "NaN", "true", "2024-02-29T12:00:00.5Z", "-0001-12-31", "[1 2 3]", "1:2 3:4", "aGk=", "[", "1,", "\xff"} {
		f.Add(uint8(i), []byte(text))
	}
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		mem := batchtest.Allocator(t)
		typ := allTypes[int(which)%len(allTypes)]
		got, err := parseOne(t, mem, typ, string(text))
		if err != nil {
			return
		}
		// The text of a value must parse to a value with the same text.
		again, err := parseOne(t, mem, typ, got)
		require.NoError(t, err, fmt.Sprintf("%s %q", typ, got))
		require.Equal(t, got, again)
	})
}
