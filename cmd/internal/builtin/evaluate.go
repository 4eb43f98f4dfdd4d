package builtin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
)

// EvaluateArgs are the flags of superstep evaluate.
type EvaluateArgs struct {
	Input      string    `required:"" placeholder:"PATH" help:"File, directory or glob of rows."`
	Kind       string    `enum:"binary,multiclass,regression,clustering,ranking," default:"" placeholder:"KIND" help:"What is measured: binary, scores of two classes; multiclass, predicted classes; regression, numbers; clustering; ranking, the order of the rows of each query (default: what the model predicts)."`
	Label      string    `param:"LabelCol" placeholder:"COLUMN" help:"Column of the truth. Of clusters it may be left out. LibSVM files call it label."`
	Prediction string    `param:"PredictionCol" placeholder:"COLUMN" help:"Column of the prediction: a class, a number or a cluster."`
	Score      string    `param:"ScoreCol" placeholder:"COLUMN" help:"Of binary: column of scores, larger where a row is more likely positive. Of ranking: column that rows are ordered by, the largest first."`
	Positive   string    `placeholder:"LABEL" help:"Of binary: the positive label (default: 1 or true; of a model the second class)."`
	Margins    bool      `help:"Of binary: scores are no probabilities, and their threshold is 0 in place of 0.5. A row is predicted to be positive above the threshold."`
	Features   list      `placeholder:"COLUMN,..." help:"Of clustering: columns of the points, for the measures of how compact clusters are. The silhouette is that of squared distances."`
	Group      string    `param:"QueryCol" placeholder:"COLUMN" help:"Of ranking: column of the query of a row. LibSVM files call it qid."`
	At         int       `want:"1..16777216" param:"K" placeholder:"N" help:"Of ranking: length of the head of each list that ndcg, map, precision and recall look at (default: 10)."`
	Relevant   float64   `want:">0..500" placeholder:"LABEL" help:"Of ranking: least label of a relevant row, for all measures but ndcg (default: 1)."`
	Flat       string    `enum:"out,one,zero" default:"out" placeholder:"HOW" help:"Of ranking: how ndcg counts a query if all its labels are 0: out (the default) leaves it out, as training does; one counts 1, as LightGBM and XGBoost do; zero counts 0, as scikit-learn does."`
	Weight     string    `param:"WeightCol" placeholder:"COLUMN" help:"Column of row weights, numbers of 0 or more."`
	Model      ModelFile `placeholder:"FILE" help:"File of a model on this machine. Its predictions for the rows are measured, in place of --prediction and --score."`
	Output     string    `enum:"text,json" default:"text" placeholder:"FORM" help:"Print text (the default) or json."`
	Plot       string    `placeholder:"FILE" help:"PNG, SVG or PDF file to draw in what --plot-of says."`
	PlotOf     string    `of:"plot" enum:"auto,roc,pr,lift,confusion" default:"auto" placeholder:"WHAT" help:"Of binary roc (the default), pr or lift; of multiclass confusion."`
	InputArgs
}

// The kinds of evaluations.
const (
	binaryKind     = "binary"
	multiclassKind = "multiclass"
	regressionKind = "regression"
	clusteringKind = "clustering"
	rankingKind    = "ranking"
)

// Validate returns an error if flags contradict each other or have no effect.
func (a EvaluateArgs) Validate(k *kong.Context) error {
	return refuse(k, errors.Join(a.problems(), a.InputArgs.problems(), validPlot(a.Plot)))
}

