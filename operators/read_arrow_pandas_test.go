package operators

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
)

// TestReadArrowOfPandas requires that the files in testdata/pandas are read as the rows that
// the README there describes.
func TestReadArrowOfPandas(t *testing.T) {
	const n = 200
	or := func(null bool, value string) string {
		if null {
			return "null"
		}
		return value
	}
	kind := func(i, of int) string { return or(i%7 == 3, fmt.Sprintf("kind %d", i%of)) }
	for file, want := range map[string]struct {
		columns string
		row     func(i int) string
	}{
		"pandas.feather": {"id int64 null | name utf8 null | kind utf8 null | size int64 null | raw binary null", func(i int) string {
			return fmt.Sprintf("%d | %s | %s | %d | %s", i, or(i%11 == 5, fmt.Sprintf("row %d", i%5)), kind(i, 3), i%4*10, []string{"", "eA==", "eHg="}[i%3])
		}},
		"replaced.arrows": {"id int64 null | kind utf8 null", func(i int) string { return fmt.Sprintf("%d | %s", i, kind(i, 3)) }},
		"deltas.arrows":   {"id int64 null | kind utf8 null", func(i int) string { return fmt.Sprintf("%d | %s", i, kind(i, 1+i/80)) }},
	} {
		lines := make([]string, n)
		for i := range lines {
			lines[i] = fmt.Sprintf("%d | %s", place(i, n), want.row(i))
		}
		paths := []string{file}
		switch file {
		case "pandas.feather":
			paths = append(paths, "plain.feather")
		case "deltas.arrows":
			paths = append(paths, "deltas.arrow")
		}
		for _, path := range paths {
			requireRows(t, want.columns, lines, func(b *engine.Builder) *engine.Dataset {
				return ReadArrow(b, filepath.Join("testdata", "pandas", path), ArrowOptions{})
			})
		}
	}
}

// dictionaryFile returns the path of an Arrow file with one row. values is the number of values
// of the dictionary, and index is the row's index into the dictionary.
func dictionaryFile(t *testing.T, values int, index int8) string {
	typ := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	mem := memory.NewGoAllocator()
	indices, words := array.NewInt8Builder(mem), array.NewStringBuilder(mem)
	indices.Append(index)
	for i := range values {
		words.Append(fmt.Sprint("word ", i))
	}
	// The array is made from its parts, as its constructors do not accept an index beyond the
	// dictionary.
	data := array.NewDataWithDictionary(typ, 1, indices.NewArray().Data().Buffers(), 0, 0, words.NewArray().Data().(*array.Data))
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "kind", Type: typ}}, nil), []arrow.Array{array.NewDictionaryData(data)}, 1)
	path := filepath.Join(t.TempDir(), "a.arrow")
	f, err := os.Create(path)
	require.NoError(t, err)
	w := ipc.NewWriter(f, ipc.WithSchema(rec.Schema()))
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
	return path
}

func TestReadArrowIndexBeyondItsDictionary(t *testing.T) {
	for _, c := range []struct {
		values int
		index  int8
		want   string
	}{{2, 2, "row 0 refers to value 2 of a dictionary of 2"}, {2, -1, "row 0 refers to value -1"}, {0, 0, "dictionary of 0"}} {
		path := dictionaryFile(t, c.values, c.index)
		err := runError(t, func(b *engine.Builder) *engine.Dataset { return ReadArrow(b, path, ArrowOptions{}) })
		require.ErrorContains(t, err, `a.arrow: column "kind": `)
		require.ErrorContains(t, err, c.want)
	}
	path := dictionaryFile(t, 2, 1)
	requireRows(t, "kind utf8", []string{"7 | word 1"}, func(b *engine.Builder) *engine.Dataset { return ReadArrow(b, path, ArrowOptions{}) })
}
