package textfile

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/batch"
)

// write creates a directory with the given files and returns its path.
func write(t testing.TB, files map[string]string) string {
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// resolve calls Resolve and requires that it succeeds.
func resolve(t require.TestingT, pattern string) []File {
	files, err := Resolve(pattern)
	require.NoError(t, err)
	return files
}

// textLayout returns a layout of n utf8 columns.
func textLayout(n int) Layout {
	var l Layout
	for i := range n {
		l.Names = append(l.Names, fmt.Sprintf("c%d", i))
		l.Columns = append(l.Columns, batch.Column{Name: l.Names[i], Type: "utf8", Nullable: true})
	}
	return l
}

// opened returns a CSV that is closed at the end of the test. All memory of its allocator must
// be released by then.
func opened(t testing.TB, files []File, d Dialect, l Layout, cfg Config) *CSV {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	cfg.Allocator = mem
	c, err := OpenCSV(t.Context(), files, d, l, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		mem.AssertSize(t, 0)
	})
	return c
}

// rows returns the cells of every row of a shard as text, with "<null>" for missing values.
func rows(ctx context.Context, c interface {
	ReadShard(context.Context, int, int, func(arrow.Record) error) error
}, shard, batchRows int) ([][]string, error) {
	var out [][]string
	err := c.ReadShard(ctx, shard, batchRows, func(rec arrow.Record) error {
		for i := range int(rec.NumRows()) {
			row := make([]string, rec.NumCols())
			for j, col := range rec.Columns() {
				row[j] = "<null>"
				if col.IsValid(i) {
					row[j] = batch.FormatValue(col, i)
				}
			}
			out = append(out, row)
		}
		return nil
	})
	return out, err
}

// allRows returns the rows of all shards, in order.
func allRows(t require.TestingT, c *CSV, batchRows int) [][]string {
	var out [][]string
	for s := range c.Plan().Shards() {
		part, err := rows(context.Background(), c, s, batchRows)
		require.NoError(t, err)
		out = append(out, part...)
	}
	return out
}

// tableText draws delimited text that is difficult to cut into shards, with quotes, newlines in
// quotes, comments and empty lines.
func tableText(rt *rapid.T) (text string, columns int) {
	columns = rapid.IntRange(1, 4).Draw(rt, "columns")
	eol := rapid.SampledFrom([]string{"\n", "\r\n"})
	cell := rapid.OneOf(
		rapid.SampledFrom([]string{"", "1", "-2.5", "abc", " x ", "a\rb", "é", `""`, `"a,b"`, "\"x\ny\"", "\"x\r\ny\"",
			`"say ""hi"""`, `""""`, "\"\n\n#\n\"", "\"#\"", "a#b"}),
		rapid.StringMatching(`[a-z]{0,12}`),
		rapid.Map(rapid.StringMatching(`[a-z,\n\r"# ]{0,40}`), func(s string) string {
			return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
		}),
	)
	var b strings.Builder
	n := rapid.IntRange(0, 30).Draw(rt, "lines")
	for i := range n {
		switch rapid.IntRange(0, 9).Draw(rt, "kind") {
		case 0:
			b.WriteString(eol.Draw(rt, "eol"))
			continue
		case 1:
			b.WriteString("#" + rapid.StringMatching(`[a-z",]{0,20}`).Draw(rt, "comment"))
			b.WriteString(eol.Draw(rt, "eol"))
			continue
		}
		for j := range columns {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteString(cell.Draw(rt, "cell"))
		}
		if i < n-1 || rapid.Bool().Draw(rt, "newline at end") {
			b.WriteString(eol.Draw(rt, "eol"))
		}
	}
	return b.String(), columns
}