// problems returns everything that is wrong with the flags of an evaluation.
func (a EvaluateArgs) problems() error {
	var errs []error
	bad := func(is bool, text string) {
		if is {
			errs = append(errs, errors.New(text))
		}
	}
	modelled := a.Model.given()
	bad(a.Kind == "" && !modelled, "--kind is missing: binary, multiclass, regression, clustering or ranking")
	bad(a.Kind == binaryKind && a.Score == "" && !modelled, "--score is missing: binary measures scores (multiclass measures predicted classes)")
	bad(a.Kind == rankingKind && a.Score == "" && !modelled, "--score is missing: name the column that rows are ordered by")
	bad(a.Kind == rankingKind && a.Group == "" && a.form(a.Input) != libsvmForm, "--group is missing: name the column of queries")
	bad(a.Kind != "" && a.Kind != rankingKind && a.ranks(), ranksOnly)
	bad(a.Kind != binaryKind && a.Kind != rankingKind && a.Kind != "" && a.Prediction == "" && !modelled, "--prediction is missing")
	if a.Kind != "" && !modelled {
		errs = append(errs, a.checkKind(a.Kind))
	}
	bad(modelled && (a.Prediction != "" || a.Score != ""), "--model does not go with --prediction and --score")
	bad(modelled && (a.Positive != "" || a.Margins || len(a.Features) > 0), "--positive, --margins and --features do not go with --model, which determines them")
	bad(a.Label == "" && a.Kind != clusteringKind && !modelled && a.form(a.Input) != libsvmForm, "--label is missing: name the column of the truth")
	bad(a.Kind == clusteringKind && !modelled && a.Label == "" && len(a.Features) == 0, "clustering needs --label, --features or both")
	bad(a.Plot != "" && a.Kind != "" && a.Kind != binaryKind && a.Kind != multiclassKind, "--plot is for binary and multiclass")
	bad(a.Kind == binaryKind && a.PlotOf == "confusion" || a.Kind == multiclassKind && slices.Contains([]string{"roc", "pr", "lift"}, a.PlotOf),
		fmt.Sprintf("--plot-of %s does not go with --kind %s", a.PlotOf, a.Kind))
	return errors.Join(errs...)
}

// ranksOnly is the message about flags that are only for rankings but are given with another
// --kind.
const ranksOnly = "--group, --at, --relevant and --flat are for --kind ranking"

// ranks reports whether a flag for rankings is given.
func (a EvaluateArgs) ranks() bool {
	return a.Group != "" || a.At != 0 || a.Relevant != 0 || a.Flat != "out" && a.Flat != ""
}

// checkKind returns an error if a flag has no effect when predictions in files are evaluated
// with the given kind.
func (a EvaluateArgs) checkKind(kind string) error {
	var errs []error
	for _, f := range []struct {
		flag  string
		given bool
		kinds []string
	}{
		{"--score", a.Score != "", []string{binaryKind, rankingKind}},
		{"--positive", a.Positive != "", []string{binaryKind}},
		{"--margins", a.Margins, []string{binaryKind}},
		{"--features", len(a.Features) > 0, []string{clusteringKind}},
		{"--prediction", a.Prediction != "", []string{multiclassKind, regressionKind, clusteringKind}},
	} {
		if f.given && !slices.Contains(f.kinds, kind) {
			errs = append(errs, fmt.Errorf("%s does not go with --kind %s: it is for %s", f.flag, kind, strings.Join(f.kinds, ", ")))
		}
	}
	return errors.Join(errs...)
}

