package pmml

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/interchange/internal/exporttest"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/naivebayes"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/prepare"
)

// small returns a hand-made model: 2·a − b + 0.5.
func small() *linear.Model {
	m := &linear.Model{}
	m.Reads = []model.Input{{Column: "a", Type: "float64"}, {Column: "b", Type: "float64"}}
	m.Dim, m.Coefficients, m.Intercepts = 2, [][]float64{{2, -1}}, []float64{0.5}
	return m
}

// TestNotExpressible requires an error that names the stage for everything that PMML cannot
// express.
func TestNotExpressible(t *testing.T) {
	_, err := Export(nil)
	require.ErrorContains(t, err, "there is no model")
	for want, stages := range map[string][]model.Stage{
		"pipeline/1-feature-hasher: PMML has no function": {prepare.MaxAbsScaler{Columns: []string{"fare"}}, prepare.FeatureHasher{Columns: []string{"class"}, Size: 8}},
		"pipeline/0-string-indexer: it skips rows":        {prepare.StringIndexer{Columns: []string{"class"}, Unknown: prepare.Skip}},
		"pipeline/0-one-hot-encoder: it skips rows":       {prepare.OneHotEncoder{Columns: []string{"class"}, Unknown: prepare.Skip}},
		"pipeline/0-bucketizer: it skips rows":            {prepare.Bucketizer{Columns: []string{"fare"}, Bounds: [][]float64{{1}}, Unknown: prepare.Skip}},
		"pipeline/0-vector-assembler: it skips rows":      {prepare.VectorAssembler{Columns: []string{"fare"}, Unknown: prepare.Skip}},
		"pipeline/0-logistic: PMML predicts the more": {
			logistic.Params{FeatureCols: []string{"fare"}, LabelCol: "lived", Threshold: 0.4},
		},
		"pipeline/1-kmeans: PMML has no cosine distance": {
			prepare.VectorAssembler{Columns: []string{"fare", "deck"}},
			kmeans.Params{VectorCol: "features", K: 2, Distance: kmeans.Cosine},
		},
		`models of kind "naivebayes"`: {
			prepare.VectorAssembler{Columns: []string{"fare", "deck"}},
			naivebayes.Params{VectorCol: "features", LabelCol: "class"},
		},
		"pipeline/1-linear: the pipeline has a model before it": {
			linear.Params{FeatureCols: []string{"fare"}, LabelCol: "price"},
			linear.Params{FeatureCols: []string{"deck"}, LabelCol: "price", PredictionCol: "second"},
		},
		`column "first" is made by no stage, or by a model`: {
			linear.Params{FeatureCols: []string{"fare"}, LabelCol: "price", PredictionCol: "first"},
			prepare.MaxAbsScaler{Columns: []string{"first"}},
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
	require.ErrorContains(t, err, `column "a" is binary`)
	wide := small()
	wide.Reads, wide.Dim, wide.Columns = []model.Input{{Column: "x", Type: "sparse[2000000000]"}}, 2_000_000_000, []int32{1, 4}
	_, err = Export(wide)
	require.ErrorContains(t, err, "a file has at most 1048576")
	odd := small()
	odd.Reads[0].Column = "a\x01"
	_, err = Export(odd)
	require.ErrorContains(t, err, `has the character U+0001, which XML cannot hold`)
	odd.Reads[0].Column = "a\xff"
	_, err = Export(odd)
	require.Error(t, err)
}

// TestFewColumns requires that a document does not name the features of a model that have no
// coefficients, and that fields may have any name.
func TestFewColumns(t *testing.T) {
	m := small()
	m.Reads, m.Dim, m.Columns, m.PredictionCol = []model.Input{{Column: ` "<x>&`, Type: "sparse[5]"}}, 5, []int32{1, 4}, ` "<x>&[0]`
	data, err := Export(m)
	require.NoError(t, err)
	root, err := parse(data)
	require.NoError(t, err)
	row := map[string]value{` "<x>&[0]`: 9.0, ` "<x>&[1]`: 1.0, ` "<x>&[2]`: 9.0, ` "<x>&[3]`: 9.0, ` "<x>&[4]`: 3.0}
	require.Equal(t, -0.5, evaluate(t, root, row)[` "<x>&[0]_2`])
	back, err := Import(data)
	require.NoError(t, err)
	require.Equal(t, m.Columns, back.(*linear.Model).Columns)
}

// TestNumbersAreOfTheElement requires that numbers are read from the element of the model:
// changing a number there must change the model.
func TestNumbersAreOfTheElement(t *testing.T) {
	data, err := Export(small())
	require.NoError(t, err)
	text := strings.Replace(string(data), `coefficient="2"`, `coefficient="7"`, 1)
	require.NotEqual(t, string(data), text)
	m, err := Import([]byte(text))
	require.NoError(t, err)
	require.Equal(t, [][]float64{{7, -1}}, m.(*linear.Model).Coefficients)
}

func TestDamaged(t *testing.T) {
	whole, err := Export(small())
	require.NoError(t, err)
	for n := range len(whole) - 1 { // the last byte, a newline, may be missing
		_, err := Import(whole[:n])
		require.Error(t, err, "Import must refuse a document cut to %d bytes", n)
	}
	_, err = Import([]byte(strings.ReplaceAll(string(whole), "\n", "\r\n  ")))
	require.NoError(t, err, "white space between elements must be ignored")

	for want, change := range map[string][2]string{
		"the application is another one":    {`Application name="superstep"`, `Application name="other"`},
		`the document is of version "2"`:    {`version="1"`, `version="2"`},
		`no <Extension> "superstep.model"`:  {`"superstep.model"`, `"more"`},
		"there is no <Header>":              {"Header>", "Head>"},
		`of the namespace "x"`:              {namespace, "x"},
		"invalid character":                 {`value="{`, `value="{]`},
		"unknown field":                     {`value="{`, `value="{&#34;more&#34;:1,`},
		"follows the object":                {`value="{`, `value="{}{`},
		`of kind "nothing"`:                 {`&#34;kind&#34;:&#34;linear`, `&#34;kind&#34;:&#34;nothing`},
		"the version is -1":                 {`&#34;version&#34;:1`, `&#34;version&#34;:-1`},
		"there is no <RegressionModel>":     {"RegressionModel", "RegressionModels"},
		`the coefficient of "a": "x" is no`: {`coefficient="2"`, `coefficient="x"`},
		`intercept 0: "NaN" is no finite`:   {`intercept="0.5"`, `intercept="NaN"`},
		"margin 0 has 1 coefficients":       {`<NumericPredictor name="a" coefficient="2"/>`, ``},
		"of <NumericPredictor z> differ":    {`<NumericPredictor name="a"`, `<NumericPredictor name="z"`},
		"of <DataDictionary > differ":       {`numberOfFields="3"`, `numberOfFields="4"`},
		"<MiningSchema> has 4 elements":     {`<MiningSchema>`, `<MiningSchema><MiningField/>`},
		"there is <Mining> in the place of": {`MiningSchema>`, `Mining>`},
		"a document type":                   {`<PMML`, `<!DOCTYPE x [<!ENTITY a "b">]><PMML`},
		"has elements and text":             {`<MiningSchema>`, `<MiningSchema>text`},
		`has the attribute "version" twice`: {`version="4.4"`, `version="4.4" version="4.4"`},
		"an attribute \"q\" of another":     {`version="4.4"`, `version="4.4" xmlns:q="q" q:a="4"`},
		"has 40 attributes":                 {`<MiningSchema>`, `<MiningSchema ` + strings.Repeat(`a="" `, 40) + `>`},
		"something follows the root":        {`</PMML>`, `</PMML><PMML/>`},
		"more than 128 deep":                {`<MiningSchema>`, `<MiningSchema>` + strings.Repeat("<a>", 200)},
		"the root is <XML>":                 {`PMML`, `XML`},
	} {
		text := strings.ReplaceAll(string(whole), change[0], change[1])
		require.NotEqual(t, string(whole), text, want)
		_, err := Import([]byte(text))
		require.ErrorContains(t, err, want)
	}
	_, err = Import(nil)
	require.ErrorContains(t, err, "the file has no root element")
}

// TestStages requires that only one stage may use the numbers of the model's element, and that
// the nesting of pipelines is bounded.
func TestStages(t *testing.T) {
	p, err := pipeline.NewModel(small())
	require.NoError(t, err)
	data, err := Export(p)
	require.NoError(t, err)
	_, err = Import(data)
	require.NoError(t, err)
	stage := string(data[strings.Index(string(data), `{&#34;kind&#34;:&#34;linear`):strings.Index(string(data), "]}\"")])
	_, err = Import([]byte(strings.Replace(string(data), stage, stage+","+stage, 1)))
	require.ErrorContains(t, err, "are those of another stage")
	const open = `{&#34;kind&#34;:&#34;pipeline&#34;,&#34;stages&#34;:[`
	_, err = Import([]byte(strings.Replace(string(data), stage, strings.Repeat(open, 20)+strings.Repeat("]}", 20), 1)))
	require.ErrorContains(t, err, "more than 8 deep")
}

// FuzzImport imports arbitrary bytes. Import must not panic, and an imported model must be
// exported to the same bytes again.
func FuzzImport(f *testing.F) {
	whole, err := Export(small())
	require.NoError(f, err)
	f.Add(whole)
	for _, name := range []string{"kmeans", "logistic-text", "min-max-scaler", "bucketizer"} {
		data, err := Export(exporttest.Train(f, cases[name].stages...))
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Import(data)
		if err != nil {
			return
		}
		in, err := parse(data)
		require.NoError(t, err)
		out, err := build(m)
		require.NoError(t, err)
		require.Empty(t, difference(in, out))
	})
}
