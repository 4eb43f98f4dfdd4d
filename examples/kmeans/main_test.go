package main

import (
	"encoding/csv"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotter"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/internal/proctest"
)

// TestMain lets the tests run the program in a process of its own, as users do.
func TestMain(m *testing.M) { proctest.Main(m, main) }

// outcome is the exit code and the output of a run of the program.
type outcome struct {
	code           int
	stdout, stderr string
}

// run runs the program with args in the directory dir.
func run(t *testing.T, dir string, args ...string) (got outcome) {
	t.Helper()
	got.code, got.stdout, got.stderr = proctest.RunProgram(t, dir, args...)
	return got
}

// flower is a row of the iris data set.
type flower struct {
	sizes   [4]float64
	species string
}

// flowers reads the iris data set with the standard library.
func flowers(t *testing.T) []flower {
	t.Helper()
	file, err := os.Open("data/iris.csv")
	require.NoError(t, err)
	defer file.Close()
	records, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	var all []flower
	for _, r := range records[1:] {
		f := flower{species: r[4]}
		for j := range f.sizes {
			f.sizes[j], err = strconv.ParseFloat(r[j], 64)
			require.NoError(t, err)
		}
		all = append(all, f)
	}
	require.Len(t, all, 150)
	return all
}

// square returns the squared distance between two points.
func square(a, b []float64) (sum float64) {
	for j := range a {
		sum += (a[j] - b[j]) * (a[j] - b[j])
	}
	return sum
}

func TestWithoutArguments(t *testing.T) {
	got := run(t, t.TempDir())
	require.Zero(t, got.code, got.stderr)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	require.Len(t, lines, 6, got.stdout)
	require.Equal(t, "cluster size Sepal length Sepal width Petal length Petal width", strings.Join(strings.Fields(lines[0]), " "))
	rows := 0
	for i, line := range lines[1:4] {
		cells := strings.Fields(line)
		require.Len(t, cells, 6, line)
		require.Equal(t, fmt.Sprint(i), cells[0])
		size, err := strconv.Atoi(cells[1])
		require.NoError(t, err)
		rows += size
	}
	require.Equal(t, 150, rows)
	require.Regexp(t, `^inertia per superstep: [0-9]`, lines[4])
	var purity float64
	_, err := fmt.Sscanf(lines[5], "purity against Species: %g", &purity)
	require.NoError(t, err)
	require.GreaterOrEqual(t, purity, 0.88)

	// The standard error has the plan in a few lines, and then a summary of the queue.
	require.Regexp(t, `^kmeans: \d+ operators in \d+ vertices, parallelism \d+, 128 shards, seed 0\n  ReadCSV → Vectorize`, got.stderr)
	require.Less(t, strings.Count(got.stderr, "\n"), 20)
	require.Regexp(t, `(?m)^kmeans: \d+ supersteps, inertia=[0-9.]+`, got.stderr)
}

// TestOutputs requires that the outputs are consistent: every flower is in the cluster with the
// nearest centre, every centre is about the mean of the flowers in its cluster, and the printed
// purity equals the purity of the written rows.
func TestOutputs(t *testing.T) {
	dir := t.TempDir()
	got := run(t, dir, "--output", "rows.csv", "--model", "model.json", "--progress", "off")
	require.Zero(t, got.code, got.stderr)
	model, err := kmeans.Load(filepath.Join(dir, "model.json"))
	require.NoError(t, err)
	require.Len(t, model.Centers, 3)

	file, err := os.Open(filepath.Join(dir, "rows.csv"))
	require.NoError(t, err)
	defer file.Close()
	records, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"Sepal length", "Sepal width", "Petal length", "Petal width", "Species", "cluster", "distance"}, records[0])

	var sums [3][4]float64
	var sizes [3]float64
	labels, inertia := [3]map[string]int{{}, {}, {}}, 0.0
	for i, f := range flowers(t) {
		record := records[i+1]
		require.Equal(t, f.species, record[4])
		cluster, err := strconv.Atoi(record[5])
		require.NoError(t, err)
		distance, err := strconv.ParseFloat(record[6], 64)
		require.NoError(t, err)
		require.InDelta(t, math.Sqrt(square(f.sizes[:], model.Centers[cluster])), distance, 1e-12)
		for _, center := range model.Centers {
			require.LessOrEqual(t, distance, math.Sqrt(square(f.sizes[:], center))+1e-12)
		}
		for j, v := range f.sizes {
			sums[cluster][j] += v
		}
		sizes[cluster]++
		labels[cluster][f.species]++
		inertia += distance * distance
	}
	pure := 0
	for c, center := range model.Centers {
		require.Equal(t, sizes[c], model.Sizes[c])
		for j, v := range center {
			require.InDelta(t, sums[c][j]/sizes[c], v, 1e-4) // the centres may still differ from the means by less than this when training ends
		}
		most := 0
		for _, n := range labels[c] {
			most = max(most, n)
		}
		pure += most
	}
	require.InDelta(t, inertia, model.Inertia, 1e-9)
	require.Contains(t, got.stdout, fmt.Sprintf("purity against Species: %.3f\n", float64(pure)/150))
}