// Evaluate is the job that measures predictions.
var Evaluate = engine.Define("evaluate", func(b *engine.Builder, a EvaluateArgs) error {
	b.Advise(adviceOnFiles)
	var err error
	if a.InputArgs, err = a.resolved(b, a.Input); err != nil {
		return err
	}
	if a.Model.given() {
		return a.ofModel(b)
	}
	a.unreadable = unreadable{}
	a.InputArgs = a.onlyInferring(append([]string{a.Label, a.Prediction, a.Score, a.Weight, a.Group, "qid"}, a.Features...)...)
	rows, err := a.read(b, a.Input, nil)
	if err != nil || rows.Poisoned() {
		return err
	}
	a.Label = a.label(arrowrows.Arrow(rows.Schema()))
	s := rows.Schema()
	err = errors.Join(a.known("--label", a.Input, arrowrows.Arrow(s), a.Label), a.known("--prediction", a.Input, arrowrows.Arrow(s), a.Prediction),
		a.known("--score", a.Input, arrowrows.Arrow(s), a.Score), a.known("--weight", a.Input, arrowrows.Arrow(s), a.Weight), a.known("--group", a.Input, arrowrows.Arrow(s), a.group(arrowrows.Arrow(s))), a.known("--features", a.Input, arrowrows.Arrow(s), a.Features...))
	if err == nil {
		err = a.unfit(b, a.Input, arrowrows.Arrow(s), a.numeric(a.Kind), map[string][]string{"--label": one(a.Label), "--prediction": one(a.Prediction), "--group": one(a.group(arrowrows.Arrow(s)))})
	}
	if err != nil {
		return err
	}
	points := ""
	if len(a.Features) > 0 {
		points = unused(arrowrows.Arrow(s), "superstep features")
		rows = operators.Vectorize(rows, points, a.Features...)
	}
	switch a.Kind {
	case binaryKind:
		engine.Collect(evaluate.Binary(rows, evaluate.BinaryOptions{
			LabelCol: a.Label, ScoreCol: a.Score, WeightCol: a.Weight, Positive: a.Positive, Margins: a.Margins, Skip: true,
		}), testResult)
	case multiclassKind:
		engine.Collect(multiclass(rows, a.Label, a.Prediction, a.Weight), testResult)
	case rankingKind:
		return a.ranking(b, rows, a.Label, a.Score, a.group(arrowrows.Arrow(s)))
	case regressionKind:
		engine.Collect(regression(rows, a.Label, a.Prediction, a.Weight), testResult)
	default:
		engine.Collect(clustering(rows, a.Prediction, points, a.Label, a.Weight), testResult)
	}
	return mayDraw(b, a.Plot)
}).Describe("Measures predictions in files, or those of a model for the rows of files.")

// numeric returns the columns that must be numbers for the given kind of evaluation.
func (a EvaluateArgs) numeric(kind string) numeric {
	n := numeric{"--weight": one(a.Weight), "--score": one(a.Score), "--features": a.Features}
	if kind == regressionKind || kind == rankingKind {
		n["--label"], n["--prediction"] = one(a.Label), one(a.Prediction)
	}
	return n
}

// ranking adds the evaluation of rankings to the job.
func (a EvaluateArgs) ranking(b *engine.Builder, rows *engine.Dataset, label, score, group string) error {
	if group == "" {
		return errors.New("--group is missing: name the column of queries")
	}
	flat := map[string]evaluate.FlatQueries{"one": evaluate.FlatOne, "zero": evaluate.FlatZero}[a.Flat]
	engine.Collect(evaluate.Ranking(rows, evaluate.RankingOptions{
		QueryCol: group, LabelCol: label, ScoreCol: score, WeightCol: a.Weight, K: a.At, Relevant: a.Relevant, Flat: flat, Skip: true,
	}), testResult)
	return nil
}

// group returns the name of the column of queries: the value of --group or, by default, qid if
// the file has a column qid. It returns "" if there is no column of queries.
func (a EvaluateArgs) group(schema *arrow.Schema) string {
	if a.Group == "" && schema.HasField("qid") {
		return "qid"
	}
	return a.Group
}

// label returns the column of true labels: the value of --label or, for LibSVM files, label.
func (a EvaluateArgs) label(schema *arrow.Schema) string {
	if a.Label == "" && a.form(a.Input) == libsvmForm && schema.HasField("label") {
		return "label"
	}
	return a.Label
}

