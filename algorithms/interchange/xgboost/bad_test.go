package xgboost

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// small returns a model with a numeric and a categorical split.
func small() *Model {
	return &Model{Objective: "binary:logistic", Attributes: map[string]string{"note": "é\n\"\\\x01"}, Ensemble: &tree.Ensemble{
		Features: []string{"a", "b"}, Outputs: 1, Base: []float64{0}, Single: true,
		Trees: []tree.Tree{{Weight: 1, Sets: []uint32{5, 1}, Nodes: []tree.Node{
			{Left: 1, Right: 2, Feature: 0, Threshold: 1.5, Flags: tree.DefaultLeft, Gain: 3, Cover: 9},
			{Left: 3, Right: 4, Feature: 1, SetWords: 2, Flags: tree.Categorical | tree.SetRight, Cover: 6},
			{Value: 0.5, Cover: 3}, {Value: -1, Cover: 2}, {Value: 2, Cover: 4},
		}}},
	}}
}

func encoded(t testing.TB) (string, []byte) {
	text, err := small().Encode()
	require.NoError(t, err)
	binary, err := small().EncodeUBJSON()
	require.NoError(t, err)
	return string(text), binary
}

// TestTruncated requires an error for a file that is cut anywhere, and for a file with
// additional bytes at its end.
func TestTruncated(t *testing.T) {
	text, data := encoded(t)
	for n := range text {
		_, err := Decode([]byte(text[:n]))
		require.Error(t, err, "Decode must refuse a file cut to %d bytes", n)
	}
	for n := range data {
		_, err := Decode(data[:n])
		require.Error(t, err, "Decode must refuse a file cut to %d bytes", n)
	}
	_, err := Decode([]byte(text + "{"))
	require.ErrorContains(t, err, "follows the object")
	_, err = Decode(append(data, '}'))
	require.ErrorContains(t, err, "follows the object")
	m, err := Decode([]byte(text + " \n"))
	require.NoError(t, err)
	require.Equal(t, small().Attributes, m.Attributes)
}

