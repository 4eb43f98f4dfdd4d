package textfile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch"
)

// readText infers the layout with opt, and reads all shards.
func readText(t *testing.T, files map[string]string, d Dialect, opt InferOptions, cfg Config) ([][]string, *CSV, error) {
	resolved := resolve(t, write(t, files))
	l, err := InferCSV(t.Context(), resolved, d, opt)
	require.NoError(t, err)
	c := opened(t, resolved, d, l, cfg)
	var out [][]string
	for s := range cfg.Shards {
		part, err := rows(t.Context(), c, s, 4)
		if err != nil {
			return nil, c, err
		}
		out = append(out, part...)
	}
	return out, c, nil
}

func TestBadRecords(t *testing.T) {
	header := Dialect{Header: true, TrimSpace: true}
	long := strings.Repeat("x", 100)
	for _, c := range []struct {
		text, message string
		d             Dialect
		opt           InferOptions
	}{
		{"a,b\n1,2\n\n1,2,3\n", "a.csv:4: row has 3 fields, the header has 2", header, InferOptions{}},
		{"a,b\n1,2\n1\n", "a.csv:3: row has 1 field, the header has 2", header, InferOptions{}},
		{"1,2\n1,2,3\n", "a.csv:2: row has 3 fields, the first row has 2", Dialect{}, InferOptions{}},
		{"a,b\n1,\"2\n\"\n1,\"x\n\n", "a.csv:4: field 2: the quote opened here is never closed", header, InferOptions{}},
		{"a,b\n1,\"2\"3\n", "a.csv:2: field 2: text follows the closing quote; a quote inside quotes must be doubled", header, InferOptions{}},
		{"a,b\n\"1\n\n\",2\n2,x\n", `a.csv:5: column "b": cannot read "x" as int64: it is not a whole number`, header,
			InferOptions{Types: map[string]string{"b": "int64"}}},
		{"a,b\n1,1\n2,1.5\n", `a.csv:3: column "b": cannot read "1.5" as int64: it is not a whole number; ` +
			`the type was inferred from the first 1 row: give column "b" a type with Types, or infer from more rows with SampleRows`, header, InferOptions{SampleRows: 1}},
		{"a,b\n" + long + ",2\n", `a.csv:2: column "a": cannot read "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"… (100 bytes) as float64`, header,
			InferOptions{Types: map[string]string{"a": "float64"}}},
		{"a,b\n1e999,2\n", `column "a": cannot read "1e999" as float64: it is out of range`, header, InferOptions{Types: map[string]string{"a": "float64"}}},
		{"a,b\n1,2020-13-01\n", `a.csv:2: column "b": cannot read "2020-13-01" as date32: `, header, InferOptions{Types: map[string]string{"b": "date32"}}},
		{"a,b\n1,2\n,2\n", `a.csv:3: column "a": the value is missing (""), but the column is not nullable`, header,
			InferOptions{Columns: []batch.Column{{Name: "a", Type: "int64"}}}},
		{"a,b\nx,y\n\n\xff\"z,y\n", `a.csv:4: column "a": cannot read "\xff\"z": the byte 0xff at offset 9 is not UTF-8: if the text is in another encoding, such as latin1, set Encoding; or set ReplaceInvalidUTF8`, header, InferOptions{}},
		// If there are several faults, the first by row and then by column is reported.
		{"a,b\n1,2\n1,y\nx,2\nx,y\n", `a.csv:3: column "b": cannot read "y"`, header, InferOptions{Types: map[string]string{"a": "int64", "b": "int64"}}},
		{"a,b\n1,2\nx,y\n1\n", `a.csv:3: column "a": cannot read "x"`, header, InferOptions{Types: map[string]string{"a": "int64", "b": "int64"}}},
		{"a,b\n1,2\n\"" + long + long + "\n", "a.csv:3: field 1 is larger than 150 bytes; a quote opened here that is never closed?",
			Dialect{Header: true, MaxCell: 150}, InferOptions{SampleRows: 1}},
	} {
		for _, shards := range []int{1, 3} {
			_, _, err := readText(t, map[string]string{"a.csv": c.text}, c.d, c.opt, Config{Shards: shards})
			require.ErrorContains(t, err, c.message, c.text)
		}
	}
}

func TestRecordBeyondTheLimit(t *testing.T) {
	d, err := Dialect{}.normal()
	require.NoError(t, err)
	tok := newTokenizer(d, newAutomaton(d))
	tok.maxRecord = 8
	text := []byte("1,2,3,4,5,6,7")
	_, what := tok.next(text[:8], 0, false)
	require.Equal(t, needMore, what)
	_, what = tok.next(text[:9], 0, false)
	require.Equal(t, badLength, what)
	require.Equal(t, 0, tok.at)
}

