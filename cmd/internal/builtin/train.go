package builtin

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/alecthomas/kong"
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
)

// TrainArgs are the flags that every training has.
type TrainArgs struct {
	Input    string `required:"" placeholder:"PATH" help:"File, directory or glob of rows to train on."`
	Label    string `param:"LabelCol" placeholder:"COLUMN" help:"Column to predict; for clusters, known classes to compare them with. LibSVM files call it label."`
	Features list   `param:"FeatureCols" placeholder:"COLUMN,..." help:"Columns to predict from (default: all but label and weight)."`
	Weight   string `param:"WeightCol" placeholder:"COLUMN" help:"Column of row weights, numbers of 0 or more."`
	Test     string `placeholder:"PATH" help:"File, directory or glob of rows to evaluate the model on."`
	Model    string `required:"" placeholder:"FILE" help:"File to write the model to, on this machine."`
	Encode   bool   `help:"Make features of text: a component for each value that a column has. Without it a text column among the features is an error, but for trees, which take its values as categories."`
	Sparse   bool   `of:"encode" help:"Keep encoded features sparse: for text with very many values."`
	Missing  string `enum:"refuse,skip,fill," default:"" placeholder:"WHAT" help:"What to do with rows with missing values in training: refuse makes them an error, skip leaves them out, fill puts in the median, or of text the most frequent value (default: refuse, but trees take missing features as they are, unless --encode makes numbers of text)."`
	Plot     string `placeholder:"FILE" help:"PNG, SVG or PDF file to draw in what --plot-of says."`
	PlotOf   string `of:"plot" enum:"auto,loss,coefficients,importance,roc,clusters" default:"auto" placeholder:"WHAT" help:"loss, the curve of training; coefficients; importance, of features to trees; roc, of two classes, on --test if given; clusters, by the first two features; or auto (the default): clusters, of numbers loss, of two classes roc, and of more the confusion matrix."`
	OutputArgs
	InputArgs
}

// columns has the columns that an algorithm reads, where the features are one vector or several
// numbers, and the names of the columns that the model adds.
type columns struct {
	vector      string
	features    []string
	label       string
	weight      string
	group       string // column of queries, for rankings
	prediction  string // name of the column that the model adds; "" for the usual name
	probability string
	distance    string
	skip        bool // leave out rows with missing values
}

// Validate returns an error if flags contradict each other or have no effect.
func (a training) Validate(k *kong.Context) error {
	errs := a.groupProblems()
	if s, ok := a.estimator(columns{}).(model.SetupChecker); ok {
		errs = append(errs, s.CheckSetup(model.TrainingSetup{Tests: a.Test != "", Prepares: a.Encode || a.Missing == "fill"})...)
	}
	return refuse(k, errors.Join(append(errs, a.problems()...)...))
}

