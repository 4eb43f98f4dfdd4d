package lightgbm

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// small returns a model with a numeric and a categorical split.
func small() *Model {
	return &Model{Objective: "binary", Settings: []string{"[seed: 3]"}, Monotone: []int8{1, 0}, Ensemble: &tree.Ensemble{
		Features: []string{"a", "b c"}, Outputs: 1, Base: []float64{0},
		Trees: []tree.Tree{{Weight: 1, Sets: []uint32{5, 1}, Nodes: []tree.Node{
			{Left: 1, Right: 2, Feature: 0, Threshold: 1.5, Flags: tree.DefaultLeft, Gain: 3, Cover: 9, Count: 9},
			{Left: 3, Right: 4, Feature: 1, SetWords: 2, Flags: tree.Categorical, Cover: 6, Count: 6},
			{Value: 0.5, Cover: 3, Count: 3}, {Value: -1, Cover: 2, Count: 2}, {Value: 2, Cover: 4, Count: 4},
		}}},
	}}
}

func encoded(t testing.TB) string {
	text, err := small().Encode()
	require.NoError(t, err)
	return string(text)
}

// TestTruncated requires an error for a file that is cut anywhere before the end of its trees.
func TestTruncated(t *testing.T) {
	text := encoded(t)
	end := strings.Index(text, "end of trees") + len("end of trees")
	for n := range end {
		_, err := Decode([]byte(text[:n]))
		require.Error(t, err, "Decode must refuse a file cut to %d bytes", n)
	}
	for n := end; n <= len(text); n++ {
		m, err := Decode([]byte(text[:n]))
		if err == nil {
			require.Len(t, m.Ensemble.Trees, 1)
			continue
		}
		require.ErrorContains(t, err, "the parameters have no end")
	}
	m, err := Decode([]byte(strings.ReplaceAll(text, "\n", "\r\n")))
	require.NoError(t, err)
	require.Equal(t, small().Settings, m.Settings)
	require.Equal(t, small().Monotone, m.Monotone)
	require.Equal(t, []string{"a", "b_c"}, m.Ensemble.Features)
}

