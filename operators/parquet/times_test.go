package parquet

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/apache/arrow/go/v15/parquet/schema"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// readAll returns the columns and rows of a file, and the columns that were left out.
func readAll(t *testing.T, path string) (columns, rows []string, left map[string]string) {
	left = map[string]string{}
	result, err := run(t, memory.NewGoAllocator(), func(b *engine.Builder) {
		engine.Collect(Read(b, path, ReadOptions{LeaveOut: func(column, problem string) { left[column] = problem }}), "rows")
	})
	require.NoError(t, err)
	defer result.Release()
	s, err := result.Schema("rows")
	require.NoError(t, err)
	for _, c := range batch.Columns(arrowrows.Arrow(s)) {
		columns = append(columns, c.String())
	}
	recs, err := arrowbridge.Records(result, "rows")
	require.NoError(t, err)
	for _, rec := range recs {
		rows = append(rows, batchtest.Rows(rec)...)
	}
	return columns, rows, left
}

// TestTimesOfOthers requires that a time that is adjusted to UTC has the zone of the Arrow
// schema, or UTC without such a schema, and that other times have no zone. Durations must be
// refused if the Arrow schema distinguishes them from numbers.
func TestTimesOfOthers(t *testing.T) {
	const naive, utcs = "2020-07-01T12:00:00", "2020-07-01T12:00:00Z"
	const berlins = "2020-07-01T10:00:00Z"
	for name, want := range map[string]struct {
		columns []string
		first   string
		left    int
	}{
		"times": {[]string{"x float64 null", "naive s timestamp[ms] null", "naive ms timestamp[ms] null", "naive us timestamp[us] null", "naive ns timestamp[ns] null",
			"utc timestamp[us, UTC] null", "berlin s timestamp[ms, Europe/Berlin] null", "berlin timestamp[us, Europe/Berlin] null"},
			"1 | " + naive + " | " + naive + " | " + naive + " | " + naive + " | " + utcs + " | " + berlins + " | " + berlins, 1},
		"untold": {[]string{"x float64 null", "naive s timestamp[ms] null", "naive ms timestamp[ms] null", "naive us timestamp[us] null", "naive ns timestamp[ns] null",
			"utc timestamp[us, UTC] null", "berlin s timestamp[ms, UTC] null", "berlin timestamp[us, UTC] null", "took int64 null"},
			"1 | " + naive + " | " + naive + " | " + naive + " | " + naive + " | " + utcs + " | " + berlins + " | " + berlins + " | 90", 0},
		"times96": {[]string{"x float64 null", "naive us timestamp[ns] null", "berlin timestamp[ns, Europe/Berlin] null"}, "1 | " + naive + " | " + berlins, 0},
	} {
		path := filepath.Join("testdata", "times", name+".parquet")
		columns, rows, left := readAll(t, path)
		require.Equal(t, want.columns, columns, name)
		require.Len(t, rows, 3)
		require.Equal(t, want.first, rows[0], name)
		require.Len(t, left, want.left, name)
		if want.left > 0 {
			require.Equal(t, map[string]string{"took": "type duration[s] is not supported; write the column as a timestamp, or as a number"}, left)
			misuseOfTimes(t, path)
		}
	}
}

// misuseOfTimes requires an error if a column of durations is requested.
func misuseOfTimes(t *testing.T, path string) {
	_, err := run(t, memory.NewGoAllocator(), func(b *engine.Builder) {
		operators.Count(Read(b, path, ReadOptions{Columns: []string{"took"}}))
	})
	require.ErrorContains(t, err, `column "took": type duration[s] is not supported`)
}

// timed returns rows with times of every kind.
func timed(t *testing.T) arrow.Record {
	return batchtest.Record(t, memory.NewGoAllocator(), batchtest.Schema(t, "naive_s timestamp[s] null", "naive timestamp[us]", "naive_ns timestamp[ns] null", "utc timestamp[ms, UTC]",
		"berlin_s timestamp[s, Europe/Berlin] null", "berlin timestamp[us, Europe/Berlin]", "v vector[1]"),
		`[{"naive_s": 1, "naive": 2, "naive_ns": null, "utc": 4, "berlin_s": 5, "berlin": 6, "v": [0]},
		  {"naive_s": null, "naive": 8, "naive_ns": 9, "utc": 10, "berlin_s": null, "berlin": 12, "v": [1]}]`)
}

