package operators

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
)

// shapes has a field of every shape that a vector can have.
type shapes struct {
	Array   [2]float64
	Array32 [3]float32  `column:"array32"`
	Fixed   []float64   `column:"fixed,dim=2"`
	Fixed32 []float32   `column:"fixed32,dim=1"`
	Any     []float64   `column:"any"`
	Any32   []float32   `column:"any32"`
	Maybe   *[2]float64 `column:"maybe"`
	MaybeV  *[]float64  `column:"maybe_v"`
	Scalar  float64     `column:"scalar"`
}

const shapesColumns = "array vector[2] | array32 vector32[3] | fixed vector[2] | fixed32 vector32[1] | any vector | any32 vector32 | " +
	"maybe vector[2] null | maybe_v vector null | scalar float64"

// shapesRows returns n rows. Some slices without a dimension are empty, and some are nil.
func shapesRows(n int) []shapes {
	rows := make([]shapes, n)
	for i := range rows {
		x := float64(i)
		rows[i] = shapes{
			Array: [2]float64{x, -x}, Array32: [3]float32{float32(i), 0, 0.5}, Fixed: []float64{x / 4, 1}, Fixed32: []float32{float32(i)},
			Any: []float64{x, x, x}[:i%4], Any32: make([]float32, i%3), Scalar: x,
		}
		if i%4 == 0 {
			rows[i].Any = nil
		}
		if i%2 == 1 {
			rows[i].Maybe, rows[i].MaybeV = &[2]float64{x, 3}, &[]float64{}
		}
	}
	return rows
}

// text returns the line that outcome returns for the row in the given shard.
func (s shapes) text(shard int) string {
	vector := func(v ...float64) string {
		var cells []string
		for _, x := range v {
			cells = append(cells, line(x))
		}
		return "[" + strings.Join(cells, " ") + "]"
	}
	wide := func(v []float32) (w []float64) {
		for _, x := range v {
			w = append(w, float64(x))
		}
		return w
	}
	maybe, maybeV := any(nil), any(nil)
	if s.Maybe != nil {
		maybe, maybeV = vector(s.Maybe[:]...), vector(*s.MaybeV...)
	}
	return line(shard, vector(s.Array[:]...), vector(wide(s.Array32[:])...), vector(s.Fixed...), vector(wide(s.Fixed32)...),
		vector(s.Any...), vector(wide(s.Any32)...), maybe, maybeV, s.Scalar)
}

func TestVectorsOfStructs(t *testing.T) {
	for _, n := range sizes {
		var want []string
		for i, s := range shapesRows(n) {
			want = append(want, s.text(place(i, n)))
		}
		requireRows(t, shapesColumns, want, func(b *engine.Builder) *engine.Dataset { return FromSlice(b, shapesRows(n)) })
		requireRows(t, shapesColumns, want, func(b *engine.Builder) *engine.Dataset {
			return Map(FromSlice(b, shapesRows(n)), func(s shapes) shapes { return s })
		})
	}
}

// TestVariableVectorsAsFixed reads vectors without a fixed dimension as arrays. A row must
// cause an error if its number of components differs from the length of the array.
func TestVariableVectorsAsFixed(t *testing.T) {
	type open struct {
		ID int64
		X  []float64
		Y  *[]float32
	}
	type fixed struct {
		ID int64
		X  [2]float64
		Y  *[1]float64
	}
	rows := make([]open, 100)
	for i := range rows {
		rows[i] = open{int64(i), []float64{float64(i), 2}, &[]float32{0.5}}
	}
	rows[3].Y = nil
	asFixed := func(b *engine.Builder) *engine.Dataset {
		return Map(FromSlice(b, rows), func(f fixed) fixed { return f })
	}
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		got := outcome(t, asFixed, opts...)
		require.Len(t, got, 101)
		require.Equal(t, "shard int64 | id int64 | x vector[2] | y vector[1] null", got[0])
		require.Equal(t, line(0, 3, "[3 2]", nil), got[4])
		require.Equal(t, line(7, 99, "[99 2]", "[0.5]"), got[100])
	})
	rows[42].X = []float64{1, 2, 3}
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		err := runError(t, asFixed, opts...)
		require.ErrorContains(t, err, `shard 3: row 5 of the shard: column "x": want 2 components for operators.fixed.X, got 3`)
	})
}