func TestCellsAreNotAllocated(t *testing.T) {
	const rows = 50_000
	files := resolve(t, write(t, map[string]string{"a.csv": strings.Repeat("1.5,-2,true,text,\"quo\"\"ted\"\n", rows)}))
	l, err := InferCSV(t.Context(), files, Dialect{}, InferOptions{})
	require.NoError(t, err)
	require.Equal(t, "c0 float64 null, c1 int64 null, c2 bool null, c3 utf8 null, c4 utf8 null", columns(l))
	c, err := OpenCSV(t.Context(), files, Dialect{}, l, Config{Shards: 1})
	require.NoError(t, err)
	seen := int64(0)
	perRun := testing.AllocsPerRun(2, func() {
		require.NoError(t, c.ReadShard(t.Context(), 0, 1000, func(rec arrow.Record) error { seen += rec.NumRows(); return nil }))
	})
	require.EqualValues(t, 3*rows, seen)
	require.Less(t, perRun, float64(rows/5), "allocations must be per batch, so far fewer than one per row")
	require.NoError(t, c.Close())
}

func TestLinesCountFromEachFilesStart(t *testing.T) {
	_, _, err := readText(t, map[string]string{"a.csv": "a,b\n1,2\n", "b.csv": "\ufeff\r\na,b\r\n1,\"2\r\n\"\r\n3\r\n"}, Dialect{Header: true}, InferOptions{}, Config{Shards: 5})
	require.ErrorContains(t, err, "b.csv:5: row has 1 field, the header has 2")
}

func TestSkip(t *testing.T) {
	text := "a,b,c\n1,x,2\n1,y\nbad,z,3\n4,\"u\"v,4\n5,\xff,5\n6,w,worse\nbad,z,bad\n7,\"w\n\",7\n8,x,\"open\n"
	for _, shards := range []int{1, 2, 8, 64} {
		got, c, err := readText(t, map[string]string{"a.csv": text}, Dialect{Header: true},
			InferOptions{Types: map[string]string{"a": "int64", "b": "utf8", "c": "float64"}}, Config{Shards: shards, OnError: Skip})
		require.NoError(t, err)
		require.Equal(t, [][]string{{"1", "x", "2"}, {"7", "w\n", "7"}}, got)
		require.EqualValues(t, 7, c.Skipped())
		require.ErrorContains(t, c.FirstSkipped(), "a.csv:3: row has 2 fields, the header has 3")
		_, err = rows(t.Context(), c, 0, 1)
		require.NoError(t, err)
		require.EqualValues(t, 7, c.Skipped(), "a shard that is read again must be counted once")
		var each int64
		for s := range shards {
			each += c.SkippedIn(s)
		}
		require.EqualValues(t, 7, each)
	}
	_, c, err := readText(t, map[string]string{"a.csv": "1\n"}, Dialect{}, InferOptions{}, Config{Shards: 1, OnError: Skip})
	require.NoError(t, err)
	require.NoError(t, c.FirstSkipped())
}

func TestNullsAndQuotes(t *testing.T) {
	text := "t,n,b\n,,\n\"\",\"\",\"\"\nNA,NA,NA\n\"NA\",\"NA\",\"true\"\n x , 5 ,false\n"
	cols := []batch.Column{{Name: "t", Type: "utf8", Nullable: true}, {Name: "n", Type: "int32", Nullable: true}, {Name: "b", Type: "bool", Nullable: true}}
	got, _, err := readText(t, map[string]string{"a.csv": text},
		Dialect{Header: true, TrimSpace: true, NullTokens: []string{"", "NA"}}, InferOptions{Columns: cols}, Config{Shards: 2})
	require.NoError(t, err)
	null := "<null>"
	require.Equal(t, [][]string{{null, null, null}, {"", null, null}, {null, null, null}, {"NA", null, "true"}, {"x", "5", "false"}}, got)
	got, _, err = readText(t, map[string]string{"a.csv": text},
		Dialect{Header: true, TrimSpace: true, NullTokens: []string{"", "NA"}, QuotedNulls: true}, InferOptions{Columns: cols}, Config{Shards: 2})
	require.NoError(t, err)
	require.Equal(t, [][]string{{null, null, null}, {"", null, null}, {null, null, null}, {null, null, "true"}, {"x", "5", "false"}}, got)
}

// TestEmptyLinesOfOneColumn requires that an empty line in a file of one column is a missing
// value, unless it is the last line.
func TestEmptyLinesOfOneColumn(t *testing.T) {
	const null = "<null>"
	for text, want := range map[string][]string{
		"x\n1\n\n3\n\n":               {"1", null, "3"},
		"x\r\n1\r\n\r\n3\r\n\r\n":     {"1", null, "3"},
		"\n\nx\n\n \t\n# no\n3\n\n\n": {null, null, "3", null},
		"x\n \n1\n  ":                 {null, "1"},
		"x\n\n":                       nil,
		"x\n\"\"\n2":                  {null, "2"},
	} {
		for _, shards := range []int{1, 3, 64} {
			got, _, err := readText(t, map[string]string{"a.csv": text, "b.csv": "x\n\n7"},
				Dialect{Header: true, TrimSpace: true, Comment: '#'}, InferOptions{Types: map[string]string{"x": "int64"}}, Config{Shards: shards})
			require.NoError(t, err, text)
			var all []string
			for _, row := range got {
				all = append(all, row[0])
			}
			require.Equal(t, append(slices.Clone(want), null, "7"), all, "%q in %d shards", text, shards)
		}
	}
	_, _, err := readText(t, map[string]string{"a.csv": "1\n\n2\n"}, Dialect{}, InferOptions{Columns: []batch.Column{{Name: "c", Type: "int64"}}}, Config{Shards: 1})
	require.ErrorContains(t, err, `a.csv:2: column "c": the value is missing`)
}

