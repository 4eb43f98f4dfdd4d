package textfile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch"
)

func infer(t *testing.T, text string, d Dialect, opt InferOptions) (Layout, error) {
	return InferCSV(t.Context(), resolve(t, write(t, map[string]string{"a.csv": text})), d, opt)
}

// columns returns the columns of a layout as text.
func columns(l Layout) string {
	var out []string
	for _, c := range l.Columns {
		out = append(out, c.String())
	}
	return strings.Join(out, ", ")
}

func TestInfer(t *testing.T) {
	for _, c := range []struct {
		text string
		d    Dialect
		opt  InferOptions
		want string
	}{
		{"a,b,c,d\n1,1.5,true,x\n-2,3,False,y\n", Dialect{Header: true}, InferOptions{}, "a int64, b float64, c bool, d utf8"},
		{"1,1.5\n2,\n", Dialect{}, InferOptions{}, "c0 int64, c1 float64 null"},
		{"1\t'1.5'\n?\t\n", Dialect{Delimiter: '\t', Quote: '\'', NullTokens: []string{"?"}}, InferOptions{}, "c0 int64 null, c1 utf8"},
		{"a,b\n1,2\n", Dialect{Header: true}, InferOptions{Names: []string{"x", "y"}}, "x int64, y int64"},
		{"a,b\n1,2\n", Dialect{Header: true}, InferOptions{Types: map[string]string{"b": "vector[1]"}}, "a int64, b vector[1] null"},
		{"a,b\n1,2\nx,2.5\n", Dialect{Header: true}, InferOptions{SampleRows: 1}, "a int64 null, b int64 null"},
		{"a,b\n1,2\n", Dialect{Header: true}, InferOptions{SampleRows: 1}, "a int64, b int64"},
		{"a,b\n", Dialect{Header: true}, InferOptions{}, "a utf8, b utf8"},
		{"a,b\n,true\nNA,1\n", Dialect{Header: true, NullTokens: []string{"", "NA"}}, InferOptions{}, "a utf8 null, b utf8"},
		{"Sepal length, Sepal width,\" x \"\r\n1,2,3\r\n", Dialect{Header: true}, InferOptions{}, "Sepal length int64, Sepal width int64,  x  int64"},
		{"a,b\n\"\",1\n\"7\",2\n", Dialect{Header: true}, InferOptions{}, "a int64 null, b int64"},
		{"a,b\nx,1\n\"\",2\n", Dialect{Header: true}, InferOptions{}, "a utf8, b int64"},
		{"a,b\n1,2\n1\n\"x\"y,2\n3,4\n", Dialect{Header: true}, InferOptions{}, "a int64, b int64"},
		{"9223372036854775808,nan,+5\n", Dialect{}, InferOptions{}, "c0 utf8, c1 float64 null, c2 int64"},
		{"a\n1\n\n2\n", Dialect{Header: true}, InferOptions{}, "a int64 null"},
		{"a\n1\n2\n\n", Dialect{Header: true}, InferOptions{}, "a int64"},
		{"\n1\n", Dialect{}, InferOptions{}, "c0 int64 null"},
		{"\n1,2\n\n3,4\n", Dialect{}, InferOptions{}, "c0 int64, c1 int64"},
		{" 1 , x\n", Dialect{TrimSpace: true}, InferOptions{}, "c0 int64, c1 utf8"},
	} {
		l, err := infer(t, c.text, c.d, c.opt)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, columns(l), c.text)
	}
}