func TestVectorsOfWrongLength(t *testing.T) {
	type two struct {
		X []float64 `column:"x,dim=2"`
	}
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return FromSlice(b, []two{{[]float64{1, 2}}, {[]float64{1}}})
	}, "vectors_test.go:", `FromSlice: row 1`, `column "x" (operators.two.X): want 2 components for vector[2], got 1`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return FromSlice(b, []two{{nil}})
	}, `want 2 components for vector[2], got 0`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return FromSlice(b, []struct{ X [3]int32 }{})
	}, "vectors_test.go:", "X of type [3]int32: not supported as a column", "[n]float64")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Map(FromSlice(b, []two{}), func(struct{ X [3]float64 }) bool { return true })
	}, "vectors_test.go:", `column "x" is vector[2], which does not fit`, "of type [3]float64 (column type vector[3])")
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		err := runError(t, func(b *engine.Builder) *engine.Dataset {
			return Map(FromSlice(b, flowers(100)), func(f flower) two {
				if f.ID == 42 {
					return two{make([]float64, 3)}
				}
				return two{make([]float64, 2)}
			})
		}, opts...)
		require.ErrorContains(t, err, `shard 3: row 5 of the shard: column "x" (operators.two.X): want 2 components for vector[2], got 3`)
	})
}

func TestVectorizeShapes(t *testing.T) {
	var want []string
	for i := range 9 {
		x := float64(i)
		want = append(want, line(place(i, 9), "["+strings.ReplaceAll(line(x, -x, x, x, 0.0, 0.5, x/4, 1.0, x), " | ", " ")+"]"))
	}
	want[0] = strings.Replace(want[0], " -0 ", " 0 ", 1)
	requireRows(t, "features vector[9]", want, func(b *engine.Builder) *engine.Dataset {
		rows := shapesRows(9)
		rows[0].Array[1] = 0 // the row has -0 here
		return Select(Vectorize(FromSlice(b, rows), "features", "array", "scalar", "array32", "fixed", "fixed32"), "features")
	})
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Vectorize(FromSlice(b, shapesRows(3)), "features", "any")
	}, "vectors_test.go:", `Vectorize: column "any" is vector; want numbers, bools or vectors of a fixed dimension`, `declare the field [n]float64, or the slice with the tag `+"`column:\"any,dim=n\"`")
}

// TestVectorsOfCSV writes vectors as text and reads them as arrays. If a cell has another
// number of components, the error must name file, line and column.
func TestVectorsOfCSV(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.csv")
	require.NoError(t, os.WriteFile(path, []byte("id,x\n0,[1 2.5]\n1,[3 4]\n"), 0o644))
	type row struct {
		ID int64
		X  [2]float64
	}
	read := func(typ string) func(b *engine.Builder) *engine.Dataset {
		return func(b *engine.Builder) *engine.Dataset {
			in := ReadCSV(b, path, CSVOptions{Header: true, Columns: []Column{{Name: "id", Type: "int64"}, {Name: "x", Type: typ}}})
			return Map(in, func(r row) float64 { return r.X[0] + r.X[1] })
		}
	}
	for _, typ := range []string{"vector[2]", "vector", "vector32"} {
		require.Equal(t, []string{"value float64", "3.5", "7"}, withoutShards(sameEverywhere(t, read(typ))))
	}
	require.NoError(t, os.WriteFile(path, []byte("id,x\n0,[1 2.5]\n1,[3 4 5]\n"), 0o644))
	err := runError(t, read("vector[2]"))
	require.ErrorContains(t, err, "x.csv:3")
	require.ErrorContains(t, err, `column "x"`)
	err = runError(t, read("vector"))
	require.ErrorContains(t, err, "x.csv:3")
	require.ErrorContains(t, err, `column "x": want 2 components for operators.row.X, got 3`)
}

// withoutShards removes the shard from each line of an outcome.
func withoutShards(lines []string) (rest []string) {
	for _, text := range lines {
		_, text, _ := cutShard(text)
		rest = append(rest, text)
	}
	return rest
}
