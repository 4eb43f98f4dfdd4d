package textfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"
)

// TestUsualNulls requires that a word is a missing value, in upper or lower case, if read_csv
// of pandas 3.1.1 reads a missing value from "a\n1.5\nWORD\n3\n" with na_values=["?", "nil",
// "n.a."]. Words that pandas reads as text must be text.
func TestUsualNulls(t *testing.T) {
	missing := []string{"", "NA", "N/A", "n/a", "null", "NULL", "None", "<NA>", "#N/A", "#NA", "#N/A N/A", "1.#QNAN", "-1.#QNAN", "1.#IND", "-1.#IND", "-nan", "-NaN",
		"na", "Null", "none", "?", "nil", "n.a."}
	for _, word := range missing {
		for quoted, cell := range []string{word, `"` + word + `"`} {
			text := "a,b,c,d\n1.5,7,true,x\n" + strings.Join([]string{cell, cell, cell, cell}, ",") + "\n3,8,false,y\n"
			l, err := infer(t, text, Dialect{Header: true}, InferOptions{})
			require.NoError(t, err)
			want := "d utf8"
			if word == "" && quoted == 0 {
				want = "d utf8 null"
			}
			require.Equal(t, "a float64 null, b int64 null, c bool null, "+want, columns(l), cell)
			rec, spelled := read(t, text, Dialect{Header: true}, l)
			for i := range 3 {
				require.Equal(t, 1, rec.Column(i).NullN(), cell)
				require.True(t, rec.Column(i).IsNull(1), cell)
			}
			require.Equal(t, word == "" && quoted == 0, rec.Column(3).IsNull(1), "in a text column only an unquoted empty cell must be missing; the word is %q", word)
			if word == "" {
				require.Empty(t, spelled)
			} else {
				require.Len(t, spelled, 3, cell)
			}
		}
	}
	for _, word := range []string{"-", "N.A", "missing", "x", "--", "NAN5", "#", "nul", "??"} {
		l, err := infer(t, "a,b\n1.5,true\n"+word+","+word+"\n3,false\n", Dialect{Header: true}, InferOptions{})
		require.NoError(t, err)
		require.Equal(t, "a utf8, b utf8", columns(l), word)
	}
	// NaN is missing like the other words, and does not make a column float64. But a column
	// that has only NaN is numeric.
	l, err := infer(t, "a,b,c,d,e\n1,1.5,true,nan,x\nNaN,nan,NAN,NaN,nan\n2,2,false,nan,y\n", Dialect{Header: true}, InferOptions{})
	require.NoError(t, err)
	require.Equal(t, "a int64 null, b float64 null, c bool null, d float64 null, e utf8", columns(l))

	// If NullTokens is set, the usual spellings are not missing values.
	for _, list := range [][]string{{}, {""}, {"NA"}} {
		l, err := infer(t, "a\n1\n?\n2\n", Dialect{Header: true, NullTokens: list}, InferOptions{})
		require.NoError(t, err)
		require.Equal(t, "a utf8", columns(l))
	}
	l, err = infer(t, "a,b\nNA,NA\nNone,?\n", Dialect{Header: true}, InferOptions{})
	require.NoError(t, err)
	require.Equal(t, "a utf8, b utf8", columns(l), "columns with only missing values must be utf8")
}

// read returns all rows of a text as one batch, and the number of missing values by column and
// spelling.
func read(t *testing.T, text string, d Dialect, l Layout) (arrow.Record, map[Spelled]int64) {
	c := opened(t, resolve(t, write(t, map[string]string{"a.csv": text})), d, l, Config{Shards: 1})
	var rec arrow.Record
	require.NoError(t, c.ReadShard(t.Context(), 0, 1<<20, func(r arrow.Record) error {
		require.Nil(t, rec)
		r.Retain()
		rec = r
		return nil
	}))
	t.Cleanup(rec.Release)
	return rec, c.SpelledIn(0)
}

// TestNullsBehindTheSample requires that missing values after the sample are recognised. They
// must be counted in rows that are not skipped, and be an error in a column that is not
// nullable.
func TestNullsBehindTheSample(t *testing.T) {
	text := "a,b\n1,true\nNA,?\nnan,null\n4,false\n"
	l, err := infer(t, text, Dialect{Header: true}, InferOptions{SampleRows: 1})
	require.NoError(t, err)
	require.Equal(t, "a int64 null, b bool null", columns(l))
	rec, spelled := read(t, text, Dialect{Header: true}, l)
	require.Equal(t, "[1 (null) (null) 4] [true (null) (null) false]", fmt.Sprintf("%v %v", rec.Column(0), rec.Column(1)))
	require.Equal(t, map[Spelled]int64{{"a", "NA"}: 1, {"a", "NaN"}: 1, {"b", "?"}: 1, {"b", "null"}: 1}, spelled)

	// A skipped row must not be counted, and must not cause other rows to be counted twice.
	files := resolve(t, write(t, map[string]string{"a.csv": text + "x,NA\n"}))
	c := opened(t, files, Dialect{Header: true}, l, Config{Shards: 1, OnError: Skip})
	require.NoError(t, c.ReadShard(t.Context(), 0, 1<<20, func(arrow.Record) error { return nil }))
	require.Equal(t, spelled, c.SpelledIn(0))
	require.EqualValues(t, 1, c.Skipped())

	l.Columns[0].Nullable = false
	c = opened(t, files, Dialect{Header: true}, l, Config{Shards: 1})
	err = c.ReadShard(t.Context(), 0, 1<<20, func(arrow.Record) error { return nil })
	require.ErrorContains(t, err, `a.csv:3: column "a": the value is missing ("NA"), but the column is not nullable`)
}

// TestMixedColumns requires that Mixed reports a column that is text because of a few cells,
// with the first of these cells.
func TestMixedColumns(t *testing.T) {
	rows := "# no row\n\"a\nb\",b,c,d\n" + strings.Repeat("1,1,x,\n2.5,true,7,NA\n", 9)
	text := rows + "oops,2,3,4\n1,2,3,\"\"\"4\"\n"
	l, err := infer(t, text, Dialect{Header: true, Comment: '#'}, InferOptions{})
	require.NoError(t, err)
	require.Equal(t, "a\nb utf8, b utf8, c utf8, d utf8 null", columns(l))
	require.Len(t, l.Mixed, 1, "columns with too many texts or too few numbers must not be reported")
	m := l.Mixed[0]
	require.Regexp(t, `a\.csv$`, m.Path)
	m.Path = "a.csv"
	require.Equal(t, `column "a\nb" is text as 1 of 20 values is no number, the first at a.csv:22: "oops"`, m.String())

	picked, err := l.Select("c", "d")
	require.NoError(t, err)
	require.Empty(t, picked.Mixed)
}
