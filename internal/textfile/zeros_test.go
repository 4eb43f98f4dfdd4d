package textfile

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch"
)

// TestZeroedPage replaces several lines of a file by a page of zeros, which would be read as
// one cell. It requires an error with the position of the page, whether the column of the cell
// is read or not.
func TestZeroedPage(t *testing.T) {
	var text bytes.Buffer
	for i := range 2000 {
		fmt.Fprintf(&text, "%d,word %d,%d\n", i, i%7, i)
	}
	whole := text.Bytes()
	at := bytes.Index(whole, []byte("\n500,word")) + len("\n500,w")
	clear(whole[at : at+4096])
	rest := whole[at+4096:]
	clear(rest[:bytes.Index(rest, []byte("word"))]) // so that the row has three cells, as all rows
	good := 500 + bytes.Count(rest, []byte{'\n'}) - 1
	require.Less(t, good, 1800)

	l := textLayout(3)
	l.Columns[0].Type, l.Columns[2].Type = "int64", "int64"
	some, err := l.Select("c0", "c2")
	require.NoError(t, err)
	files := resolve(t, write(t, map[string]string{"a.csv": string(whole)}))
	for _, l := range []Layout{l, some, {Names: l.Names, Columns: []batch.Column{}}} {
		for _, shards := range []int{1, 3} {
			c := opened(t, files, Dialect{}, l, Config{Shards: shards})
			var first error
			for s := range shards {
				if _, err := rows(t.Context(), c, s, 100); err != nil {
					require.NoError(t, first)
					first = err
				}
			}
			require.ErrorContains(t, first, fmt.Sprintf(`a.csv:501: column "c1": the byte at offset %d is 0, which no text has`, at))
			c = opened(t, files, Dialect{}, l, Config{Shards: shards, OnError: Skip})
			require.Len(t, allRows(t, c, 100), good)
			require.EqualValues(t, 1, c.Skipped())
			require.ErrorContains(t, c.FirstSkipped(), `a.csv:501: column "c1": `)
		}
	}
}

func TestZeroBytes(t *testing.T) {
	for text, want := range map[string]string{
		"a,b\n1,x\n2,\"y\n\x00\"\n":          `a.csv:4: column "b": the byte at offset 13 is 0`,
		"a,b\n\n1,\x00x\n2,y\n":              `a.csv:3: column "b": the byte at offset 7 is 0`,
		"a,b\n1,x\n\x002,\x00\n":             `a.csv:3: column "a": the byte at offset 8 is 0`,
		"a,b\n1,x,\x00\n2,\x00\n":            `a.csv:2: row has 3 fields`,
		"a,b\n\xff,x\n2,\x00\n":              `a.csv:2: column "a": cannot read`,
		"a,b\n1,x\n2,\x00\n\xff,x\n":         `a.csv:3: column "b": the byte`,
		"a,b\n1,\"\"\"\x00\"\n":              `a.csv:2: column "b": the byte at offset 9 is 0`,
		"\ufeffa,b\n1,x\n2,y\x00\n3,z\x00\n": `a.csv:3: column "b": the byte at offset 14 is 0`,
	} {
		for _, batchRows := range []int{1, 2, 100} {
			c := opened(t, resolve(t, write(t, map[string]string{"a.csv": text})), Dialect{Header: true},
				Layout{Header: []string{"a", "b"}, Names: []string{"a", "b"}, Columns: []batch.Column{{Name: "a", Type: "utf8"}, {Name: "b", Type: "utf8", Nullable: true}}}, Config{Shards: 1})
			_, err := rows(t.Context(), c, 0, batchRows)
			require.ErrorContains(t, err, want, "%q", text)
		}
	}
}

// TestZeroBytesTellNoTypes requires that a row with a byte of 0 does not make a column text.
// Reading must return an error with the position of the byte.
func TestZeroBytesTellNoTypes(t *testing.T) {
	for text, want := range map[string]string{
		"a,b\n1,2\n3,4\x00\n5,6\n": "a int64, b int64",
		"a,b\nx\x00,\n3,4\n,6\n":   "a int64 null, b int64",
	} {
		l, err := infer(t, text, Dialect{Header: true}, InferOptions{})
		require.NoError(t, err)
		require.Equal(t, want, columns(l), "%q", text)
		require.Equal(t, 2, l.SampleRows)
	}
	l, err := infer(t, "\n1,\x002\n3,\x00\n", Dialect{}, InferOptions{})
	require.NoError(t, err)
	require.Zero(t, l.SampleRows)
	require.Contains(t, l.Trouble, "a.csv: the byte at offset 3 is 0, which no text has")
}

// TestZeroedPageOfLibSVM requires an error for zeros in the comment of a line, which may
// replace the lines after it.
func TestZeroedPageOfLibSVM(t *testing.T) {
	files := resolve(t, write(t, map[string]string{"a.svm": "1 1:1\n0 1:2 # re\x00\x00\x00\x00mark\n1 1:3\n"}))
	s, err := OpenLibSVM(t.Context(), files, LibSVMLayout{Size: 1}, Config{Shards: 1})
	require.NoError(t, err)
	_, err = rows(t.Context(), s, 0, 10)
	require.ErrorContains(t, err, "a.svm:2: the line has a byte of 0, which no text has")
	require.NoError(t, s.Close())
	s, err = OpenLibSVM(t.Context(), files, LibSVMLayout{Size: 1}, Config{Shards: 1, OnError: Skip})
	require.NoError(t, err)
	got, err := rows(t.Context(), s, 0, 10)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"1", "[0:1]"}, {"1", "[0:3]"}}, got)
	require.EqualValues(t, 1, s.Skipped())
	require.NoError(t, s.Close())
}
