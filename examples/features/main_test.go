package main

import (
	"encoding/csv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
)

func readCSV(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	return lines
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	require.NoError(t, err)
	return v
}

// plain computes the table of the job with maps and loops. It returns the features by customer.
func plain(t *testing.T, dir string, year float64) map[string][]float64 {
	t.Helper()
	euros := map[string]float64{}
	for _, l := range readCSV(t, filepath.Join(dir, "rates.csv"))[1:] {
		euros[l[0]] = number(t, l[1])
	}
	rows := map[string][]float64{} // years, orders, spent, largest
	for _, l := range readCSV(t, filepath.Join(dir, "customers.csv"))[1:] {
		rows[l[0]] = []float64{year - number(t, l[2]), 0, 0, 0}
	}
	for _, l := range readCSV(t, filepath.Join(dir, "orders.csv"))[1:] {
		if row := rows[l[1]]; row != nil {
			price := number(t, l[3]) * euros[l[2]]
			row[1], row[2], row[3] = row[1]+1, row[2]+price, max(row[3], price)
		}
	}
	return rows
}

// run runs the job at parallelism p and returns the content of its output file.
func run(t *testing.T, a args, p int) string {
	t.Helper()
	a.Output = filepath.Join(t.TempDir(), "features.csv")
	r, err := engine.Run(t.Context(), job, a, engine.Parallelism(p), engine.Stdout(t.Output()))
	require.NoError(t, err)
	r.Release()
	text, err := os.ReadFile(a.Output)
	require.NoError(t, err)
	return string(text)
}

func TestFeatures(t *testing.T) {
	first := run(t, args{Year: 2026}, 1)
	require.Equal(t, first, run(t, args{Year: 2026}, 3))
	path := filepath.Join(t.TempDir(), "features.csv")
	require.NoError(t, os.WriteFile(path, []byte(first), 0o600))
	got, want := readCSV(t, path), plain(t, "data", 2026)
	require.Equal(t, []string{"id", "country", "years", "orders", "spent", "largest"}, got[0])
	require.Len(t, got[1:], len(want))
	idle := 0
	for _, l := range got[1:] {
		row := want[l[0]]
		require.NotNil(t, row, l[0])
		for j, v := range row {
			require.InDelta(t, v, number(t, l[2+j]), 1e-9, "%s of customer %s", got[0][2+j], l[0])
		}
		if l[3] == "0" {
			idle++
		}
	}
	require.Equal(t, 8, idle)
	ids := slices.Sorted(maps.Keys(want)) // all ids have three digits, so sorting them as text sorts them by number
	for i, l := range got[1:] {
		require.Equal(t, ids[i], l[0])
	}
}

func TestUnknownCurrency(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rates.csv":     "currency,euros\nEUR,1\n",
		"orders.csv":    "id,customer_id,currency,amount\n1,7,EUR,2.5\n2,7,JPY,900\n",
		"customers.csv": "id,country,since\n7,FR,2020\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	_, err := engine.Run(t.Context(), job, args{Dir: dir, Year: 2026}, engine.Stdout(t.Output()))
	require.ErrorContains(t, err, "order 2 is in JPY, for which there is no rate")
}