// TestSameBytesAtAnyParallelism requires that parallelism does not change any byte of outputs.
func TestSameBytesAtAnyParallelism(t *testing.T) {
	for _, init := range []string{"k-means||", "k-means++", "random"} {
		var first []string
		for _, p := range []string{"1", "2", "3", "5", "8", "16"} {
			dir := t.TempDir()
			got := run(t, dir, "--init", init, "--seed", "7", "--parallelism", p, "--output", "rows.csv", "--model", "model.json", "--progress", "off")
			require.Zero(t, got.code, got.stderr)
			rows, err := os.ReadFile(filepath.Join(dir, "rows.csv"))
			require.NoError(t, err)
			model, err := os.ReadFile(filepath.Join(dir, "model.json"))
			require.NoError(t, err)
			if first == nil {
				first = []string{got.stdout, string(rows), string(model)}
			}
			require.Equal(t, first, []string{got.stdout, string(rows), string(model)}, "the outputs of --init %s must not change at parallelism %s", init, p)
		}
	}
}

func TestPlot(t *testing.T) {
	dir := t.TempDir()
	got := run(t, dir, "--plot", "iris.png", "--plot-columns", "Sepal length,Petal width", "--k", "9", "--progress", "off")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "plot written to iris.png\n")
	file, err := os.Open(filepath.Join(dir, "iris.png"))
	require.NoError(t, err)
	defer file.Close()
	picture, err := png.Decode(file)
	require.NoError(t, err)
	seen := map[[3]uint32]int{}
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			r, g, b, _ := picture.At(x, y).RGBA()
			seen[[3]uint32{r >> 8, g >> 8, b >> 8}]++
		}
	}
	for _, c := range colours {
		require.Greater(t, seen[[3]uint32{uint32(c.R), uint32(c.G), uint32(c.B)}], 20, "the plot must have more than 20 pixels of the colour %v", c)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1, "the plot must be the only file in the directory")
}

// TestPlotOfManyClusters requires that the legend names the clusters only if there are at most
// maxLegend, and that the title always has the number of clusters.
func TestPlotOfManyClusters(t *testing.T) {
	for k, named := range map[string]bool{"8": true, "9": false, "30": false} {
		dir := t.TempDir()
		got := run(t, dir, "--plot", "iris.svg", "--k", k, "--progress", "off")
		require.Zero(t, got.code, got.stderr)
		picture, err := os.ReadFile(filepath.Join(dir, "iris.svg"))
		require.NoError(t, err)
		require.Contains(t, string(picture), ">"+k+" clusters, inertia ")
		require.Equal(t, named, strings.Contains(string(picture), ">cluster 0 ("), "k=%s", k)
		require.Equal(t, named, strings.Contains(string(picture), ">cluster 7 ("), "k=%s", k)
		require.Contains(t, string(picture), ">mean<")
	}
}