func TestExplicitSchema(t *testing.T) {
	cols := []batch.Column{{Name: "c", Type: "float32"}, {Name: "a", Type: "utf8", Nullable: true}}
	l, err := infer(t, "a,b,c\n1,x,2\n", Dialect{Header: true}, InferOptions{Columns: cols})
	require.NoError(t, err)
	require.Equal(t, Layout{Header: []string{"a", "b", "c"}, Names: []string{"a", "b", "c"}, Columns: cols}, l)
	_, err = infer(t, "a,b\n1,x\n", Dialect{Header: true}, InferOptions{Columns: cols})
	require.ErrorContains(t, err, `there is no column "c"`)
	l, err = infer(t, "1.5,x\n", Dialect{}, InferOptions{Columns: cols})
	require.NoError(t, err)
	require.Equal(t, Layout{Names: []string{"c", "a"}, Columns: cols}, l)
	_, err = infer(t, "1.5,x,y\n", Dialect{}, InferOptions{Columns: cols})
	require.ErrorContains(t, err, "has 3 fields, but 2 names are given")
	_, err = infer(t, "1", Dialect{}, InferOptions{Columns: []batch.Column{{Name: "a", Type: "int"}}})
	require.ErrorContains(t, err, `unknown type "int"`)
	_, err = infer(t, "1", Dialect{}, InferOptions{Columns: cols, Types: map[string]string{"a": "utf8"}})
	require.ErrorContains(t, err, "together")
	_, err = infer(t, "", Dialect{}, InferOptions{Columns: cols})
	require.ErrorIs(t, err, ErrEmpty)
}

// TestLinesOfCRAlone requires an error for text whose lines end in CR alone, because all of the
// text would be read as one header or row.
func TestLinesOfCRAlone(t *testing.T) {
	columns := InferOptions{Columns: []batch.Column{{Name: "a", Type: "int64"}, {Name: "b", Type: "int64"}}}
	for _, c := range []struct {
		text, where string // "" means that the text can be read
		opt         InferOptions
	}{
		{"a,b\r1,2\r", "header", InferOptions{}},
		{"a,b\r1,2\r\n", "header", columns},
		{"\ra,b\r1,2", "header", InferOptions{}},
		{"\"a\",\"b\"\r1,2\r", "header", InferOptions{}},
		{"a\r1\r2", "header", InferOptions{}},
		{"a,b\r" + strings.Repeat("1,2\r", 1000), "header", InferOptions{}},
		{"a,b\r", "", InferOptions{}},
		{"a,\"b\rc\"\r\n1,2\r\n", "", InferOptions{}},
		{"a,b\n1,x\ry", "", InferOptions{}},
		{"1,2\r3,4\r", "first row", InferOptions{}},
		{"1,2\r3,4\r", "first row", columns},
		{"1\r2\r3\r", "first row", InferOptions{}},
		{"\"1\",\"2\"\r3,4", "first row", InferOptions{}},
		{"1,2\r", "", InferOptions{}},
		{"1,x\ry\n3,4\n", "", InferOptions{}},
		{"1,\"x\ry\"", "", InferOptions{}},
	} {
		// A text that begins with the name a has a header.
		header := strings.Contains(c.text[:2], "a")
		_, err := infer(t, c.text, Dialect{Header: header, MaxCell: 100}, c.opt)
		if c.where == "" {
			require.NoError(t, err, "%q", c.text)
			continue
		}
		require.ErrorContains(t, err, "a.csv: the "+c.where+" has a CR outside quotes", "%q", c.text)
		require.ErrorContains(t, err, "convert the line ends to LF")
	}
}

func TestInferErrors(t *testing.T) {
	for _, c := range []struct {
		text, message string
		d             Dialect
		opt           InferOptions
	}{
		{"", "a.csv is empty: it has no header", Dialect{Header: true}, InferOptions{}},
		{"\n\r\n#c\n", "a.csv is empty: it has no records", Dialect{Comment: '#'}, InferOptions{}},
		{"a,b,a\n", `a.csv: the header names columns 1 and 3 both "a"`, Dialect{Header: true}, InferOptions{}},
		{"a,,c\n", `a.csv: the header has no name for column 2`, Dialect{Header: true}, InferOptions{}},
		{"\"a,b\n", `a.csv: a quote opened in the header is never closed`, Dialect{Header: true}, InferOptions{}},
		{"a\n", `a.csv has 1 column, but 2 names are given`, Dialect{Header: true}, InferOptions{Names: []string{"x", "y"}}},
		{"\"a\"x,b\n", `a.csv: text follows a closing quote in the header`, Dialect{Header: true}, InferOptions{}},
		{"a,b\n", `a.csv has 2 columns, but 1 name is given`, Dialect{Header: true}, InferOptions{Names: []string{"x"}}},
		{"1,2\n", `a.csv has 2 fields, but 1 name is given`, Dialect{}, InferOptions{Names: []string{"x"}}},
		{"1,2\n", `names columns 1 and 2 both "x"`, Dialect{}, InferOptions{Names: []string{"x", "x"}}},
		{"age,b\n", `there is no column "agee"; did you mean "age"?`, Dialect{Header: true}, InferOptions{Types: map[string]string{"agee": "utf8"}}},
		{"age,b\n", `type of column "age": unknown type "flot64"`, Dialect{Header: true}, InferOptions{Types: map[string]string{"age": "flot64"}}},
		{"a\n", `must not be negative`, Dialect{}, InferOptions{SampleRows: -1}},
		{"a\n", `must differ`, Dialect{Delimiter: '"'}, InferOptions{}},
		{"a\n", `a line end cannot be the delimiter`, Dialect{Delimiter: '\n'}, InferOptions{}},
		{"a\n", `with TrimSpace a blank cannot be the quote`, Dialect{Quote: ' ', TrimSpace: true}, InferOptions{}},
		{"a\n", `the largest cell must be between`, Dialect{MaxCell: -1}, InferOptions{}},
	} {
		_, err := infer(t, c.text, c.d, c.opt)
		require.ErrorContains(t, err, c.message, c.text)
	}
	_, err := infer(t, "", Dialect{}, InferOptions{})
	require.ErrorIs(t, err, ErrEmpty)
	_, err = InferCSV(t.Context(), nil, Dialect{}, InferOptions{})
	require.ErrorContains(t, err, "no input files")
}

