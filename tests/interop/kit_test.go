// Package interop tests the exchange of models with the Python libraries XGBoost, LightGBM and
// onnxruntime in both directions. The environment variable SUPERSTEP_PYTHON is a list of paths
// of Python interpreters; without it, python3 on the PATH is used. The tests of a library are
// skipped if no interpreter has the library, and the log says so.
package interop

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/interchange/lightgbm"
	"github.com/superstep-ml/superstep/algorithms/interchange/xgboost"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/proctest"
)

// pythons returns the paths of the Python interpreters that have a module.
func pythons(t *testing.T, module string) []string {
	list := filepath.SplitList(os.Getenv("SUPERSTEP_PYTHON"))
	if len(list) == 0 {
		list = []string{"python3"}
	}
	var found []string
	for _, name := range list {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Logf("%s does not exist", name)
			continue
		}
		probe := "import importlib.util as u, sys; sys.exit(not (u.find_spec('numpy') and u.find_spec('" + module + "')))"
		if err := proctest.Command(path, "-c", probe).Run(); err != nil {
			t.Logf("%s has no numpy and %s", path, module)
			continue
		}
		found = append(found, path)
	}
	if len(found) == 0 {
		t.Skipf("SKIPPED: no Python with %s was found: name one in SUPERSTEP_PYTHON. Other tests still read the committed model files", module)
	}
	return found
}

// task is one task for worker.py.
type task struct {
	Library     string           `json:"library"`
	Do          string           `json:"do"`
	Model       string           `json:"model"`
	Rows        [][]any          `json:"rows"`
	Columns     map[string][]any `json:"columns,omitempty"` // if set, used instead of Rows
	Names       []string         `json:"names,omitempty"`
	Types       []string         `json:"types,omitempty"`
	Categorical []int            `json:"categorical,omitempty"`
	Sparse      bool             `json:"sparse,omitempty"`
	Params      map[string]any   `json:"params,omitempty"`
	Rounds      int              `json:"rounds,omitempty"`
	Label       []float64        `json:"label,omitempty"`
	Group       []int            `json:"group,omitempty"`
}

type answer struct {
	Version            string
	Margin, Prediction []float64
	Rounds             int
	Texts              []string
	Error              string
}

