package onnx

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/superstep-ml/superstep/algorithms/interchange/internal/exporttest"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/naivebayes"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/prepare"
)

// small returns a hand-made model: price = 2·a − b + 0.5.
func small() *linear.Model {
	m := &linear.Model{}
	m.Reads = []model.Input{{Column: "a", Type: "float64"}, {Column: "b", Type: "float64"}}
	m.Dim, m.Coefficients, m.Intercepts = 2, [][]float64{{2, -1}}, []float64{0.5}
	return m
}

// TestNotExpressible requires an error that names the stage for everything that a graph cannot
// express.
func TestNotExpressible(t *testing.T) {
	_, err := Export(nil)
	require.ErrorContains(t, err, "there is no model")
	for want, stages := range map[string][]model.Stage{
		"pipeline/1-feature-hasher: ONNX has no operator": {prepare.MaxAbsScaler{Columns: []string{"fare"}}, prepare.FeatureHasher{Columns: []string{"class"}, Size: 8}},
		"pipeline/0-string-indexer: it skips rows":        {prepare.StringIndexer{Columns: []string{"class"}, Unknown: prepare.Skip}},
		"pipeline/0-one-hot-encoder: it skips rows":       {prepare.OneHotEncoder{Columns: []string{"class"}, Unknown: prepare.Skip}},
		"pipeline/0-bucketizer: it skips rows":            {prepare.Bucketizer{Columns: []string{"fare"}, Bounds: [][]float64{{1}}, Unknown: prepare.Skip}},
		"pipeline/0-vector-assembler: it skips rows":      {prepare.VectorAssembler{Columns: []string{"fare"}, Unknown: prepare.Skip}},
		`models of kind "naivebayes"`: {
			prepare.VectorAssembler{Columns: []string{"fare", "deck"}},
			naivebayes.Params{VectorCol: "features", LabelCol: "class"},
		},
	} {
		_, err := Export(exporttest.Train(t, stages...))
		require.ErrorContains(t, err, want)
	}
	broken := small()
	broken.Coefficients = [][]float64{{1}}
	_, err = Export(broken)
	require.ErrorContains(t, err, `model of kind "linear"`)
	binary := small()
	binary.Reads[0].Type = "binary"
	_, err = Export(binary)
	require.ErrorContains(t, err, `column "a" is binary, which no tensor holds`)
	large := small()
	large.Coefficients[0][0] = 1e300
	_, err = ExportSingle(large)
	require.ErrorContains(t, err, "number 0 of coefficients is 1e+300, which float32 does not hold")
	_, err = Export(large)
	require.NoError(t, err)
}

// TestFewColumns requires that a graph has no inputs for the features of a model that have no
// coefficients.
func TestFewColumns(t *testing.T) {
	m := small()
	m.Reads, m.Dim, m.Columns = []model.Input{{Column: "x", Type: "sparse[5]"}}, 5, []int32{1, 4}
	for _, write := range []func(model.Model) ([]byte, error){Export, ExportSingle} {
		data, err := write(m)
		require.NoError(t, err)
		f, err := decodeFile(data)
		require.NoError(t, err)
		requireSame(t, m, f, []map[string]any{{"x": []float64{9, 1, 9, 9, 3}}, {"x": []float64{0, 0, 0, 0, 0}}}, 1e-15)
		back, err := Import(data)
		require.NoError(t, err)
		require.Equal(t, m.Columns, back.(*linear.Model).Columns)
	}
	m.Coefficients, m.Columns = [][]float64{{}}, []int32{}
	_, err := Export(m)
	require.ErrorContains(t, err, "it has no coefficients")
}

// TestNames requires that a column may have any name, even that of a tensor or of another
// column's output.
func TestNames(t *testing.T) {
	m := small()
	m.Reads[0].Column, m.Reads[1].Column, m.PredictionCol = "linear/Gemm", "linear/coefficients", "linear/intercepts"
	data, err := Export(m)
	require.NoError(t, err)
	f, err := decodeFile(data)
	require.NoError(t, err)
	made := evaluate(t, f, map[string]array{"linear/Gemm": numbersArray([]int{1, 1}, 3), "linear/coefficients": numbersArray([]int{1, 1}, 4)})
	require.Equal(t, []float64{2.5}, made[f.graph.outputs[0].name].num)
	_, err = Import(data)
	require.NoError(t, err)
}