func TestTrimSpace(t *testing.T) {
	text := " a ,\t\"b \" , c d\t\r\n   \n\t\n,\" \"\t,  \n"
	c := opened(t, resolve(t, write(t, map[string]string{"a.csv": text})), Dialect{TrimSpace: true, NullTokens: []string{}}, textLayout(3), Config{Shards: 3})
	require.Equal(t, [][]string{{"a", "b ", "c d"}, {"", " ", ""}}, allRows(t, c, 9))
}

func TestTypesByParseInto(t *testing.T) {
	cols := []batch.Column{{Name: "v", Type: "vector[2]"}, {Name: "s", Type: "sparse[9]"}, {Name: "f", Type: "float32"}, {Name: "d", Type: "date32"}, {Name: "t", Type: "timestamp[us, UTC]"}, {Name: "n", Type: "timestamp[us]"}}
	got, _, err := readText(t, map[string]string{"a.csv": "1 2.5;0:1 8:2;0.1;2024-02-29;2024-02-29 01:02:03;2024-02-29 01:02:03\n"}, Dialect{Delimiter: ';'}, InferOptions{Columns: cols}, Config{Shards: 1})
	require.NoError(t, err)
	require.Equal(t, [][]string{{"[1 2.5]", "[0:1 8:2]", "0.1", "2024-02-29", "2024-02-29T01:02:03Z", "2024-02-29T01:02:03"}}, got)
}

func TestReplaceInvalidUTF8(t *testing.T) {
	got, _, err := readText(t, map[string]string{"a.csv": "a\xff\xfeb,1\n"}, Dialect{}, InferOptions{}, Config{Shards: 1, ReplaceInvalidUTF8: true})
	require.NoError(t, err)
	require.Equal(t, [][]string{{"a\uFFFDb", "1"}}, got)
}

func TestLongRecordsAndSmallChunks(t *testing.T) {
	big := strings.Repeat("0123456789\n", 60_000) // longer than readChunk and than batchBytes
	text := fmt.Sprintf("1,\"%s\"\n2,b\n3,\"%s\"\n", big, big)
	for _, shards := range []int{1, 8, 128} {
		c := opened(t, resolve(t, write(t, map[string]string{"a.csv": text})), Dialect{}, textLayout(2), Config{Shards: shards})
		require.Equal(t, [][]string{{"1", big}, {"2", "b"}, {"3", big}}, allRows(t, c, 1024))
	}
}

func TestEmitAndContextEndReading(t *testing.T) {
	files := resolve(t, write(t, map[string]string{"a.csv": strings.Repeat("1,2\n", 100)}))
	c := opened(t, files, Dialect{}, textLayout(2), Config{Shards: 1})
	stop := errors.New("enough")
	calls := 0
	err := c.ReadShard(t.Context(), 0, 10, func(rec arrow.Record) error {
		require.EqualValues(t, 10, rec.NumRows())
		calls++
		return stop
	})
	require.Equal(t, stop, err)
	require.Equal(t, 1, calls)
	ctx, cancel := context.WithCancel(t.Context())
	err = c.ReadShard(ctx, 0, 10, func(arrow.Record) error { cancel(); return nil })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, c.ReadShard(t.Context(), 1, 10, nil), "there is no shard 1 among 1")
	require.ErrorContains(t, c.ReadShard(t.Context(), 0, 0, nil), "at least 1 row")
}

func TestOpenRefuses(t *testing.T) {
	files := resolve(t, write(t, map[string]string{"a.csv": "a,b\n1,2\n"}))
	open := func(d Dialect, l Layout, shards int) error {
		_, err := OpenCSV(t.Context(), files, d, l, Config{Shards: shards})
		return err
	}
	require.ErrorContains(t, open(Dialect{}, textLayout(2), 0), "the number of shards must be between")
	require.ErrorContains(t, open(Dialect{Header: true}, textLayout(2), 1), "disagree on whether files have a header")
	l := textLayout(2)
	l.Columns[1].Name = "c9"
	require.ErrorContains(t, open(Dialect{}, l, 1), `there is no column "c9"; did you mean`)
	l = textLayout(2)
	l.Header = []string{"x", "y"}
	require.ErrorIs(t, open(Dialect{Header: true}, l, 1), ErrChanged)
}