// reference returns the records as encoding/csv reads them. encoding/csv skips empty lines; if
// there is one column, reference adds a record for every empty line except the last line.
func reference(text string, columns int) (records [][]string, err error) {
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	for at := 0; ; at = int(r.InputOffset()) {
		for columns == 1 {
			line, rest, whole := strings.Cut(text[at:], "\n")
			if empty := line == "" || line == "\r"; !whole || !empty && line[0] != '#' {
				break
			} else if empty && rest != "" {
				records = append(records, []string{""})
			}
			at = len(text) - len(rest)
		}
		record, err := r.Read()
		if err == io.EOF {
			return records, nil
		} else if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
}

func TestShardsConcatenateToTheRecords(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "t.csv")
	rapid.Check(t, func(rt *rapid.T) {
		text, columns := tableText(rt)
		want, err := reference(text, columns)
		if err != nil {
			rt.Skip(err)
		}
		require.NoError(rt, os.WriteFile(path, []byte(text), 0o600))
		files := resolve(rt, path)
		d := Dialect{Comment: '#', NullTokens: []string{}}
		if text == "" {
			return
		}
		var shards8 [][][]string
		for _, shards := range []int{1, 2, 8, 128} {
			for _, workers := range []int{1, 3} {
				c, err := OpenCSV(context.Background(), files, d, textLayout(columns), Config{Shards: shards, Workers: workers})
				require.NoError(rt, err)
				require.Equal(rt, len(want), len(allRows(rt, c, 7)))
				if len(want) > 0 {
					require.Equal(rt, want, allRows(rt, c, 7))
				}
				if shards == 8 {
					var each [][][]string
					for s := range shards {
						part, err := rows(context.Background(), c, s, 1)
						require.NoError(rt, err)
						each = append(each, part)
					}
					if shards8 != nil {
						require.Equal(rt, shards8, each)
					}
					shards8 = each
				}
				require.NoError(rt, c.Close())
			}
		}
	})
}

func TestRecordBelongsToTheRangeOfItsFirstByte(t *testing.T) {
	// There are 4 records of 8 bytes; the second has a newline in quotes.
	text := "a,00001\n\"b\n\",002\nc,003\nd,00004\n"
	require.Len(t, text, 32-1)
	dir := write(t, map[string]string{"t.csv": text})
	c := opened(t, resolve(t, dir), Dialect{}, textLayout(2), Config{Shards: 31})
	for s := range 31 {
		got, err := rows(t.Context(), c, s, 10)
		require.NoError(t, err)
		switch s {
		case 0:
			require.Equal(t, [][]string{{"a", "00001"}}, got)
		case 8:
			require.Equal(t, [][]string{{"b\n", "002"}}, got)
		case 17:
			require.Equal(t, [][]string{{"c", "003"}}, got)
		case 23:
			require.Equal(t, [][]string{{"d", "00004"}}, got)
		default:
			require.Empty(t, got, "shard %d must be empty", s)
		}
	}
}

func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,2\n", "a,\"b\n\"\"c\"\"\",d\r\n\r\n#x\r\n1,2,3", "\"a\"b,c\n", "a\"b,c\n", "\"a", "\r", "a\r", ",\n,", "\"\"\r", "\n\n",
		"#\n\"#\"\n", "\xff,1\n", "\"a\r\n\r\"\n", "a,b\n1\n",
	} {
		f.Add([]byte(seed), uint8(3))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte, cuts uint8) {
		if len(text) == 0 || len(text) > 4096 || hasMark(text) {
			return
		}
		path := filepath.Join(dir, "f.csv")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		r := csv.NewReader(bytes.NewReader(text))
		r.Comment = '#'
		want, wantErr := r.ReadAll()
		columns := 1
		if len(want) > 0 {
			columns = len(want[0])
		}
		if wantErr == nil {
			want, wantErr = reference(string(text), columns)
		}
		shards := int(cuts)%9 + 1
		c, err := OpenCSV(t.Context(), resolve(t, path), Dialect{Comment: '#', NullTokens: []string{}}, textLayout(columns),
			Config{Shards: shards, ReplaceInvalidUTF8: true})
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
		var got [][]string
		for s := range shards {
			part, err := rows(t.Context(), c, s, 3)
			if err != nil {
				require.Error(t, wantErr, "this package must read text that the standard library reads, but it returns the error: %v", err)
				return
			}
			got = append(got, part...)
		}
		if wantErr == nil && utf8.Valid(text) {
			require.Equal(t, want, got)
		}
	})
}