// TestPlotOfNonFinite requires that points that cannot be plotted are left out and counted.
func TestPlotOfNonFinite(t *testing.T) {
	dir := t.TempDir()
	content := "a,b,c,d\n1,2,3,inf\n2,3,infinity,2e300\n9,3,inf,inf\n9,4,5,-inf\n8,4,-inf,inf\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte(content), 0o666))
	for columns, left := range map[string]string{"a,b": "", "a,c": ", 3 of its 5 points left out: NaN, infinite or beyond 1e300", "d,a": ", 5 of its 5 points left out: NaN, infinite or beyond 1e300"} {
		got := run(t, dir, "--input", "in.csv", "--columns", "a,b", "--k", "2", "--plot", "p.png", "--plot-columns", columns,
			"--output", "rows.csv", "--if-exists", "replace", "--progress", "off")
		require.Zero(t, got.code, got.stderr)
		require.Contains(t, got.stdout, "plot written to p.png"+left+"\n", columns)
		file, err := os.Open(filepath.Join(dir, "p.png"))
		require.NoError(t, err)
		_, err = png.Decode(file)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
}

// TestNamesOfTheFile requires that input columns may have the names of the job's own columns.
func TestNamesOfTheFile(t *testing.T) {
	dir := t.TempDir()
	content := "features,xy,rows,most,all,features_\n1,2,u,4,5,6\n2,3,u,5,6,7\n9,3,v,6,7,8\n9,4,v,6,8,9\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte(content), 0o666))
	for _, label := range []string{"rows", "features", "most", "all"} {
		got := run(t, dir, "--input", "in.csv", "--columns", "features,xy", "--k", "2", "--label", label, "--output", "rows.csv",
			"--plot", "p.png", "--plot-columns", "xy,features_", "--if-exists", "replace", "--progress", "off")
		require.Zero(t, got.code, got.stderr)
		if label == "rows" {
			require.Contains(t, got.stdout, "purity against rows: 1.000\n")
		}
		written, err := os.ReadFile(filepath.Join(dir, "rows.csv"))
		require.NoError(t, err)
		header, _, _ := strings.Cut(string(written), "\n")
		require.Equal(t, "features,xy,rows,most,all,features_,cluster,distance", header)
	}
}

// TestUnwritable requires that an output in a directory in which no file can be created is an
// error before the job runs. It uses /proc, where not even root can create files.
func TestUnwritable(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		return // this system has no /proc
	}
	for _, flag := range []string{"--model=/proc/x.json", "--plot=/proc/x.png"} {
		dir := t.TempDir()
		got := run(t, dir, flag, "--output", "rows.csv", "--progress", "off")
		require.Equal(t, 1, got.code, got.stderr)
		require.Contains(t, got.stderr, "no file can be made in /proc: no such file or directory")
		require.Empty(t, got.stdout)
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, files, "the job must not have run, and so not have written rows.csv")
	}
}

func TestMean(t *testing.T) {
	require.Equal(t, plotter.XY{X: 2, Y: 3}, mean(plotter.XYs{{X: 1, Y: 5}, {X: 3, Y: 1}}))
}