func TestHeadersMustAgree(t *testing.T) {
	d := Dialect{Header: true}
	for second, message := range map[string]string{
		"a,c\n": `b.csv differ: column 2 is "b" in the first and "c" in the second`,
		"a\n":   `b.csv differ: the first has 2 columns, the second 1`,
	} {
		files := resolve(t, write(t, map[string]string{"a.csv": "a,b\n1,2\n", "b.csv": second, "c.csv": ""}))
		_, err := InferCSV(t.Context(), files, d, InferOptions{})
		require.ErrorContains(t, err, message)
		require.ErrorContains(t, err, "a.csv")
		l, err := InferCSV(t.Context(), files[:1], d, InferOptions{})
		require.NoError(t, err)
		_, err = OpenCSV(t.Context(), files, d, l, Config{Shards: 1})
		require.ErrorContains(t, err, message)
	}
}

func TestHeaderOnlyGivesNoRows(t *testing.T) {
	for _, text := range []string{"a,b", "a,b\r\n", "\n# c\na,b\n\n"} {
		files := resolve(t, write(t, map[string]string{"a.csv": text}))
		d := Dialect{Header: true, Comment: '#'}
		l, err := InferCSV(t.Context(), files, d, InferOptions{})
		require.NoError(t, err)
		require.Equal(t, "a utf8, b utf8", columns(l))
		require.Empty(t, allRows(t, opened(t, files, d, l, Config{Shards: 8}), 1))
	}
}

func TestSelect(t *testing.T) {
	files := resolve(t, write(t, map[string]string{"a.csv": "a,b,c\n1,x,2.5\n2,bad,3\n"}))
	d := Dialect{Header: true}
	l, err := InferCSV(t.Context(), files, d, InferOptions{})
	require.NoError(t, err)
	l, err = l.Select("c", "a")
	require.NoError(t, err)
	c := opened(t, files, d, l, Config{Shards: 2})
	require.Equal(t, "c float64, a int64", columns(Layout{Columns: batch.Columns(c.Schema())}))
	require.Equal(t, [][]string{{"2.5", "1"}, {"3", "2"}}, allRows(t, c, 10))
	_, err = l.Select("A")
	require.ErrorContains(t, err, `there is no column "A"; did you mean "a"`)
	_, err = l.Select("a", "a")
	require.ErrorContains(t, err, `column "a" is selected twice`)

	// A layout without columns still has rows.
	none, err := l.Select()
	require.NoError(t, err)
	require.Equal(t, [][]string{{}, {}}, allRows(t, opened(t, files, d, none, Config{Shards: 2}), 10))
}