// problems returns the errors in the flags that every training has, and in parameters that
// cannot be combined with these flags.
func (a training) problems() (errs []error) {
	bad := func(is bool, text string) {
		if is {
			errs = append(errs, errors.New(text))
		}
	}
	g, of := a.target(), a.of.Command()
	c := columns{vector: "features", label: a.Label, weight: a.Weight}
	if v, ok := a.own("categories"); ok && v.Len() > 0 { // the columns of the file are not known yet
		c.vector, c.features = "", v.Interface().(list)
	}
	if g == model.Rank {
		c.group = "qid" // the name of the column does not matter here
	}
	if c.label == "" && g != model.Cluster {
		c.label = "label"
		bad(a.form(a.Input) != libsvmForm, "--label is missing: name the column to predict")
	}
	bad(a.form(a.Input) == libsvmForm && len(a.Features) > 0, "--features does not go with LibSVM files, whose features have no names")
	bad(a.PlotOf == "clusters" && g != model.Cluster, "--plot-of clusters is for "+trainedBy(func(p model.Prediction) bool { return p.Target == model.Cluster }))
	bad(a.PlotOf == "roc" && g != model.Class, "--plot-of roc is for algorithms that predict classes")
	for _, f := range a.Features {
		if f != "" && (f == a.Label || f == a.Weight) {
			errs = append(errs, fmt.Errorf("--features has %q, which is the label or the weight", f))
		}
	}
	bad(a.Label != "" && a.Label == a.Weight, fmt.Sprintf("--label and --weight are both %q", a.Label))
	made := a.estimator(c)
	errs = append(errs, made.Validate())
	adds := made.Predicts()
	bad(a.ProbabilityColumn != "" && (g != model.Class && g != model.Cluster || adds.Scores == ""), "--probability-column is for algorithms that predict classes, and for "+trainedBy(func(p model.Prediction) bool { return p.Target == model.Cluster && p.Scores != "" }))
	bad(a.DistanceColumn != "" && adds.Distance == "", "--distance-column is for "+trainedBy(func(p model.Prediction) bool { return p.Distance != "" }))
	errs = append(errs, a.different())
	for _, f := range append(a.Features, a.Label, a.Weight) {
		bad(f != "" && slices.Contains(a.given(), f), fmt.Sprintf("%q is a column that is read and one that the model is to add", f))
	}
	bad(a.PlotOf == "loss" && !of.Curve, "--plot-of loss: the training has no iterations to draw")
	bad(a.PlotOf == "coefficients" && !of.Coefficients, "--plot-of coefficients: the model has none")
	bad(a.PlotOf == "importance" && !of.Trees, "--plot-of importance is for trees")
	return append(errs, a.InputArgs.problems(), validPlot(a.Plot), requireDifferentFiles("--model", a.Model, "--input", a.Input), requireDifferentFiles("--model", a.Model, "--test", a.Test))
}

// columnPlan describes how the columns of a file become the inputs of an algorithm.
type columnPlan struct {
	columns
	stages []model.Stage // stages to apply before the algorithm
	wanted []string      // the columns of the file that are features
	reads  []string      // the columns of the file that are read
}

// planColumns finds the features among the columns of a file. If raw is set, the algorithm
// reads text and missing values without stages before it. group is the column of queries, or ""
// if there is none.
func (a TrainArgs) planColumns(b *engine.Builder, schema *arrow.Schema, g model.Target, raw bool, group string, beside map[string][]string) (*columnPlan, error) {
	p := &columnPlan{columns: columns{label: a.Label, weight: a.Weight, group: group, skip: a.Missing == "skip"}}
	if p.label == "" && g != model.Cluster {
		p.label = "label" // the label of LibSVM files
	}
	err := errors.Join(a.known("--label", a.Input, schema, a.Label), a.known("--weight", a.Input, schema, a.Weight), a.known("--features", a.Input, schema, a.Features...), a.known("--group", a.Input, schema, group))
	apart := []string{p.label, p.weight, group} // columns that are not features
	for _, flag := range slices.Sorted(maps.Keys(beside)) {
		err = errors.Join(err, a.known(flag, a.Input, schema, beside[flag]...))
		apart = append(apart, beside[flag]...)
	}
	if err == nil {
		err = a.unfit(b, a.Input, schema, a.numeric(g, beside), map[string][]string{"--label": one(a.Label), "--group": one(group)})
	}
	if err != nil {
		return nil, err
	}
	wanted := a.Features
	if len(wanted) == 0 {
		for _, n := range names(schema) {
			if !slices.Contains(apart, n) && !(a.form(a.Input) == libsvmForm && (n == "label" || n == "qid")) {
				wanted = append(wanted, n)
			}
		}
		wanted = a.features(wanted)
	}
	var of [others][]string
	for _, n := range wanted {
		field, _ := schema.FieldsByName(n)
		switch s := columnTypeOf(field[0].Type); {
		case s == texts && !a.Encode && !raw:
			return nil, a.textFeature(b, a.Input, n)
		case s == others:
			return nil, a.noFeature(n, field[0].Type)
		default:
			of[s] = append(of[s], n)
		}
	}
	if len(wanted) == 0 {
		return nil, a.noColumn()
	}
	p.wanted, p.reads = wanted, slices.Clone(wanted)
	for _, n := range apart {
		if n != "" {
			p.reads = append(p.reads, n)
		}
	}
	p.planStages(a, schema, g, wanted, of, raw && !a.Encode)
	return p, a.emptyFeatures(b, schema, p, raw)
}

