package trial

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Sparse returns the entries of a row that are not 0.
func Sparse(x []float64) (indices []int32, values []float64) {
	for j, v := range x {
		if v != 0 {
			indices, values = append(indices, int32(j)), append(values, v)
		}
	}
	return indices, values
}

// Lines returns the lines of a file in testdata.
func Lines(t testing.TB, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// JSON returns the decoded contents of a JSON file in testdata.
func JSON[T any](t testing.TB, name string) (all T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &all))
	return all
}

// Number returns the number in text, and ends the test if text is not a number.
func Number(t testing.TB, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	require.NoError(t, err)
	return v
}

// Fields returns the table in lines of numbers. The fields of a line are separated by
// separator. The fields [first, label) are the features, and the field with index label is the
// label.
func Fields(t testing.TB, lines []string, separator string, first, label int) Table {
	t.Helper()
	table := Table{N: len(lines), D: label - first}
	for _, line := range lines {
		fields := strings.Split(line, separator)
		for _, f := range fields[first:label] {
			table.X = append(table.X, Number(t, f))
		}
		table.Label = append(table.Label, Number(t, fields[label]))
	}
	return table
}

// Heart returns the rows of the LibSVM file heart_scale in testdata: 13 features, and the
// labels −1 and 1.
func Heart(t testing.TB) Table {
	t.Helper()
	table := Table{D: 13}
	for _, line := range Lines(t, "heart_scale") {
		fields := strings.Fields(line)
		x := make([]float64, 13)
		for _, f := range fields[1:] {
			at, v, _ := strings.Cut(f, ":")
			x[int(Number(t, at))-1] = Number(t, v)
		}
		table.X, table.Label, table.N = append(table.X, x...), append(table.Label, Number(t, fields[0])), table.N+1
	}
	return table
}

// Iris returns iris.csv from testdata: four measurements of flowers of three species.
func Iris(t testing.TB) Table {
	t.Helper()
	table := Table{D: 4}
	for _, line := range Lines(t, "iris.csv")[1:] {
		fields := strings.Split(line, ",")
		for _, f := range fields[:4] {
			table.X = append(table.X, Number(t, f))
		}
		table.Words, table.N = append(table.Words, strings.TrimSpace(fields[4])), table.N+1
	}
	return table
}

// Cancer returns breast-cancer-wisconsin.csv from testdata, without the lines that lack a
// value: nine features, and the labels 2 and 4.
func Cancer(t testing.TB) Table {
	t.Helper()
	var whole []string
	for _, line := range Lines(t, "breast-cancer-wisconsin.csv") {
		if !strings.Contains(line, "?") {
			whole = append(whole, line)
		}
	}
	return Fields(t, whole, ",", 0, 9)
}

// Abalone returns the first n rows of abalone.csv from testdata, without the column of the sex.
// The rows have seven measurements, and the number of rings as label.
func Abalone(t testing.TB, n int) Table {
	t.Helper()
	return Fields(t, Lines(t, "abalone.csv")[:n], ",", 1, 8)
}