// TestLongWholeNumbers requires that different whole numbers remain different: a column with
// numbers outside the range of int64 is text, unless float64 represents all its numbers
// exactly.
func TestLongWholeNumbers(t *testing.T) {
	for _, c := range []struct{ cells, kind, told string }{
		{"1 12345678901234567890 12345678901234567891", "utf8", `column "a" is text as 2 of 3 values are whole numbers that float64 would change, some beyond int64, the first at a.csv:3: "12345678901234567890"`},
		{"9223372036854775808", "utf8", `column "a" is text as 1 of 1 value is a whole number that float64 would change, some beyond int64, the first at a.csv:2: "9223372036854775808"`},
		{"-9223372036854775809 NA", "utf8", `column "a" is text as 1 of 1 value is a whole number that float64 would change, some beyond int64, the first at a.csv:2: "-9223372036854775809"`},
		{"9007199254740993 10000000000000000000", "utf8", `column "a" is text as 1 of 2 values is a whole number that float64 would change, some beyond int64, the first at a.csv:2: "9007199254740993"`},
		{"10000000000000000000 -20000000000000000000 3", "float64", ""},
		{"9223372036854775807 -9223372036854775808", "int64", ""},
		{"1 9007199254740993", "int64", ""},
		{"9007199254740992 -9007199254740994 00501", "int64", ""},
		{"1.5 12345678901234567891", "float64", ""},
		{"x 12345678901234567891", "utf8", ""},
	} {
		l, err := infer(t, "a\n"+strings.ReplaceAll(c.cells, " ", "\n")+"\n", Dialect{Header: true}, InferOptions{})
		require.NoError(t, err)
		require.Equal(t, c.kind, l.Columns[0].Type, c.cells)
		var told []string
		for _, m := range l.Mixed {
			m.Path = "a.csv"
			told = append(told, m.String())
		}
		require.Equal(t, c.told, strings.Join(told, "\n"), c.cells)
	}
	l, err := infer(t, "a,b\n12345678901234567890,7\n", Dialect{Header: true}, InferOptions{Types: map[string]string{"a": "float64"}, Others: "utf8"})
	require.NoError(t, err)
	require.Equal(t, "a float64 null, b utf8 null", columns(l))
	require.Empty(t, l.Inferred)
}

// TestLateColumns requires that a column without a value in the sample gets the type of its
// values after the sample.
func TestLateColumns(t *testing.T) {
	text := "a,b,c,d\n" + strings.Repeat("1,,NA,\n", 4) + "1,2,,\n1,x,NA,\n1,3,,\n2.5,4.5,,\n1,7,true,\n1,8,1,\n"
	for _, c := range []struct {
		sample int
		want   string
		later  map[string]int
	}{
		{1, "a int64 null, b int64 null, c bool null, d utf8 null", map[string]int{"b": 5, "c": 9}},
		{2, "a int64 null, b utf8 null, c utf8 null, d utf8 null", map[string]int{"b": 6, "c": 10}},
		{4, "a int64 null, b utf8 null, c utf8 null, d utf8 null", map[string]int{"b": 8, "c": 10}},
		{5, "a int64 null, b int64 null, c utf8 null, d utf8 null", map[string]int{"c": 10}},
		{100, "a float64, b utf8 null, c utf8 null, d utf8 null", nil},
	} {
		l, err := infer(t, text, Dialect{Header: true}, InferOptions{SampleRows: c.sample})
		require.NoError(t, err)
		require.Equal(t, c.want, columns(l), c.sample)
		require.Equal(t, c.later, l.Later, c.sample)
	}
	// The same holds for several files, and without a header.
	for _, header := range []string{"", "x,y\n"} {
		files := resolve(t, write(t, map[string]string{"a.csv": header + "1,\n2,\n", "b.csv": header + "x,\n", "c.csv": header + "3,4.5\n3,\n"}))
		l, err := InferCSV(t.Context(), files, Dialect{Header: header != ""}, InferOptions{SampleRows: 2, Names: []string{"x", "y"}})
		require.NoError(t, err)
		require.Equal(t, "x int64 null, y float64 null", columns(l))
	}
	// The error about a value that does not fit states the number of rows that were examined.
	text = "a,b\n1,\n2,\n3,4\n5,x\n"
	_, _, err := readText(t, map[string]string{"a.csv": text}, Dialect{Header: true}, InferOptions{SampleRows: 1}, Config{Shards: 1})
	require.ErrorContains(t, err, `a.csv:5: column "b": cannot read "x" as int64: it is not a whole number; the type was inferred from the first 3 rows`)
}