// TestTimesForOthers requires that a written file says whether times are adjusted to UTC and,
// for programs that use Arrow, which zone the times have.
func TestTimesForOthers(t *testing.T) {
	rec := timed(t)
	data := ours(t, rec, 1)
	r, err := file.NewParquetReader(bytes.NewReader(data))
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	root := r.MetaData().Schema.Root()
	for i, f := range rec.Schema().Fields() {
		want, ok := f.Type.(*arrow.TimestampType)
		if !ok {
			continue
		}
		logical := root.Field(i).LogicalType().(*schema.TimestampLogicalType)
		require.Equal(t, want.TimeZone != "", logical.IsAdjustedToUTC(), f.Name)
	}
	origin := decodeSchema(*r.MetaData().KeyValueMetadata().FindValue("ARROW:schema"), rec.Schema().NumFields())
	require.NotNil(t, origin)
	for i, want := range []string{"timestamp[ms]", "timestamp[us]", "timestamp[ns]", "timestamp[ms, UTC]", "timestamp[ms, Europe/Berlin]", "timestamp[us, Europe/Berlin]", "vector"} {
		require.Equal(t, want, batch.TypeName(origin.Field(i).Type))
	}
	path := filepath.Join(t.TempDir(), "x.parquet")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	requireRows(t, fewSettings, rec, func(b *engine.Builder) *engine.Dataset { return Read(b, path, ReadOptions{}) })

	// Without a zone other than UTC, the file must have no Arrow schema.
	plain, err := batch.Select(rec, []int{0, 1, 3})
	require.NoError(t, err)
	r, err = file.NewParquetReader(bytes.NewReader(ours(t, plain, 1)))
	require.NoError(t, err)
	require.Nil(t, r.MetaData().KeyValueMetadata().FindValue("ARROW:schema"))
}

// TestTimesOfEarlierVersions requires that files of earlier versions of this package are read
// with the right types, although these versions marked times without a zone as adjusted to UTC,
// and times with a zone as not adjusted. Times in files of other programs must be read as they
// are marked, even if the files have the metadata of this package.
func TestTimesOfEarlierVersions(t *testing.T) {
	rec := batchtest.Record(t, memory.NewGoAllocator(), batchtest.Schema(t, "naive timestamp[us]", "berlin timestamp[us, Europe/Berlin]"), `[{"naive": 2, "berlin": 6}]`)
	told, err := json.Marshal(batch.Columns(rec.Schema()))
	require.NoError(t, err)
	metadata := arrow.NewMetadata([]string{columnsKey}, []string{string(told)})
	rec = array.NewRecord(arrow.NewSchema(rec.Schema().Fields(), &metadata), rec.Columns(), 1)
	for by, want := range map[string][]string{
		"superstep": {"naive timestamp[us]", "berlin timestamp[us, Europe/Berlin]"},
		"another":   {"naive timestamp[us, UTC]", "berlin timestamp[us]"},
	} {
		var out bytes.Buffer
		w, err := pqarrow.NewFileWriter(rec.Schema(), &out, pq.NewWriterProperties(pq.WithCreatedBy(by)), pqarrow.DefaultWriterProps())
		require.NoError(t, err)
		require.NoError(t, w.Write(rec))
		require.NoError(t, w.Close())
		path := filepath.Join(t.TempDir(), "x.parquet")
		require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
		columns, _, _ := readAll(t, path)
		require.Equal(t, want, columns, by)
	}
}

// TestTimesOf96Bits requires that times of 96 bits are converted correctly. Such a time has the
// number of nanoseconds since midnight and the number of the day; 2440588 is the first day of
// 1970. Day 0, which other programs write if there is no time, must be read as the beginning of
// 1970.
func TestTimesOf96Bits(t *testing.T) {
	for _, c := range []struct {
		day  uint32
		in   uint64
		want int64
	}{
		{2440588, 0, 0}, {2440588, 7, 7}, {2440589, 7, 86_400_000_000_007}, {2440587, 1, 1 - 86_400_000_000_000},
		{2440588 + 20000, 86_399_999_999_999, 20_001*86_400_000_000_000 - 1}, {0, 0, 0}, {0, 5, 0},
	} {
		var at pq.Int96
		binary.LittleEndian.PutUint64(at[:], c.in)
		binary.LittleEndian.PutUint32(at[8:], c.day)
		require.Equal(t, c.want, nanoseconds(at), c)
	}
}
