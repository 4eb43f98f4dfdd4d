package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/operators"
)

// numpyFile returns the content of a file in NumPy's format with the given description and
// values. The head is padded to a multiple of 64 bytes.
func numpyFile(head string, values []float64) []byte {
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	file := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	file = append(file, head...)
	for _, v := range values {
		file = binary.LittleEndian.AppendUint64(file, math.Float64bits(v))
	}
	return file
}

func head(rows, cols int) string {
	return fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }", rows, cols)
}

func run(t *testing.T, input string, options ...engine.Option) (string, error) {
	t.Helper()
	output := filepath.Join(t.TempDir(), "points.jsonl")
	r, err := engine.Run(t.Context(), job, args{Input: input, Output: output}, options...)
	if err != nil {
		require.NoFileExists(t, output)
		return "", err
	}
	r.Release()
	text, err := os.ReadFile(output)
	require.NoError(t, err)
	return string(text), nil
}

func write(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "points.npy")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

// TestPoints compares the output, read by encoding/json, with the values of the bundled file,
// which are its last 120·3·8 bytes.
func TestPoints(t *testing.T) {
	file, err := os.ReadFile("data/points.npy")
	require.NoError(t, err)
	want := make([][3]float64, 120)
	require.NoError(t, binary.Read(bytes.NewReader(file[len(file)-120*3*8:]), binary.LittleEndian, want))
	require.Equal(t, numpyFile(head(120, 3), nil), file[:len(file)-120*3*8])

	first, err := run(t, "data/points.npy", engine.Parallelism(1))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(first, "\n"), "\n")
	require.Len(t, lines, 120)
	for i, line := range lines {
		var got struct {
			X        [3]float64
			Point    int
			Distance float64
		}
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&got))
		require.Equal(t, want[i], got.X)
		require.Equal(t, i, got.Point)
		require.InDelta(t, math.Hypot(math.Hypot(want[i][0], want[i][1]), want[i][2]), got.Distance, 1e-14)
	}
	for _, options := range [][]engine.Option{
		{engine.Parallelism(3)}, {engine.Parallelism(3), engine.Shards(4), engine.BatchRows(7)}, {engine.Parallelism(1), engine.Shards(1), engine.BatchRows(1)},
	} {
		again, err := run(t, "data/points.npy", options...)
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
}

func TestFewPoints(t *testing.T) {
	text, err := run(t, write(t, numpyFile(head(0, 3), nil)))
	require.NoError(t, err)
	require.Empty(t, text)
	text, err = run(t, write(t, numpyFile(head(1, 2), []float64{3, -4})), engine.Parallelism(3))
	require.NoError(t, err)
	require.Equal(t, `{"x":[3,-4],"point":0,"distance":5}`+"\n", text)
}

func TestBadFiles(t *testing.T) {
	whole := numpyFile(head(2, 2), []float64{1, 2, 3, 4})
	for _, c := range []struct {
		file []byte
		want string
	}{
		{[]byte("1,2\n"), "is no file of NumPy's format 1"},
		{whole[:40], "ends within its head"},
		{whole[:len(whole)-1], "do not hold 2 rows of 2 columns"},
		{append(whole, 0), "do not hold 2 rows of 2 columns"},
		{numpyFile(head(99999999999, 2), nil), "do not hold 99999999999 rows"},
		{numpyFile(head(2, 0), nil), "do not hold 2 rows of 0 columns"},
		{numpyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }", []float64{1}), "want a matrix of float64"},
		{numpyFile(head(2, 2), []float64{1, 2, 3, math.NaN()}), `column "x"`},
	} {
		_, err := run(t, write(t, c.file))
		require.ErrorContains(t, err, c.want)
	}
	_, err := run(t, "none.npy")
	require.ErrorContains(t, err, "none.npy")
}

// row has a column of every type that WriteJSON supports.
type row struct {
	N     int64
	X     float64
	Text  *string
	Fixed [2]float64
	Any   []float64
}

func TestJSON(t *testing.T) {
	text := "a \"quoted\"\nline"
	rows := []row{{1, 0.1, &text, [2]float64{1, 2}, nil}, {-1 << 63, -1e300, nil, [2]float64{}, []float64{1.5}}}
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	all := engine.Define("json", func(b *engine.Builder, _ struct{}) error {
		WriteJSON(operators.FromSlice(b, rows), path)
		return nil
	})
	r, err := engine.Run(t.Context(), all, struct{}{}, engine.Parallelism(2))
	require.NoError(t, err)
	r.Release()
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, `{"n":1,"x":0.1,"text":"a \"quoted\"\nline","fixed":[1,2],"any":[]}
{"n":-9223372036854775808,"x":-1e+300,"text":null,"fixed":[0,0],"any":[1.5]}
`, string(got))
}

func TestJSONRefuses(t *testing.T) {
	bools := engine.Define("bools", func(b *engine.Builder, _ struct{}) error {
		WriteJSON(operators.FromSlice(b, []struct{ Yes bool }{{true}}), "x.jsonl")
		return nil
	})
	_, err := engine.Run(t.Context(), bools, struct{}{})
	require.ErrorContains(t, err, `column "yes" is of type bool; want int64, float64, utf8 or vectors`)
	none := engine.Define("none", func(b *engine.Builder, _ struct{}) error {
		rows, err := columnar.NewBatch(b.Allocator(), columnar.MustSchema())
		if err != nil {
			return err
		}
		defer rows.Release()
		WriteJSON(operators.FromBatches(b, []engine.Batch{rows}), "x.jsonl")
		return nil
	})
	_, err = engine.Run(t.Context(), none, struct{}{})
	require.ErrorContains(t, err, "the dataset has no columns")
}