// ofModel adds to the job the operators that apply the model to the rows and measure its
// predictions.
func (a EvaluateArgs) ofModel(b *engine.Builder) error {
	m, err := a.Model.model()
	if err != nil {
		return err
	}
	last := lastOf(m)
	adds, predicts := model.PredictionOf(last)
	if !predicts {
		return fmt.Errorf("%s is a model of kind %s, which predicts nothing that can be measured", a.Model.Path, last.Kind())
	}
	want := a.Kind
	if want == "" {
		want = a.kindFor(evaluations(adds))
	}
	if !slices.Contains(evaluations(adds), want) {
		return fmt.Errorf("--kind is %s, but a model of kind %s is measured as %s", want, last.Kind(), strings.Join(evaluations(adds), " or "))
	}
	if want != rankingKind && a.ranks() {
		return fmt.Errorf("%s, and the model is measured as %s", ranksOnly, want)
	}
	if a.Plot != "" && want != binaryKind && want != multiclassKind {
		return fmt.Errorf("--plot is for binary and multiclass, and the model is measured as %s", want)
	}
	a.InputArgs, _ = a.remembered(a.Input, a.Model.Reading)
	a.unreadable = unreadable{}
	a.InputArgs = a.onlyInferring(a.Label, a.Weight, a.Group, "qid")
	rows, err := a.read(b, a.Input, m.Inputs())
	if err != nil || rows.Poisoned() {
		return err
	}
	label := a.label(arrowrows.Arrow(rows.Schema()))
	if label == "" && want != clusteringKind {
		return errors.New("--label is missing: name the column of the truth")
	}
	err = errors.Join(a.fits(a.Input, m, arrowrows.Arrow(rows.Schema())), a.known("--label", a.Input, arrowrows.Arrow(rows.Schema()), label), a.known("--weight", a.Input, arrowrows.Arrow(rows.Schema()), a.Weight))
	if err == nil {
		err = a.unfit(b, a.Input, arrowrows.Arrow(rows.Schema()), a.numeric(want), map[string][]string{"--label": one(label)})
	}
	if err != nil {
		return err
	}
	group := ""
	if want == rankingKind {
		group = a.group(arrowrows.Arrow(rows.Schema()))
		if err := a.known("--group", a.Input, arrowrows.Arrow(rows.Schema()), group); err != nil {
			return err
		}
	}
	rows = finiteFor(m, narrowed(rows, m, label, a.Weight, group))
	rows, now, err := renameNamesakes(rows, m)
	if err != nil || rows.Poisoned() {
		return err
	}
	label, a.Weight, group = cmp.Or(now[label], label), cmp.Or(now[a.Weight], a.Weight), cmp.Or(now[group], group)
	made, _ := applied(m, rows)
	if made.Poisoned() {
		return nil
	}
	survey(b, m, rows)
	switch want {
	case binaryKind:
		engine.Collect(binary(scored(made, model.Dataset(b, m), label), adds, a.Weight), testResult)
	case multiclassKind:
		engine.Collect(evaluate.Multiclass(made, multiclassOptions(adds, label, a.Weight)), testResult)
	case rankingKind:
		return a.ranking(b, made, label, adds.Column, group)
	case regressionKind:
		engine.Collect(regression(made, label, adds.Column, a.Weight), testResult)
	default:
		made, points := pointsOf(made, last)
		engine.Collect(clustering(made, adds.Column, points, label, a.Weight), testResult)
	}
	return mayDraw(b, a.Plot)
}

// multiclassOptions returns the options for measuring the classes that a model predicts, and
// also its probabilities if the model predicts them. The parameter of describes the
// predictions.
func multiclassOptions(of model.Prediction, label, weight string) evaluate.MulticlassOptions {
	o := evaluate.MulticlassOptions{LabelCol: label, PredictionCol: of.Column, WeightCol: weight, Skip: true}
	if classes := of.Classes(); of.Scores != "" && !of.Margins && len(classes) > 1 {
		o.ProbabilityCols, o.Classes = []string{of.Scores}, classes
	}
	return o
}