func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666))
	}
	write("exists.csv", "kept")
	write("exists.json", "kept")
	write("exists.png", "kept")
	write("empty.csv", "")
	write("header.csv", "a,b\n")
	write("two.csv", "a,b\n1,2\n3,x\n")
	write("few.csv", "a,b\n1,2\n3\n")
	write("cluster.csv", "a,b,cluster\n1,2,3\n")
	write("distance.csv", "a,b,distance\n1,2,3\n")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o777))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.png"), 0o777))
	require.NoError(t, os.Symlink("folder", filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("exists.csv", filepath.Join(dir, "alias.csv")))
	for _, c := range []struct {
		args string // separated by spaces
		code int
		says []string
	}{
		{"--kk 3", 2, []string{"unknown flag --kk", `did you mean "--k"?`, `"kmeans --help" lists the flags`}},
		{"--colums a", 2, []string{`did you mean "--columns"?`}},
		{"--k three", 2, []string{"--k", `"three"`}},
		{"--init given", 2, []string{"--init must be one of \"random\",\"k-means++\",\"k-means||\" but got \"given\""}},
		{"--init foo", 2, []string{"--init must be one of \"random\",\"k-means++\",\"k-means||\" but got \"foo\""}},
		{"--parallelism 200", 2, []string{"--parallelism is 200", "128 shards"}},
		{"--shards 7", 2, []string{"--shards is 7", "power of two"}},
		{"--input two.csv", 2, []string{"--input needs --columns"}},
		{"--input two.csv --columns a --plot new.png", 2, []string{"two --plot-columns"}},
		{"--plot new.gif", 2, []string{"new.gif", ".png"}},
		{"--model new --output new", 2, []string{"two outputs", "new"}},
		{"--output p6.csv --model ./p6.csv", 2, []string{"two outputs", "p6.csv and ./p6.csv"}},
		{"--output p6.csv --model folder/../p6.csv", 2, []string{"two outputs"}},
		{"--output folder/p6.csv --model link/p6.csv", 2, []string{"two outputs"}},
		{"--model folder/p.png --plot " + dir + "/link/p.png", 2, []string{"two outputs"}},
		{"--output alias.csv --model exists.csv --if-exists replace", 2, []string{"two outputs"}},
		{"--model folder", 1, []string{"output folder is a directory"}},
		{"--model folder --if-exists replace", 1, []string{"output folder is a directory"}},
		{"--plot folder.png --if-exists replace", 1, []string{"output folder.png is a directory"}},
		{"--model exists.csv/x.json", 1, []string{"exists.csv/x.json", "not a directory"}},
		{"--input cluster.csv --columns a,b", 1, []string{`--input cluster.csv has a column "cluster", which the output adds: rename it`}},
		{"--input distance.csv --columns a,b", 1, []string{`--input distance.csv has a column "distance", which the output adds: rename it`}},
		{"--input exist.csv --columns a", 1, []string{"exist.csv", "does not exist", "there is exists.csv"}},
		{"--input empty.csv --columns a", 1, []string{"empty.csv", "is empty"}},
		{"--input header.csv --columns a,b", 1, []string{"there are no rows"}},
		{"--input few.csv --columns a,b --k 1", 1, []string{"few.csv:3", "1 field"}},
		{"--input two.csv --columns b", 1, []string{"two.csv:3", `column "b"`, `"x"`}},
		{"--columns Specis", 1, []string{`no column "Specis"`, `did you mean "Species"?`}},
		{"--label Specis", 1, []string{`did you mean "Species"?`}},
		{"--k 0", 1, []string{"K is 0", "at least 1"}},
		{"--k=-2", 1, []string{"K is -2"}},
		{"--k 148", 1, []string{"148 clusters are more than the 147 distinct points", "147 distinct points"}},
		{"--output exists.csv", 1, []string{"exists.csv exists", "--if-exists replace"}},
		{"--model exists.json", 1, []string{"exists.json exists", "--if-exists replace"}},
		{"--plot exists.png", 1, []string{"exists.png exists", "--if-exists replace"}},
		{"--output no/new.csv", 1, []string{"no/new.csv", "does not exist"}},
		{"--model no/new.json", 1, []string{"no/new.json", "no such file or directory"}},
		{"--plot no/new.png", 1, []string{"no/new.png", "no such file or directory"}},
	} {
		got := run(t, dir, append(strings.Fields(c.args), "--progress", "off")...)
		require.Equal(t, c.code, got.code, "%s: %s", c.args, got.stderr)
		require.Empty(t, got.stdout, c.args)
		require.NotContains(t, got.stderr, "goroutine ", c.args)
		for _, words := range c.says {
			require.Contains(t, got.stderr, words, c.args)
		}
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 13, "failed runs must not leave files")
	for _, name := range []string{"exists.csv", "exists.json", "exists.png"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, "kept", string(content))
	}
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	outputs := []string{"--output", "rows.csv", "--model", "model.json", "--plot", "iris.svg", "--progress", "off"}
	require.Zero(t, run(t, dir, outputs...).code)
	require.Equal(t, 1, run(t, dir, outputs...).code)
	got := run(t, dir, append(outputs, "--if-exists", "replace", "--k", "2")...)
	require.Zero(t, got.code, got.stderr)
	model, err := kmeans.Load(filepath.Join(dir, "model.json"))
	require.NoError(t, err)
	require.Len(t, model.Centers, 2)
}

func TestExplain(t *testing.T) {
	first := run(t, t.TempDir(), "--explain", "--parallelism", "2")
	require.Zero(t, first.code, first.stderr)
	for _, stage := range []string{"AllReduceSend(centroid", "AllReduceSum(centroid", "AllReduceRecv(centroid", "queue kmeans"} {
		require.Contains(t, first.stdout, stage)
	}
	require.Equal(t, first, run(t, t.TempDir(), "--explain", "--parallelism", "2"))
}