// TestDamaged requires, for every kind of damage, an error that says where the damage is.
func TestDamaged(t *testing.T) {
	text, _ := encoded(t)
	for want, change := range map[string][2]string{
		"the file: it has no member \"learner\"":                             {`"learner"`, `"learned"`},
		"learner.objective: there is no objective \"binary:logistik\"":       {`"name":"binary:logistic"`, `"name":"binary:logistik"`},
		`did you mean "binary:logistic"`:                                     {`"name":"binary:logistic"`, `"name":"binary:logistik"`},
		"learner.objective.name: it is a number: want text":                  {`"name":"binary:logistic"`, `"name":3`},
		"gradient_booster: the booster is \"gblinear\"":                      {`"name":"gbtree"`, `"name":"gblinear"`},
		"learner_model_param.base_score: base_score is 2: want a prob":       {`"base_score":"5E-1"`, `"base_score":"2E0"`},
		"base_score: it has 2 numbers: there are 1 outputs":                  {`"base_score":"5E-1"`, `"base_score":"[1E0,2E0]"`},
		"has no closing bracket":                                             {`"base_score":"5E-1"`, `"base_score":"[1E0"`},
		"invalid syntax":                                                     {`"base_score":"5E-1"`, `"base_score":"x"`},
		"base_score is NaN":                                                  {`"base_score":"5E-1"`, `"base_score":"NaN"`},
		"num_class: \"-1\": want an integer from 0 to 65536":                 {`"num_class":"0"`, `"num_class":"-1"`},
		"num_class: \"99999999\": want an integer from 0":                    {`"num_class":"0"`, `"num_class":"99999999"`},
		"there are 2 targets and 3 classes":                                  {`"num_class":"0","num_feature":"2","num_target":"1"`, `"num_class":"3","num_feature":"2","num_target":"2"`},
		"learner: feature_names has 2 names: there are 3 features":           {`"feature_types":["float","c"],`, ``},
		"feature_types: it has 2 types: there are 3":                         {`"num_feature":"2","num_target"`, `"num_feature":"3","num_target"`},
		"trees: it has 1 trees: num_trees says 9":                            {`"num_trees":"1"`, `"num_trees":"9"`},
		"trees: it has 1 trees, and a round of 3 outputs has 3":              {`"num_class":"0"`, `"num_class":"3"`},
		"trees: it has 1 trees, and a round of 1 outputs has 2":              {`"num_parallel_tree":"1"`, `"num_parallel_tree":"2"`},
		"tree_info: it has 1 numbers: want 2":                                {`"trees":[`, `"trees":[{},`},
		"tree_info[0]: it is 4: want an integer from 0 to 0":                 {`"tree_info":[0]`, `"tree_info":[4]`},
		"trees[0].left_children: it has 4 numbers: want 5":                   {`"left_children":[1,3,`, `"left_children":[1,`},
		"trees[0].left_children[0]: it is 99: want an integer from -1":       {`"left_children":[1,`, `"left_children":[99,`},
		"left_children[0]: it is 1.5: want an integer":                       {`"left_children":[1,`, `"left_children":[1.5,`},
		"node 0 is a child of node 1, and has a parent already":              {`"left_children":[1,3,`, `"left_children":[1,0,`},
		"node 2 is a child of node 1, and has a parent already":              {`"left_children":[1,3,`, `"left_children":[1,2,`},
		"trees[0]: node 0 has one child":                                     {`"left_children":[1,`, `"left_children":[-1,`},
		"it has 5 nodes: 3 can be reached and 0 are deleted":                 {`"left_children":[1,3,-1,-1,-1],`, `"left_children":[1,-1,-1,-1,-1],"x":0,`},
		"trees[0]: node 0 splits on feature 7: there are 2":                  {`"split_indices":[0,`, `"split_indices":[7,`},
		"the split condition of node 0 is NaN":                               {`"split_conditions":[1.5E0,`, `"split_conditions":[NaN,`},
		"node 2: its value is +Inf, which is not finite":                     {`"split_conditions":[1.5E0,NaN,5E-1,`, `"split_conditions":[1.5E0,NaN,Infinity,`},
		"trees[0].split_type[0]: it is 2: want an integer from 0 to 1":       {`"split_type":[0,`, `"split_type":[2,`},
		"node 0 is categorical and has no categories":                        {`"split_type":[0,`, `"split_type":[1,`},
		"categories_nodes: node 2 is not categorical":                        {`"categories_nodes":[1]`, `"categories_nodes":[2]`},
		"the categories of node 1 are 2 to 5 of 3":                           {`"categories_segments":[0]`, `"categories_segments":[2]`},
		"categories_sizes[0]: it is 0: want an integer from 1":               {`"categories_sizes":[3]`, `"categories_sizes":[0]`},
		"categories[0]: it is -1: want an integer from 0":                    {`"categories":[0,`, `"categories":[-1,`},
		"categories[0]: it is 3e+09: want an integer from 0":                 {`"categories":[0,`, `"categories":[3000000000,`},
		"its leaves are vectors":                                             {`"size_leaf_vector":"1"`, `"size_leaf_vector":"3"`},
		"trees[0].tree_param.num_nodes: \"99999999999999999999\": want an i": {`"num_nodes":"5"`, `"num_nodes":"99999999999999999999"`},
		"left_children: it has 5 numbers: want 2000000000":                   {`"num_nodes":"5"`, `"num_nodes":"2000000000"`},
		"it has no nodes": {`"num_nodes":"5"`, `"num_nodes":"0"`},
		"attributes: it is a number: want an object": {`"attributes":{"note":"é\n\"\\\u0001"}`, `"attributes":3`},
		"attributes.note: it is a number: want text": {`"note":"é\n\"\\\u0001"`, `"note":3`},
		"the member \"attributes\" occurs twice":     {`{"learner":{`, `{"learner":{"attributes":{},`},
		`"99e9999" is no number of float32`:          {`"split_conditions":[1.5E0`, `"split_conditions":[99e9999`},
		`is no integer of 64 bits`:                   {`"split_indices":[0,`, `"split_indices":[99999999999999999999,`},
		"the text is not UTF-8":                      {`"é`, "\"\xff"},
		"follows a backslash":                        {`\n`, `\y`},
		"are no four hexadecimal digits":             {`\u0001`, `\uxyzw`},
		"a text contains the control character 10":   {`\n`, "\n"},
		"no value begins with":                       {`"tree_info":[0]`, `"tree_info":[?]`},
		"found '}', want ']'":                        {`"tree_info":[0]`, `"tree_info":[0}`},
		"want the word true":                         {`"tree_info":[0]`, `"tree_info":[tru]`},
	} {
		changed := strings.Replace(text, change[0], change[1], 1)
		if strings.HasPrefix(want, "learner: feature_names") {
			changed = strings.Replace(changed, `"num_feature":"2","num_target"`, `"num_feature":"3","num_target"`, 1)
		}
		if strings.HasPrefix(want, "tree_info: it has 1") {
			changed = strings.Replace(changed, `"num_trees":"1"`, `"num_trees":"2"`, 1)
		}
		if strings.HasPrefix(want, "it has 5 nodes") {
			changed = strings.Replace(changed, `"right_children":[2,4,`, `"right_children":[2,-1,`, 1)
		}
		if strings.HasPrefix(want, "it has no nodes") {
			for _, name := range []string{"left_children", "right_children", "split_indices", "base_weights", "loss_changes", "sum_hessian", "split_conditions", "default_left", "parents", "split_type"} {
				from := strings.Index(changed, `"`+name+`":[`) + len(name) + 4
				changed = changed[:from] + changed[from+strings.Index(changed[from:], "]"):]
			}
			changed = strings.Replace(changed, `"categories_nodes":[1]`, `"categories_nodes":[]`, 1)
			changed = strings.Replace(changed, `"categories_segments":[0]`, `"categories_segments":[]`, 1)
			changed = strings.Replace(changed, `"categories_sizes":[3]`, `"categories_sizes":[]`, 1)
		}
		require.NotEqual(t, text, changed, want)
		_, err := Decode([]byte(changed))
		require.ErrorContains(t, err, want)
	}
}

