package main

import (
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeOptions returns options that name all files of invented figures in testdata. out is the
// path of the picture.
func fakeOptions(out string) options {
	return options{
		Alink: "testdata/invented-alink.json", KMeans: "testdata/invented-kmeans.json", Trees: "testdata/invented-trees.json",
		Threads: 2, Out: out,
	}
}

// TestBars compares bars with medians of ratios that were computed by hand.
func TestBars(t *testing.T) {
	o := fakeOptions("")
	bars, err := o.bars()
	require.NoError(t, err)
	require.Equal(t, []bar{
		{"Alink", "k-means", 11, fromFile}, {"Alink", "logistic regression", 12.5, fromFile}, {"Alink", "boosted trees", 44, fromFile},
		{"scikit-learn", "k-means", 3, inMemory}, // median of 4, 2 and 3
		{"XGBoost", "boosted trees", 2, inMemory}, {"LightGBM", "boosted trees", 2.0 / 3, inMemory},
	}, bars)

	o.Threads, o.KMeans = 1, ""
	bars, err = o.bars()
	require.NoError(t, err)
	require.Equal(t, []bar{{"Alink", "k-means", 33, fromFile}, {"XGBoost", "boosted trees", 6, inMemory}}, bars)

	o.Threads = 3
	_, err = o.bars()
	require.EqualError(t, err, "testdata/invented-alink.json: there is no line of another library with 3 threads")
	o.Alink = "testdata/none.json"
	_, err = o.bars()
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestRefused requires that files without another library or without valid figures are refused.
// Options without files, or with an unknown kind of picture, must be refused, too.
func TestRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no peers":   `[{"shape": {"Components": 8}, "lines": [{"contestant": "engine", "threads": 2, "rounds": [{"pass": 1}]}]}]`,
		"no numbers": `[{"shape": {"Components": 8}, "lines": [{"contestant": "engine", "threads": 2, "rounds": [{}]}, {"contestant": "scikit-learn", "threads": 2, "rounds": [{}]}, {"contestant": "scikit-learn elkan", "threads": 2, "rounds": [{}]}]}]`,
		"no JSON":    "rows",
	} {
		path := filepath.Join(t.TempDir(), "kmeans.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := (&options{KMeans: path, Threads: 2}).bars()
		require.Error(t, err, name)
	}
	for name, o := range map[string]options{"picture": fakeOptions("bars.txt"), "nothing": {Out: "bars.svg"}} {
		require.Error(t, o.Validate(), name)
	}
}

func TestDraw(t *testing.T) {
	dir := t.TempDir()
	o := fakeOptions(filepath.Join(dir, "bars.svg"))
	require.NoError(t, o.Validate())
	require.NoError(t, o.run())
	text, err := os.ReadFile(o.Out)
	require.NoError(t, err)
	for _, want := range []string{"Alink, logistic regression", "scikit-learn, k-means", "LightGBM, boosted trees", ">44<", ">0.7<", ">100<", meanings[fromFile], meanings[inMemory], "sans-serif"} {
		require.Contains(t, string(text), want)
	}

	o = options{Trees: o.Trees, Threads: 2, Out: filepath.Join(dir, "bars.png")}
	require.NoError(t, o.run())
	f, err := os.Open(o.Out)
	require.NoError(t, err)
	defer f.Close()
	picture, err := png.Decode(f)
	require.NoError(t, err)
	require.Greater(t, picture.Bounds().Dx(), 600)
}
