package operators

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// kinds is a row with a column of each kind.
type kinds struct {
	ID     int64
	Flag   bool
	Small  *int8
	Real   float64
	Text   *string
	Raw    []byte
	At     time.Time
	Dense  []float64 `column:"dense,dim=3"`
	Loose  []float32
	Sparse batch.SparseVector
}

// recordingFile is a RowFile that records which columns are requested.
type recordingFile struct {
	RowFile
	mu    *sync.Mutex
	asked *[]string
}

func (f recordingFile) Rows(row int64, columns []int, mem columnar.Allocator) (RowCursor, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range columns {
		if name := arrowrows.Arrow(f.Schema()).Field(c).Name; !slices.Contains(*f.asked, name) {
			*f.asked = append(*f.asked, name)
		}
	}
	return f.RowFile.Rows(row, columns, mem)
}

// TestColumnsThatNobodyLooksAt puts operators that name the columns they read after a source,
// and requires that no other columns are read from the file. The results must be the same if an
// operator that may read all columns is added in between.
func TestColumnsThatNobodyLooksAt(t *testing.T) {
	rows := make([]kinds, 60)
	for i := range rows {
		text := fmt.Sprint("row ", i)
		small := int8(i)
		rows[i] = kinds{ID: int64(i), Flag: i%2 == 0, Real: float64(i) / 3, Raw: []byte{byte(i)}, At: time.UnixMicro(int64(i)).UTC(),
			Dense: []float64{1, float64(i), math.Pi}, Loose: make([]float32, i%3), Sparse: batch.SparseVector{Indices: []int32{int32(i)}, Values: []float64{2}}}
		if i%5 > 0 {
			rows[i].Text, rows[i].Small = &text, &small
		}
	}
	path := filepath.Join(t.TempDir(), "rows.arrow")
	runOnly(t, func(b *engine.Builder) *engine.Dataset {
		d := FromSlice(b, rows)
		WriteArrow(d, path, ArrowWriteOptions{})
		return d
	})
	type short struct {
		ID   int64
		Text *string
	}
	for name, c := range map[string]struct {
		build func(d *engine.Dataset) *engine.Dataset
		asked string
	}{
		"all":    {func(d *engine.Dataset) *engine.Dataset { return Rebalance(d) }, "at dense flag id loose raw real small sparse text"},
		"select": {func(d *engine.Dataset) *engine.Dataset { return Select(PartitionByHash(d, "small"), "dense", "id") }, "dense id small"},
		"map":    {func(d *engine.Dataset) *engine.Dataset { return Map(d, func(r short) short { return r }) }, "id text"},
		"filter": {func(d *engine.Dataset) *engine.Dataset {
			return Select(Filter(d, func(r struct{ Flag bool }) bool { return r.Flag }), "sparse")
		}, "flag sparse"},
		"column": {func(d *engine.Dataset) *engine.Dataset {
			return Select(WithColumn(Rename(d, "id", "number"), "real", func(r short2) float64 { return float64(r.Number) }), "real", "at")
		}, "at id"},
		"vectors": {func(d *engine.Dataset) *engine.Dataset { return Select(Vectorize(d, "v", "id", "real"), "v") }, "id real"},
		"groups": {func(d *engine.Dataset) *engine.Dataset {
			return GroupBy(d, "flag").Aggregate(SumOf("real"), CountRows())
		}, "flag real"},
		"sum":   {func(d *engine.Dataset) *engine.Dataset { return Aggregate(d, SumOf("id")) }, "id"},
		"count": {func(d *engine.Dataset) *engine.Dataset { return Count(Sample(d, 0.5, SampleOptions{Seed: 1})) }, ""},
		"join": {func(d *engine.Dataset) *engine.Dataset {
			return Join(d, d, On("raw"), Inner, func(l, _ *short) short { return *l })
		}, "id raw text"},
		"semi": {func(d *engine.Dataset) *engine.Dataset { return Select(SemiJoin(d, First(d, 9), On("at")), "loose") }, "at loose"},
		"two": {func(d *engine.Dataset) *engine.Dataset {
			return Union(Select(d, "id"), Select(Distinct(d, "flag"), "id"))
		}, "flag id"},
		"nobody knows": {func(d *engine.Dataset) *engine.Dataset { return Select(lookAtAll(d), "id") }, "at dense flag id loose raw real small sparse text"},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(between func(*engine.Dataset) *engine.Dataset, opts ...engine.Option) (lines []string, asked string) {
				var mu sync.Mutex
				var columns []string
				format := RowFormat{Op: "ReadArrow", Open: func(r io.ReaderAt, size int64) (RowFile, error) {
					f, err := openArrow(r, size)
					return recordingFile{f, &mu, &columns}, err
				}}
				lines = outcome(t, func(b *engine.Builder) *engine.Dataset {
					return c.build(between(ReadRowFiles(b, nil, path, format)))
				}, append(opts, engine.Shards(testShards))...)
				slices.Sort(columns)
				return lines, strings.Join(columns, " ")
			}
			want, _ := read(lookAtAll)
			for _, s := range []setting{{1, 1024, 0}, {3, 7, 0}, {3, 7, 2}} {
				got, asked := read(func(d *engine.Dataset) *engine.Dataset { return d }, s.options()...)
				require.Equal(t, want, got)
				require.Equal(t, c.asked, asked)
			}
		})
	}
}

type short2 struct{ Number int64 }

// lookAtAll adds an operator that may read all columns.
func lookAtAll(d *engine.Dataset) *engine.Dataset {
	return d.Builder().Add(engine.Spec{Op: "Look", Schema: d.Schema(), Inputs: []engine.Port{{From: d}}, RowByRow: true, Operator: func() engine.Operator { return forwarder{} }})
}