// TestVectorLeaves requires an error that names trees with vectors in their leaves, whatever
// the number of trees, because one such tree is a whole round.
func TestVectorLeaves(t *testing.T) {
	file, err := os.ReadFile("testdata/vectors.json")
	require.NoError(t, err)
	_, err = Decode(file)
	require.EqualError(t, err, "xgboost: learner.gradient_booster.model.trees[0]: its leaves are vectors (multi_strategy multi_output_tree), which are not read: train with one_output_per_tree")
}

// TestOtherFormats requires errors that name the formats that are not read.
func TestOtherFormats(t *testing.T) {
	for want, data := range map[string]string{
		"the file is empty":                           "",
		"binary format of XGBoost":                    "binf\x00\x00",
		"a snapshot of XGBoost's memory":              "CONFIG-offset:\x00",
		"a model begins with a brace":                 "tree\nversion=v4\n",
		"the file: it has no member":                  "{}",
		`"learner": want an object`:                   `{"learner":3}`,
		"a length is 4611686018427387904":             "{L\x40\x00\x00\x00\x00\x00\x00\x00",
		"want the type of a length":                   "{d\x00\x00\x00\x00",
		"a length is -1, and":                         "{i\xff",
		"objects with a type or a count are not read": "{$i#",
	} {
		_, err := Decode([]byte(data))
		if want == `"learner": want an object` {
			require.ErrorContains(t, err, "learner: it is a number: want an object")
			continue
		}
		require.ErrorContains(t, err, want)
	}
	_, err := Load(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
	path := filepath.Join(t.TempDir(), "x.json")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err = Load(path)
	require.ErrorContains(t, err, "x.json")
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
	text, _ := encoded(t)
	array := func(marker byte, n uint64) string {
		return "{i\x01a[$" + string(marker) + "#L" + string(binary.BigEndian.AppendUint64(nil, n)) + strings.Repeat("\x00", 64)
	}
	swap := func(old, by string) string {
		require.Contains(t, text, old)
		return strings.Replace(text, old, by, 1)
	}
	many := `"categories":[` + strings.Repeat("16777215,", 2) + "16777215]"
	for name, data := range map[string]string{
		"typed array":      array('d', 1<<40),
		"long array":       array('L', math.MaxInt64),
		"counted array":    "{i\x01a[#L\x7f\xff\xff\xff\xff\xff\xff\xff\x00",
		"nulls":            "{i\x01a[$Z#L\x00\x00\x00\x7f\xff\xff\xff\xff",
		"text":             "{i\x01aSL\x00\x00\x00\x7f\xff\xff\xff\xff",
		"deep JSON":        strings.Repeat(`{"a":`, 1<<20),
		"deep JSON arrays": `{"a":` + strings.Repeat(`[`, 1<<20),
		"deep UBJSON":      strings.Repeat("{i\x01a", 1<<20),
		"deep lists":       "{i\x01a" + strings.Repeat("[", 1<<20),
		"features":         strings.Replace(swap(`"feature_names":["a","b"],"feature_types":["float","c"],`, ""), `"num_feature":"2","num_target"`, `"num_feature":"2147483647","num_target"`, 1),
		"classes":          swap(`"num_class":"0"`, `"num_class":"2147483647"`),
		"nodes":            swap(`"num_nodes":"5"`, `"num_nodes":"2147483647"`),
		"categories":       swap(`"categories":[0,2,32]`, many),
	} {
		var err error
		bytes := allocated(func() { _, err = Decode([]byte(data)) })
		if name != "categories" { // one large set is allowed
			require.Error(t, err, name)
		}
		require.Less(t, bytes, uint64(16<<20+64*len(data)), name)
	}
}

// TestNotExpressible requires an error that names the fact that XGBoost cannot express.
func TestNotExpressible(t *testing.T) {
	for want, change := range map[string]func(m *Model){
		"there is no ensemble":                                          func(m *Model) { m.Ensemble = nil },
		"there is no objective \"logistic\"":                            func(m *Model) { m.Objective = "logistic" },
		"the ensemble has no features":                                  func(m *Model) { m.Ensemble.Trees, m.Ensemble.Features = nil, nil },
		"multi:softprob has one output":                                 func(m *Model) { m.Objective = "multi:softprob" },
		"there are 1 types of 2 features":                               func(m *Model) { m.Types = []string{"q"} },
		"a round has -1 trees":                                          func(m *Model) { m.ParallelTrees = -1 },
		"a round has 4294967296 trees for each output, and there are 1": func(m *Model) { m.ParallelTrees = 1 << 32 },
		"node 2: its value is 1e+300, which float32":                    func(m *Model) { m.Ensemble.Trees[0].Nodes[2].Value = 1e300 },
		"tree: tree 0: node 0: its child 9":                             func(m *Model) { m.Ensemble.Trees[0].Nodes[0].Right = 9 },
		"node 0: it takes zeros of feature \"a\"":                       func(m *Model) { m.Ensemble.Trees[0].Nodes[0].Flags = tree.ZeroMissing },
		"category 16777216 is in its set, and XGBoost": func(m *Model) {
			t := &m.Ensemble.Trees[0]
			t.Sets = make([]uint32, maxCategory/32+1)
			t.Sets[maxCategory/32], t.Nodes[1].SetWords = 1, maxCategory/32+1
		},
	} {
		m := small()
		change(m)
		for format, encode := range encodings(m) {
			_, err := encode()
			require.ErrorContains(t, err, want, format)
		}
	}
	_, err := New(nil, "binary:logistic", 0)
	require.ErrorContains(t, err, "there is no ensemble")
	_, err = New(small().Ensemble, "binary:logistik", 0)
	require.ErrorContains(t, err, "did you mean")
	_, err = New(small().Ensemble, "multi:softprob", 3)
	require.ErrorContains(t, err, "1 outputs: multi:softprob with 3 classes")
	require.Error(t, small().Save(filepath.Join(t.TempDir(), "no", "such", "folder.json")))
	require.Panics(t, func() { small().Transform([]float64{1, 2}, []float64{1}) })
}

// FuzzDecode decodes arbitrary bytes. Decode must not panic, and a decoded model must be the
// same after it was encoded and decoded again.
func FuzzDecode(f *testing.F) {
	text, data := encoded(f)
	f.Add([]byte(text))
	f.Add(data)
	for _, name := range []string{"toy_categorical.json", "1.7.6/categories.json", "2.1.4/dart-softprob.ubj", "3.2.0/softprob.ubj", "3.2.0/pruned.json", "1.7.6/parallel.json"} {
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
		for format, encode := range encodings(m) {
			once, err := encode()
			if err != nil { // for example, a single class
				continue
			}
			back, err := Decode(once)
			require.NoError(t, err, format)
			require.Len(t, back.Ensemble.Features, len(m.Ensemble.Features))
			require.Equal(t, m.Attributes, back.Attributes)
		}
	})
}