// TestDamaged requires, for every kind of damage, an error that says where the damage is.
func TestDamaged(t *testing.T) {
	text := encoded(t)
	for want, change := range map[string][2]string{
		"line 1: it is \"wood\": the first line of a model":               {"tree\n", "wood\n"},
		"line 3: num_class is \"0\": want an integer from 1":              {"num_class=1", "num_class=0"},
		"line 3: num_class is \"99999999999999999999\"":                   {"num_class=1", "num_class=99999999999999999999"},
		"line 4: num_tree_per_iteration is \"x\"":                         {"num_tree_per_iteration=1", "num_tree_per_iteration=x"},
		"line 7: binary has 2 trees in each iteration: want 1":            {"num_tree_per_iteration=1", "num_tree_per_iteration=2"},
		"there is no label_index before the trees":                        {"label_index", "label"},
		"line 6: max_feature_idx is \"-1\"":                               {"max_feature_idx=1", "max_feature_idx=-1"},
		"line 8: feature_names has 2 names, and max_feature_idx is 2":     {"max_feature_idx=1", "max_feature_idx=2"},
		"line 10: feature_infos has 1 features: there are 2":              {"feature_infos=", "feature_infos=[0:1]\nx="},
		"line 9: monotone_constraints has 1 features":                     {"constraints=1 0", "constraints=1"},
		"line 9: the constraint \"7\" is not one of":                      {"constraints=1 0", "constraints=1 7"},
		"line 7: there is no objective \"binry\": did you mean":           {"objective=binary", "objective=binry"},
		"line 7: sigmoid is \"-1\": want a number above 0":                {"sigmoid:1", "sigmoid:-1"},
		"line 7: num_class is \"3\", and there are 1 trees":               {"objective=binary sigmoid:1", "objective=multiclass num_class:3"},
		"line 4: \"num_class\" occurs twice":                              {"num_tree_per_iteration", "num_class"},
		"it is \"Tree=1\": want Tree=0":                                   {"Tree=0", "Tree=1"},
		"tree 0: \"num_cat\" occurs twice":                                {"num_leaves=3", "num_cat=3"},
		"tree 0: num_leaves: there is no line of the name":                {"num_leaves=3\n", ""},
		"tree 0: num_leaves: number 0 is \"0\": want an integer from 1":   {"num_leaves=3", "num_leaves=0"},
		"tree 0: leaf_value: it has 8 characters for 2000000000 numbers":  {"num_leaves=3", "num_leaves=2000000000"},
		"tree 0: leaf_value: it has 3 numbers: want 4":                    {"num_leaves=3", "num_leaves=4"},
		"leaf_value: number 0 is \"x\": want a number":                    {"leaf_value=0.5", "leaf_value=x"},
		"leaf_value: number 0 is \"1e999\": want a number":                {"leaf_value=0.5", "leaf_value=1e999"},
		"tree 0: node 2: its value is +Inf, which is not finite":          {"leaf_value=0.5", "leaf_value=inf"},
		"left_child: number 0 is \"9\": want an integer from -3 to 1":     {"left_child=1", "left_child=9"},
		"left_child: node 0 is a child of node 0, and has a parent":       {"left_child=1", "left_child=0"},
		"left_child: leaf 0 is a child of node 1, and has a parent":       {"left_child=1 -2", "left_child=1 -1"},
		"left_child: 2 of 5 nodes and leaves cannot be reached":           {"left_child=1 -2", "left_child=-2 1"},
		"split_feature: number 0 is \"2\": want an integer from 0 to 1":   {"split_feature=0", "split_feature=2"},
		"threshold: that of node 0 is NaN":                                {"threshold=1.4", "threshold=nan 0\nx=1.4"},
		"threshold: node 1 has set 5: there are 1":                        {"threshold=1.4999999999999998 0", "threshold=1.5 5"},
		"decision_type: number 0 is \"12\": want an integer from 0 to 11": {"decision_type=10", "decision_type=12"},
		"cat_boundaries: number 1 is 0: they ascend from 0":               {"cat_boundaries=0 2", "cat_boundaries=1 0"},
		"cat_threshold: it has 2 numbers: want 1":                         {"cat_boundaries=0 2", "cat_boundaries=0 1"},
		"cat_threshold: it has 3 characters for 2000000000":               {"cat_boundaries=0 2", "cat_boundaries=0 2000000000"},
		"cat_threshold: number 0 is \"4294967296\"":                       {"cat_threshold=5", "cat_threshold=4294967296"},
		"the leaves hold linear models (linear_tree), which are not read": {"is_linear=0", "is_linear=1"},
		"tree 0: \"shrinkage\" is no line of a tree":                      {"shrinkage=1", "shrinkage"},
		"there are 1 trees, and tree_sizes has 2":                         {"tree_sizes=", "tree_sizes=3 "},
		"pandas_categorical: invalid character":                           {"end of parameters", "end of parameters\npandas_categorical:x"},
	} {
		changed := strings.Replace(text, change[0], change[1], 1)
		if want == "cat_boundaries: number 1 is 0: they ascend from 0" {
			want = "cat_boundaries: number 0 is 1: they ascend from 0"
		}
		require.NotEqual(t, text, changed, want)
		_, err := Decode([]byte(changed))
		require.ErrorContains(t, err, want)
	}
	_, err := Decode(nil)
	require.ErrorContains(t, err, "the file is empty")
	_, err = Load(filepath.Join(t.TempDir(), "none.txt"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Decode([]byte("tree\nnum_class=2\nlabel_index=0\nmax_feature_idx=0\nfeature_names=a\nfeature_infos=none\n\nTree=0\nnum_leaves=1\nnum_cat=0\nleaf_value=1\n\nend of trees\n"))
	require.ErrorContains(t, err, "there are 1 trees, and 2 in each iteration")
}

// allocated returns the number of bytes that f allocates on the heap, including memory that is
// freed again.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHostile requires that the reader does not allocate much memory for a small file.
func TestHostile(t *testing.T) {
	text := encoded(t)
	for name, change := range map[string][2]string{
		"leaves":     {"num_leaves=3", "num_leaves=2147483647"},
		"sets":       {"num_cat=1", "num_cat=2147483646"},
		"words":      {"cat_boundaries=0 2", "cat_boundaries=0 2147483647"},
		"features":   {"max_feature_idx=1", "max_feature_idx=2147483646"},
		"iterations": {"num_tree_per_iteration=1", "num_tree_per_iteration=2147483647"},
	} {
		changed := strings.Replace(text, change[0], change[1], 1)
		require.NotEqual(t, text, changed)
		var err error
		bytes := allocated(func() { _, err = Decode([]byte(changed)) })
		require.Error(t, err, name)
		require.Less(t, bytes, uint64(1<<20), name)
	}
}

// chain returns the text of a tree of n splits, each of which has at most one split as a child.
// number returns the number that a split gets in the file.
func chain(n int, number func(int) int) string {
	left, right, threshold := make([]int, n), make([]int, n), make([]int, n)
	for i := range n {
		left[number(i)], right[number(i)], threshold[number(i)] = -i-1, -n-1, i
		if i+1 < n {
			right[number(i)] = number(i + 1)
		}
	}
	list := func(v any) string { return strings.Trim(fmt.Sprint(v), "[]") }
	zeros := make([]int, n)
	leaves := make([]int, n+1)
	for i := range leaves {
		leaves[i] = i
	}
	return fmt.Sprintf("tree\nnum_class=1\nlabel_index=0\nmax_feature_idx=0\nfeature_names=a\nfeature_infos=none\n\nTree=0\nnum_leaves=%d\nnum_cat=0\nsplit_feature=%s\nthreshold=%s\nleft_child=%s\nright_child=%s\nleaf_value=%s\n\nend of trees\n",
		n+1, list(zeros), list(threshold), list(left), list(right), list(leaves))
}

// TestDeep requires that trees may be deep, up to a limit, and that their splits may be in any
// order.
func TestDeep(t *testing.T) {
	m, err := Decode([]byte(chain(30000, func(i int) int { return i })))
	require.NoError(t, err)
	require.InDelta(t, 20000, trial.Margins(m.Ensemble, []float64{19999.5})[0], 0)
	_, err = Decode([]byte(chain(70000, func(i int) int { return i })))
	require.ErrorContains(t, err, "65536 splits below the root")
	mixed := func(i int) int {
		if i == 0 {
			return 0
		}
		return 9 - i
	}
	m, err = Decode([]byte(chain(9, mixed)))
	require.NoError(t, err)
	for x := range 9 {
		require.InDelta(t, x, trial.Margins(m.Ensemble, []float64{float64(x)})[0], 0, "values up to the threshold must go left")
		require.InDelta(t, x+1, trial.Margins(m.Ensemble, []float64{float64(x) + 1e-9})[0], 0)
	}
}

// TestNotExpressible requires an error that names the fact that LightGBM cannot express.
func TestNotExpressible(t *testing.T) {
	for want, change := range map[string]func(m *Model){
		"there is no ensemble":                       func(m *Model) { m.Ensemble = nil },
		"there is no objective \"logistic\"":         func(m *Model) { m.Objective = "logistic" },
		"the ensemble has no features":               func(m *Model) { m.Ensemble.Trees, m.Ensemble.Features = nil, nil },
		"the ensemble has 2 outputs, and binary has": func(m *Model) { m.Ensemble.Outputs, m.Ensemble.Base = 2, []float64{0, 0} },
		"there are 1 ranges of 2 features":           func(m *Model) { m.Ranges = []string{"none"} },
		"the range \"a b\" is empty or has blanks":   func(m *Model) { m.Ranges = []string{"none", "a b"} },
		"there are 1 constraints of 2 features":      func(m *Model) { m.Monotone = []int8{1} },
		"the setting \"end of parameters\" is no":    func(m *Model) { m.Settings = []string{"end of parameters"} },
		"the parameter \"sigmoid\" has blanks":       func(m *Model) { m.Parameters = map[string]string{"sigmoid": "1\n"} },
		"tree: tree 0: node 0: its child 9":          func(m *Model) { m.Ensemble.Trees[0].Nodes[0].Right = 9 },
		"node 0: its value times the weight is +Inf": func(m *Model) {
			m.Ensemble.Trees[0].Nodes[0].Value, m.Ensemble.Trees[0].Weight = 1e300, 1e300
		},
		"it would have more than 131072 leaves": func(m *Model) { m.Ensemble.Trees[0] = missingInSetTree(14) },
	} {
		m := small()
		change(m)
		_, err := m.Encode()
		require.ErrorContains(t, err, want)
	}
	_, err := New(nil, "binary", 0)
	require.ErrorContains(t, err, "there is no ensemble")
	_, err = New(small().Ensemble, "binry", 0)
	require.ErrorContains(t, err, "did you mean")
	_, err = New(small().Ensemble, "multiclass", 3)
	require.ErrorContains(t, err, "1 outputs: multiclass with 3 classes")
	require.Error(t, small().Save(filepath.Join(t.TempDir(), "no", "such.txt")))
	require.Panics(t, func() { small().Transform([]float64{1, 2}, []float64{1}) })
}

// missingInSetTree returns a full tree of categorical splits in which missing values go to the
// side of the set. To write it, each split needs a copy of half of the nodes below it.
func missingInSetTree(depth int) tree.Tree {
	t := tree.Tree{Weight: 1, Sets: []uint32{6}, Nodes: make([]tree.Node, 1<<(depth+1)-1)}
	for i := range 1<<depth - 1 {
		t.Nodes[i] = tree.Node{Left: int32(2*i + 1), Right: int32(2*i + 2), Feature: 1, SetWords: 1, Flags: tree.Categorical | tree.DefaultLeft}
	}
	return t
}

// TestMissingInSets requires that missing values that go to the side of a set are routed
// through copied subtrees. These may contain splits on other features too.
func TestMissingInSets(t *testing.T) {
	m := small()
	m.Ensemble.Trees[0] = missingInSetTree(5)
	for i := range m.Ensemble.Trees[0].Nodes {
		n := &m.Ensemble.Trees[0].Nodes[i]
		n.Value = float64(i)
		if !n.Leaf() {
			n.Feature = int32(i % 3 % 2)
			if i%5 == 0 { // missing values go to the side opposite to the set
				n.Flags |= tree.SetRight
			}
		}
	}
	data, err := m.Encode()
	require.NoError(t, err)
	back, err := Decode(data)
	require.NoError(t, err)
	require.Greater(t, len(back.Ensemble.Trees[0].Nodes), len(m.Ensemble.Trees[0].Nodes))
	values := []float64{math.NaN(), -1, 0, 1, 2, 3, 31, 32, 1e9}
	for _, x := range values {
		for _, y := range values {
			row := []float64{x, y}
			require.Equal(t, trial.Margins(m.Ensemble, row), trial.Margins(back.Ensemble, row), "categories %v", row)
		}
	}
}

// TestThresholdsOfSingle requires that the written threshold separates float64 values exactly
// even if features are rounded to float32: the next larger float64 must go to the other side.
func TestThresholdsOfSingle(t *testing.T) {
	for _, threshold := range []float32{0, 1, -1, 1.5, 0.1, 16777216, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(1))} {
		v := atMost(float64(threshold), true)
		require.Less(t, float32(v), threshold)
		require.GreaterOrEqual(t, float32(math.Nextafter(v, math.Inf(1))), threshold)
		v = atMost(float64(threshold), false)
		require.Less(t, v, float64(threshold))
		require.Equal(t, float64(threshold), math.Nextafter(v, math.Inf(1)))
	}
}

// FuzzDecode decodes arbitrary bytes. Decode must not panic, and a decoded model must be the
// same after it was encoded and decoded again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(encoded(f)))
	f.Add([]byte(chain(9, func(i int) int { return (i * 4) % 9 })))
	for _, name := range []string{"frame.txt", "4.7.0/categories.txt", "2.3.1/binary.txt", "3.3.5/multiclass.txt", "4.7.0/rf.txt", "4.7.0/constant.txt"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.NoError(t, m.Ensemble.Validate())
		once, err := m.Encode()
		if err != nil { // for example, a value that overflows float64 when it is multiplied
			return
		}
		back, err := Decode(once)
		require.NoError(t, err)
		again, err := back.Encode()
		require.NoError(t, err)
		require.Equal(t, string(once), string(again))
	})
}