// outputs chooses names for the columns that the model adds. These names differ from the names
// of the columns that the model reads.
func (a training) outputs(p *columnPlan) error {
	adds := a.estimator(columns{}).Predicts()
	if adds.Target != model.Class && adds.Target != model.Cluster {
		adds.Scores = ""
	}
	for _, f := range a.flags() {
		if f.name != "" && slices.Contains(p.reads, f.name) {
			return fmt.Errorf("%s is %q, a column of %s that is read: choose another name, or name the columns to read with --features", f.flag, f.name, a.Input)
		}
	}
	p.prediction, p.probability, p.distance = a.named(adds, p.reads)
	return nil
}

// planStages decides whether the algorithm reads the columns directly or after the stages of a
// pipeline. The algorithm reads text directly only if raw is set.
func (p *columnPlan) planStages(a TrainArgs, schema *arrow.Schema, g model.Target, wanted []string, of [others][]string, raw bool) {
	fill := a.Missing == "fill" && len(of[numbers])+len(of[texts]) > 0
	if len(wanted) == 1 && len(of[vectors]) == 1 {
		p.vector = wanted[0]
		return
	}
	if !fill && (raw || len(of[texts]) == 0) && g != model.Cluster && len(of[vectors]) == 0 {
		p.features = wanted
		return
	}
	read := map[string]string{} // column of the file -> column to read in its place
	for _, n := range wanted {
		read[n] = n
	}
	rename := func(columns []string, suffix string) (from, to []string) {
		for _, n := range columns {
			made := a.unused(schema, n+suffix)
			from, to, read[n] = append(from, read[n]), append(to, made), made
		}
		return from, to
	}
	if fill {
		from, to := rename(slices.Concat(of[numbers], of[texts]), " filled")
		strategies := slices.Repeat([]prepare.Strategy{prepare.Median}, len(of[numbers]))
		strategies = append(strategies, slices.Repeat([]prepare.Strategy{prepare.Mode}, len(of[texts]))...)
		for i, n := range of[numbers] { // missing bools become the more frequent value
			if f, _ := schema.FieldsByName(n); f[0].Type.ID() == arrow.BOOL {
				strategies[i] = prepare.Mode
			}
		}
		p.stages = append(p.stages, prepare.Imputer{Columns: from, Outputs: to, Strategies: strategies, WeightCol: p.weight})
	}
	if len(of[texts]) > 0 {
		// With DropLast, the last category has no component, so zeros would mean the last
		// category. Therefore unknown values are then encoded as the shares of the categories
		// in the training rows.
		e := prepare.OneHotEncoder{Unknown: prepare.Zeros, NullMissing: true, WeightCol: p.weight, DropLast: g == model.Number || g == model.Class}
		if e.DropLast {
			e.Unknown = prepare.Shares
		}
		e.Columns, e.Outputs = rename(of[texts], " encoded")
		p.stages = append(p.stages, e)
	}
	p.vector = a.unused(schema, "features")
	assemble := prepare.VectorAssembler{Output: p.vector, Form: prepare.Dense, NullMissing: true}
	if a.Sparse || len(of[texts]) == 0 {
		assemble.Form = prepare.Automatic
	}
	for _, n := range wanted {
		assemble.Columns = append(assemble.Columns, read[n])
	}
	p.stages = append(p.stages, assemble)
}