// TestNumbersAreOfTheGraph requires that numbers are read from the graph: changing a number in
// the graph must change the model.
func TestNumbersAreOfTheGraph(t *testing.T) {
	f, err := build(small(), false)
	require.NoError(t, err)
	for i := range f.graph.initializers {
		if x := &f.graph.initializers[i]; x.name == "linear/coefficients" {
			b := newBuilder(false)
			*x = b.tensorOf(x.name, x.dims, []float64{7, -1})
		}
	}
	m, err := Import(f.encode())
	require.NoError(t, err)
	require.Equal(t, [][]float64{{7, -1}}, m.(*linear.Model).Coefficients)
}

// TestRewritten requires that Import reads files that another library has read and written
// again, with the same messages.
func TestRewritten(t *testing.T) {
	data, err := os.ReadFile("testdata/linear.onnx")
	require.NoError(t, err)
	want, err := Import(data)
	require.NoError(t, err)
	data, err = os.ReadFile("testdata/linear-rewritten.onnx")
	require.NoError(t, err)
	got, err := Import(data)
	require.NoError(t, err)
	a, err := want.Encode()
	require.NoError(t, err)
	b, err := got.Encode()
	require.NoError(t, err)
	require.Equal(t, a, b)
}

func TestDamaged(t *testing.T) {
	whole, err := Export(small())
	require.NoError(t, err)
	for n := range whole {
		_, err := Import(whole[:n])
		require.Error(t, err, "Import must refuse a file cut to %d bytes", n)
	}
	_, err = Import(nil)
	require.ErrorContains(t, err, "the file is empty")

	for want, change := range map[string]func(f *file){
		`the producer is "sklearn"`:                    func(f *file) { f.producer = "sklearn" },
		`the file is of version "2"`:                   func(f *file) { f.version = "2" },
		`must have "superstep.model" and nothing else`: func(f *file) { f.metadata = nil },
		"invalid character":                            func(f *file) { f.metadata[0].value = "x" },
		"follows the object":                           func(f *file) { f.metadata[0].value += "{}" },
		"unknown field":                                func(f *file) { f.metadata[0].value = `{"kind":"linear","more":1}` },
		`kind "nothing"`:                               func(f *file) { f.metadata[0].value = `{"kind":"nothing","version":1}` },
		"the version is 0":                             func(f *file) { f.metadata[0].value = `{"kind":"linear"}` },
		"the pipeline has no stages":                   func(f *file) { f.metadata[0].value = `{"kind":"pipeline"}` },
		"more than 8 deep":                             func(f *file) { f.metadata[0].value = deep(20) },
		"is missing or":                                func(f *file) { f.graph.initializers[0].name = "other" },
		"is read in the shape":                         func(f *file) { f.graph.initializers[0].raw = make([]byte, 8) },
		"9 bytes, and 8 for each":                      func(f *file) { f.graph.initializers[0].raw = make([]byte, 9) },
		"two tensors":                                  func(f *file) { f.graph.initializers = append(f.graph.initializers, f.graph.initializers[0]) },
		"elements of type 7":                           func(f *file) { f.graph.initializers[0].elem = typeInt64 },
		"tensor 0, \"linear/coeff":                     func(f *file) { f.graph.initializers[0].dims = []int64{1 << 60, 1 << 60} },
		"2 nodes, not 3":                               func(f *file) { f.graph.nodes = f.graph.nodes[:2] },
		"node 1 is":                                    func(f *file) { f.graph.nodes[1].inputs[0] = f.graph.nodes[1].outputs[0] }, // makes a cycle
		"node 0 is":                                    func(f *file) { f.graph.nodes[0].op = "If" },
		"inputs differ":                                func(f *file) { f.graph.inputs[0].elem = typeFloat },
		"outputs differ":                               func(f *file) { f.graph.outputs[0].name = "else" },
		"versions or metadata differ":                  func(f *file) { f.opsets[0].version = 3 },
		"is no count":                                  func(f *file) { swap(f, `"$shape":[1,2]`, `"$shape":[1,1e99]`) },
		"and is read from 9":                           func(f *file) { swap(f, `"$shape":[1,2]`, `"$shape":[1,2],"$from":9`) },
		"is referred to twice":                         func(f *file) { swap(f, `"$tensor":"linear/intercepts"`, `"$tensor":"linear/coefficients"`) },
	} {
		f, err := build(small(), false)
		require.NoError(t, err)
		change(f)
		_, err = Import(f.encode())
		require.ErrorContains(t, err, want)
	}
}