// work runs worker.py in a Python interpreter to execute tasks, and returns the answers.
func work(t *testing.T, python string, tasks []task) []answer {
	dir := t.TempDir()
	data, err := json.Marshal(tasks)
	require.NoError(t, err)
	in, out := filepath.Join(dir, "tasks.json"), filepath.Join(dir, "answers.json")
	require.NoError(t, os.WriteFile(in, data, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := proctest.CommandContext(ctx, python, filepath.Join("testdata", "worker.py"), in, out)
	c.Env = append(os.Environ(), "OMP_NUM_THREADS=1") // for such small tasks, more threads would only cost time
	text, err := c.CombinedOutput()
	require.NoError(t, err, "%s", text)
	data, err = os.ReadFile(out)
	require.NoError(t, err)
	var answers []answer
	require.NoError(t, json.Unmarshal(data, &answers))
	require.Len(t, answers, len(tasks))
	return answers
}

// cells converts rows to values that JSON can represent.
func cells(rows [][]float64) [][]any {
	made := make([][]any, len(rows))
	for i, row := range rows {
		for _, v := range row {
			switch {
			case v != v:
				made[i] = append(made[i], nil)
			case math.IsInf(v, 1):
				made[i] = append(made[i], "inf")
			case math.IsInf(v, -1):
				made[i] = append(made[i], "-inf")
			default:
				made[i] = append(made[i], v)
			}
		}
	}
	return made
}

// The features of the rows in all tests: four numbers, then two categories.
const (
	numbers    = 4
	features   = 6
	categories = 70
)

var types = []string{"float", "float", "float", "float", "c", "c"}

// drawRows returns n random rows with missing values. The rows have so few different values
// that some values equal thresholds of trees. If single is true, all values are representable
// as float32.
func drawRows(r *rand.Rand, n int, single bool) [][]float64 {
	rows := make([][]float64, n)
	for i := range rows {
		for f := range features {
			v := math.Round(r.NormFloat64()*20) / 10
			if r.IntN(4) == 0 {
				v = r.NormFloat64()
			}
			if f >= numbers {
				v = float64(r.IntN(categories))
			}
			if r.IntN(7) == 0 {
				v = math.NaN()
			}
			if single {
				v = float64(float32(v))
			}
			rows[i] = append(rows[i], v)
		}
	}
	return rows
}

// drawing has the options for drawing random ensembles.
type drawing struct {
	trees, outputs int
	single         bool
	average        bool
	weights        bool
	vectors        bool // whether leaves have a value for each output
	zeros          bool // whether nodes may treat zeros as missing
	base           []float64
}

// draw returns a random ensemble that uses all properties that nodes can have.
func (f drawing) draw(r *rand.Rand) *tree.Ensemble {
	e := &tree.Ensemble{Outputs: f.outputs, Base: f.base, Average: f.average, Single: f.single}
	for i := range features {
		e.Features = append(e.Features, "x "+string(rune('a'+i)))
	}
	for i := range f.trees {
		t := tree.Tree{Weight: 1, Output: int32(i % f.outputs)}
		if f.weights {
			t.Weight = float64(float32(0.2 + r.Float64()))
		}
		t.Nodes = []tree.Node{{}}
		f.split(r, &t, 0, 1+r.IntN(5))
		if f.vectors {
			t.Output = 0
			for range len(t.Nodes) * f.outputs {
				t.Values = append(t.Values, r.NormFloat64()/8)
			}
		}
		e.Trees = append(e.Trees, t)
	}
	return e
}

// split adds children to a node, recursively. In the list of nodes, right children do not
// always follow left children.
func (f drawing) split(r *rand.Rand, t *tree.Tree, at, depth int) {
	n := &t.Nodes[at]
	n.Value, n.Cover, n.Count = r.NormFloat64()/8, float64(1+r.IntN(100)), int64(r.IntN(100))
	if depth == 0 || r.IntN(8) == 0 {
		return
	}
	n.Feature, n.Gain = int32(r.IntN(features)), r.Float64()
	if r.IntN(2) == 0 {
		n.Flags |= tree.DefaultLeft
	}
	if n.Feature >= numbers {
		n.Flags |= tree.Categorical
		if r.IntN(2) == 0 {
			n.Flags |= tree.SetRight
		}
		n.Set, n.SetWords = int32(len(t.Sets)), int32(r.IntN(4))
		for range n.SetWords {
			t.Sets = append(t.Sets, r.Uint32()&r.Uint32())
		}
	} else {
		n.Threshold = math.Round(r.NormFloat64()*20) / 10
		switch {
		case r.IntN(12) == 0:
			n.Threshold = math.Inf(2*r.IntN(2) - 1)
		case r.IntN(10) == 0:
			n.Threshold = r.NormFloat64()
		}
		if f.single {
			n.Threshold = float64(float32(n.Threshold))
		}
		switch r.IntN(6) {
		case 0:
			n.Flags |= tree.NaNIsZero
		case 1:
			if f.zeros {
				n.Flags |= tree.ZeroMissing
			}
		}
	}
	left, right := len(t.Nodes), len(t.Nodes)+1
	if r.IntN(3) == 0 {
		left, right = right, left
	}
	n.Left, n.Right = int32(left), int32(right)
	t.Nodes = append(t.Nodes, tree.Node{}, tree.Node{})
	f.split(r, t, left, depth-1)
	f.split(r, t, right, depth-1)
}

// margins returns the margins of a row, computed by walking the trees node by node as package
// tree defines.
func margins(e *tree.Ensemble, row []float64) []float64 {
	sums, counts := make([]float64, e.Outputs), make([]float64, e.Outputs)
	for i := range e.Trees {
		t := &e.Trees[i]
		leaf := t.Leaf(row, e.Single)
		if t.Values == nil {
			sums[t.Output] += t.Weight * t.Nodes[leaf].Value
			counts[t.Output]++
			continue
		}
		for o := range sums {
			sums[o] += t.Weight * t.Values[int(leaf)*e.Outputs+o]
			counts[o]++
		}
	}
	for o := range sums {
		if e.Average && counts[o] > 0 {
			sums[o] /= counts[o]
		}
		sums[o] += e.Base[o]
	}
	return sums
}

func allMargins(e *tree.Ensemble, rows [][]float64) []float64 {
	var all []float64
	for _, row := range rows {
		all = append(all, margins(e, row)...)
	}
	return all
}

// requireNear requires that corresponding numbers in want and got differ by at most share times
// their absolute value, or by at most share if their absolute value is below 1.
func requireNear(t testing.TB, want, got []float64, share float64, what string) {
	require.Len(t, got, len(want), what)
	for i := range want {
		require.LessOrEqual(t, math.Abs(got[i]-want[i]), share*max(1, math.Abs(want[i])),
			"%s: number %d is %v, not %v", what, i, got[i], want[i])
	}
}

// TestReadBack requires that a written model file can be read back by this module as a model
// that gives the same results. It needs no Python.
func TestReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	rows := drawRows(r, 100, true)
	for name, m := range xgboostModels(t, r) {
		for _, encode := range []func() ([]byte, error){m.Encode, m.EncodeUBJSON} {
			data, err := encode()
			require.NoError(t, err, name)
			back, err := xgboost.Decode(data)
			require.NoError(t, err, name)
			requireNear(t, allMargins(m.Ensemble, rows), allMargins(back.Ensemble, rows), 1e-6, name)
		}
	}
	rows = drawRows(r, 100, false)
	for name, m := range lightgbmModels(t, r) {
		data, err := m.Encode()
		require.NoError(t, err, name)
		back, err := lightgbm.Decode(data)
		require.NoError(t, err, name)
		requireNear(t, allMargins(m.Ensemble, rows), allMargins(back.Ensemble, rows), 1e-12, name)
	}
}

func fileName(parts ...string) string {
	return strings.NewReplacer(":", "_", " ", "_").Replace(strings.Join(parts, "-"))
}