// These are the names of the results that a training collects.
const (
	modelResult  = "model"
	scoreResult  = "scores"
	testResult   = "test"
	pointsResult = "points"
)

// build adds a training to a job.
func (a training) build(b *engine.Builder) error {
	b.Advise(a.advice)
	var err error
	if a.InputArgs, err = a.resolved(b, a.Input, a.Test); err != nil {
		return err
	}
	a.unreadable, a.index = unreadable{}, index{}
	if len(a.Features) > 0 {
		a.InputArgs = a.onlyInferring(a.readBy()...)
	}
	rows, err := a.read(b, a.Input, nil)
	if err != nil || rows.Poisoned() {
		return err
	}
	if rows = a.sized(rows, false); rows.Poisoned() {
		return nil
	}
	g, raw, schema := a.target(), a.of.Command().Trees, arrowrows.Arrow(rows.Schema())
	p, err := a.planColumns(b, schema, g, raw, a.group(schema), a.otherColumns())
	if err == nil {
		err = a.outputs(p)
	}
	if err != nil {
		return err
	}
	tested, err := a.tested(b, rows, p)
	rows = a.withMissing(rows, p, g, raw)
	if err == nil && tested != nil {
		tested = a.sized(finiteTest(tested, p, raw), true)
	}
	if err != nil || tested != nil && tested.Poisoned() {
		return err
	}
	var stage model.Stage = a.estimator(p.columns)
	if len(p.stages) > 0 {
		stage = pipeline.Pipeline{Stages: append(p.stages, stage)}
	}
	var trained *engine.Dataset
	if f, ok := stage.(model.EvalFitter); ok {
		trained = f.FitEval(rows, tested)
	} else {
		trained = stage.Fit(rows)
	}
	made := remembering(trained, a.reading())
	engine.Collect(made, modelResult)
	writeModel(operators.Select(made, model.Column), a.Model)
	if err := mayDraw(b, a.Plot); err != nil {
		return err
	}
	return a.after(b, p, stage, rows, tested, trained)
}

// readBy returns the columns that flags of a training with --features name, and qid, the usual
// name of the column of queries.
func (a training) readBy() []string {
	columns := append([]string{a.Label, a.Weight, a.group(arrow.NewSchema(nil, nil)), "qid"}, a.Features...)
	beside := a.otherColumns()
	for _, flag := range slices.Sorted(maps.Keys(beside)) {
		columns = append(columns, beside[flag]...)
	}
	return columns
}

// tested returns the rows of --test, or nil if --test is not given.
func (a TrainArgs) tested(b *engine.Builder, rows *engine.Dataset, p *columnPlan) (*engine.Dataset, error) {
	if a.Test == "" {
		return nil, nil
	}
	tested, err := a.readTest(b, arrowrows.Arrow(rows.Schema()), p)
	if err != nil || tested.Poisoned() {
		return tested, err
	}
	return tested, a.known("--test", a.Test, arrowrows.Arrow(tested.Schema()), fromFile(p.reads)...)
}

// fromFile returns the elements of columns that exist in files, which are all except
// sizedGroup.
func fromFile(columns []string) []string {
	return slices.DeleteFunc(slices.Clone(columns), func(name string) bool { return name == sizedGroup })
}