// deep returns the text of n nested pipelines.
func deep(n int) string {
	return strings.Repeat(`{"kind":"pipeline","stages":[`, n) + strings.Repeat(`]}`, n)
}

func swap(f *file, old, by string) {
	text := strings.Replace(f.metadata[0].value, old, by, 1)
	if text == f.metadata[0].value {
		panic("the metadata have no " + old)
	}
	f.metadata[0].value = text
}

// TestWrongWire requires errors for messages that violate the wire format.
func TestWrongWire(t *testing.T) {
	text := func(field protowire.Number, s string) []byte { return putText(nil, field, s) }
	head := append(putText(nil, 2, producer), putText(nil, 3, formatVersion)...)
	graph := func(b []byte) []byte { return append(append([]byte{}, head...), putBytes(nil, 7, b)...) }
	huge := append(protowire.AppendTag(nil, 7, protowire.BytesType), 0xff, 0xff, 0xff, 0xff, 0x7f)
	for want, data := range map[string][]byte{
		"unexpected EOF":                    append(append([]byte{}, head...), huge...),
		`the producer is "": only`:          text(4, "domain"),
		"field 99 is none":                  append(append([]byte{}, head...), putVarint(nil, 99, 1)...),
		"field 1 has a value of another":    text(1, "x"),
		"wire type 3":                       protowire.AppendTag(nil, 1, protowire.StartGroupType),
		"graph: field 2 has a value of":     graph(putVarint(nil, 2, 1)),
		"graph: node: field 5 has a value":  graph(putBytes(nil, 1, putVarint(nil, 5, 1))),
		"attribute: field 6 is none":        graph(putBytes(nil, 1, putBytes(nil, 5, text(6, "")))),
		"field 7 has 3 bytes: want 4":       graph(putBytes(nil, 1, putBytes(nil, 5, text(7, "abc")))),
		"tensor: field 1: unexpected EOF":   graph(putBytes(nil, 5, text(1, "\xff"))),
		"tensor: field 2 has a value of":    graph(putBytes(nil, 5, putVarint(nil, 2, -1))),
		"value: type: field 4 is none":      graph(putBytes(nil, 11, putBytes(nil, 2, text(4, "")))),
		"shape: dimension: field 3 is none": graph(putBytes(nil, 12, putBytes(nil, 2, putBytes(nil, 1, putBytes(nil, 2, putBytes(nil, 1, text(3, ""))))))),
		"opset: field 2 has a value of":     putBytes(nil, 8, text(2, "")),
		"metadata: field 3 is none":         putBytes(nil, 14, text(3, "")),
		"attribute: field 2 has a value of": graph(putBytes(nil, 1, putBytes(nil, 5, text(2, "")))),
	} {
		_, err := Import(data)
		require.ErrorContains(t, err, want)
	}
}

// FuzzImport imports arbitrary bytes. Import must not panic, and an imported model must be
// exported to the same bytes again.
func FuzzImport(f *testing.F) {
	for _, m := range []model.Model{small(), classifier()} {
		p, err := pipeline.NewModel(m)
		require.NoError(f, err)
		for _, m := range []model.Model{m, p} {
			for _, write := range []func(model.Model) ([]byte, error){Export, ExportSingle} {
				data, err := write(m)
				require.NoError(f, err)
				f.Add(data)
			}
		}
	}
	for _, name := range []string{"logistic-text", "kmeans", "pca", "linear-rewritten"} {
		data, err := os.ReadFile("testdata/" + name + ".onnx")
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Import(data)
		if err != nil {
			return
		}
		in, err := decodeFile(data)
		require.NoError(t, err)
		again, err := build(m, in.graph.inputs[0].elem == typeFloat)
		require.NoError(t, err)
		out, err := decodeFile(again.encode())
		require.NoError(t, err)
		require.True(t, reflect.DeepEqual(in, out))
	})
}

// classifier returns a hand-made model of two classes.
func classifier() *logistic.Model {
	m := &logistic.Model{Threshold: 0.5}
	m.Model.Take(&small().Model)
	m.Classes.Type, m.Classes.Values = "utf8", []string{"no", "yes"}
	return m
}