// pointsOf returns rows with a column of the vectors that a clustering model clusters, and the
// name of that column. If the model reads columns of numbers, pointsOf adds the column of
// vectors.
func pointsOf(rows *engine.Dataset, m model.Model) (*engine.Dataset, string) {
	inputs := m.Inputs()
	if field, ok := arrowrows.Arrow(rows.Schema()).FieldsByName(inputs[0].Column); len(inputs) == 1 && ok && columnTypeOf(field[0].Type) == vectors {
		return rows, inputs[0].Column
	}
	name := unused(arrowrows.Arrow(rows.Schema()), "superstep features")
	return operators.Vectorize(rows, name, inputsOf(m)...), name
}

// kindFor returns the kind of evaluation to use. all has the kinds that suit a model. kindFor
// returns the kind that --plot-of needs or, without --plot-of, the first of all.
func (a EvaluateArgs) kindFor(all []string) string {
	if a.PlotOf == "confusion" && slices.Contains(all, multiclassKind) {
		return multiclassKind
	}
	return all[0]
}

// evaluations returns the kinds of evaluation that suit a prediction. The first is the default.
func evaluations(of model.Prediction) []string {
	switch {
	case of.Target == model.Rank:
		return []string{rankingKind, regressionKind}
	case of.Target == model.Number:
		return []string{regressionKind}
	case of.Target == model.Cluster:
		return []string{clusteringKind}
	case len(of.Classes()) == 2 && of.Scores != "":
		return []string{binaryKind, multiclassKind}
	}
	return []string{multiclassKind}
}

// readingNotes returns notes about columns whose types may differ from what the user meant, and
// about values that the model does not know.
func (a EvaluateArgs) readingNotes(r *engine.Result) ([]string, error) {
	if !a.Model.given() {
		return readingNotes(r, append([]string{a.Label, a.Prediction, a.Score, a.Weight}, a.Features...), a.numbers(a.Kind)), nil
	}
	m, err := a.Model.model()
	if err != nil {
		return nil, err
	}
	want := a.Kind
	if adds, ok := model.PredictionOf(lastOf(m)); ok && want == "" {
		want = a.kindFor(evaluations(adds))
	}
	read := readingNotes(r, append(inputsOf(m), a.Label, a.Weight), append(numbersIn(m), a.numbers(want)...))
	return slices.Concat(a.rememberedNotes(a.Input, a.Model.Reading), read, surveyNotes(m, r, "")), nil
}

// evaluatedReport prints a report, and draws the plot.
func evaluatedReport(w io.Writer, a EvaluateArgs, r *engine.Result) ([]string, error) {
	f, err := findings(r, 0)
	if err != nil {
		return nil, err
	}
	notes, err := a.readingNotes(r)
	if err != nil {
		return nil, err
	}
	without, rest := unmeasured(r, "")
	notes = append(notes, without...)
	notes = append(notes, leftOut(rest, skippedByModel)...)
	if f.weight == 0 {
		return notes, fmt.Errorf("no row of %s has a label, a prediction and a weight above 0: there is nothing to measure", a.Input)
	}
	if b := f.binary; b != nil && a.Positive != "" && b.Positive == 0 {
		notes = append(notes, fmt.Sprintf("no row has the label %q, which --positive names: all count as negative", a.Positive))
	}
	if a.Output == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		err = e.Encode(f.shown)
	} else {
		_, err = fmt.Fprintln(w, strings.TrimRight(f.text(), "\n"))
	}
	if err != nil || a.Plot == "" {
		return notes, err
	}
	switch {
	case f.binary != nil:
		what := a.PlotOf
		if what == "auto" || what == "" {
			what = "roc"
		}
		err = drawCurve(a.Plot, what, f.binary, "rows of "+a.Input)
	case f.multiclass != nil:
		err = drawConfusion(a.Plot, f.multiclass, "rows of "+a.Input)
	default:
		err = errors.New("--plot is for binary and multiclass")
	}
	if err == nil && a.Output != "json" {
		fmt.Fprintf(w, "plot written to %s\n", a.Plot)
	}
	return notes, err
}