// after adds to a training the evaluation of the model and the results that plots need. tested
// is nil if --test is not given.
func (a training) after(b *engine.Builder, p *columnPlan, stage model.Stage, rows, tested, trained *engine.Dataset) error {
	if tested == nil {
		tested = rows
	}
	// Only the columns that are read are selected: the file may have other columns with the
	// names that prediction adds.
	rows, tested = operators.Select(rows, p.reads...), operators.Select(tested, p.reads...)
	if a.Test != "" {
		surveyTrained(b, trained, tested)
	}
	adds := a.estimator(p.columns).Predicts()
	predicted, prediction := stage.Apply(tested, trained), cmp.Or(p.prediction, adds.Column)
	g, plot := adds.Target, a.plotOf()
	switch {
	case predicted.Poisoned():
	case g == model.Cluster && (a.Test != "" || p.label != ""):
		engine.Collect(clustering(predicted, prediction, p.vector, p.label, a.Weight), testResult)
	case g == model.Number && a.Test != "":
		engine.Collect(regression(predicted, p.label, prediction, a.Weight), testResult)
	case g == model.Rank && a.Test != "":
		engine.Collect(evaluate.Ranking(predicted, evaluate.RankingOptions{
			QueryCol: p.group, LabelCol: p.label, ScoreCol: prediction, WeightCol: a.Weight, Skip: true,
		}), testResult)
	case g == model.Class && (a.Test != "" || plot == "roc" || plot == "quality"):
		engine.Collect(multiclass(predicted, p.label, prediction, a.Weight), testResult)
		engine.Collect(binary(scored(predicted, trained, p.label), adds, a.Weight), scoreResult)
	}
	if plot == "clusters" {
		return collectPoints(b, stage.Apply(rows, trained), prediction, p)
	}
	return nil
}

// readTest reads the rows of --test. The columns that the training reads get the same types as
// in the training file.
func (a TrainArgs) readTest(b *engine.Builder, schema *arrow.Schema, p *columnPlan) (*engine.Dataset, error) {
	var inputs []model.Input
	for _, n := range fromFile(p.reads) {
		field, _ := schema.FieldsByName(n)
		switch kind := field[0].Type; columnTypeOf(kind) {
		case vectors:
			inputs = append(inputs, model.Input{Column: n, Type: fmt.Sprintf("sparse[%d]", vectorSize(kind))})
		case numbers, texts:
			inputs = append(inputs, model.Input{Column: n, Type: kind.String()})
		}
	}
	a.InputArgs = a.onlyInferring()
	return a.read(b, a.Test, inputs, p.label, p.group)
}

// plotOf returns the name of what --plot draws.
func (a training) plotOf() string {
	switch g, of := a.target(), a.of.Command(); {
	case a.Plot == "":
		return ""
	case a.PlotOf != "auto" && a.PlotOf != "":
		return a.PlotOf
	case g == model.Cluster:
		return "clusters"
	case g == model.Class:
		return "quality"
	case !of.Curve && of.Trees:
		return "importance"
	}
	return "loss"
}

// writeModel adds a sink that writes a model file to path on the machine where the command
// runs.
func writeModel(trained *engine.Dataset, path string) {
	operators.WriteFiles(trained, engine.ClientPath+path, false, operators.FileFormat{
		Op: "WriteModel", Extension: "json",
		Rows: func(w io.Writer) operators.RowWriter { return modelWriter{w} },
	})
}

// modelWriter writes the texts of a column, each on one line.
type modelWriter struct{ w io.Writer }

func (m modelWriter) Write(rows engine.Batch) error {
	text, err := columnar.Get[columnar.Texts](rows, rows.Schema().Column(0).Name)
	for i := 0; err == nil && i < text.Len(); i++ {
		_, err = io.WriteString(m.w, text.At(i)+"\n")
	}
	return err
}

func (modelWriter) Close() error { return nil }

// mayDraw returns an error if the picture at path exists, unless existing outputs are to be
// replaced. It looks for the file only where the command runs, and not where workers run.
func mayDraw(b *engine.Builder, path string) error {
	if path == "" || b.IfExists() == engine.Replace {
		return nil
	}
	there, err := b.Fact("plot "+path, func() (string, error) {
		if _, err := os.Lstat(path); err == nil {
			return "exists", nil
		}
		return "", nil
	})
	if err == nil && there != "" {
		err = fmt.Errorf("output %s exists: choose another path, or replace it with --if-exists replace", path)
	}
	return err
}
