package builtin

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/spelling"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/parquet"
)

// PredictArgs are the flags of applying a model.
type PredictArgs struct {
	Model  ModelFile `required:"" placeholder:"FILE" help:"File of the model, of any kind, on this machine. Up to 4 MiB it travels to the workers of a cluster; of a larger one they read the file at this path."`
	Input  string    `required:"" placeholder:"PATH" help:"File, directory or glob of rows."`
	Output string    `required:"" placeholder:"PATH" help:"File to write the rows to with what the model predicts: CSV, Arrow where the name ends in .arrow or .feather, or Parquet where it ends in .parquet. client:PATH writes it where the command runs."`
	Keep   list      `placeholder:"COLUMN,..." help:"Columns of the input to write beside the predictions (default: all but vectors)."`
	OutputArgs
	InputArgs
}

// Validate returns an error if flags contradict each other or have no effect.
func (a PredictArgs) Validate(k *kong.Context) error {
	return refuse(k, errors.Join(a.InputArgs.problems(), writable(a.Output), requireOutside(a.Output, a.Input), requireDifferentFiles("--output", strings.TrimPrefix(a.Output, "client:"), "--model", a.Model.Path)))
}

// Predict is the job that applies a model to the rows of files.
var Predict = engine.Define("predict", func(b *engine.Builder, a PredictArgs) error {
	b.Advise(adviceOnFiles)
	m, err := a.Model.model()
	if err != nil {
		return err
	}
	if a.InputArgs, err = a.resolved(b, a.Input); err != nil {
		return err
	}
	a.InputArgs, _ = a.remembered(a.Input, a.Model.Reading)
	a.unreadable = unreadable{}
	switch {
	case outputForm(a.Output) == csvForm:
		a.InputArgs = a.onlyInferring() // a CSV cell that is only copied stays as it is written
	case len(a.Keep) > 0:
		a.InputArgs = a.onlyInferring(a.Keep...)
	}
	rows, err := a.read(b, a.Input, m.Inputs())
	if err != nil || rows.Poisoned() {
		return err
	}
	if err := errors.Join(a.fits(a.Input, m, arrowrows.Arrow(rows.Schema())), a.known("--keep", a.Input, arrowrows.Arrow(rows.Schema()), a.Keep...)); err != nil {
		return err
	}
	if len(a.Keep) > 0 {
		rows = narrowed(rows, m, a.Keep...)
	}
	rows = finiteFor(m, rows)
	kept := a.Keep
	if len(kept) == 0 {
		for _, f := range arrowrows.Arrow(rows.Schema()).Fields() {
			if columnTypeOf(f.Type) != vectors {
				kept = append(kept, f.Name)
			}
		}
	}
	rows, now, err := renameNamesakes(rows, m)
	if err != nil || rows.Poisoned() {
		return err
	}
	made, added := applied(m, rows)
	if made.Poisoned() {
		return nil
	}
	survey(b, m, rows)
	made = splitScores(made, lastOf(m))
	var outputs []string
	for _, f := range arrowrows.Arrow(made.Schema()).Fields() {
		if rows.Schema().Index(f.Name) < 0 && (added[f.Name] || slices.Contains(scoreColumns(lastOf(m)), f.Name)) {
			outputs = append(outputs, f.Name)
		}
	}
	made, err = a.write(a.Input, made, lastOf(m), kept, outputs, now)
	if err != nil || made.Poisoned() {
		return err
	}
	WriteRows(made, a.Output)
	return nil
}).Describe("Applies a model of any kind, pipelines among them, to the rows of files.")

// writable returns an error if the ending of output belongs to a form that cannot be written.
func writable(output string) error {
	path := strings.TrimPrefix(output, engine.ClientPath)
	if path == "-" && path != output {
		return fmt.Errorf("--output is %s: write - alone, without client:, for standard output", output)
	}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".gz", ".zst", ".zstd", ".bz2", ".xz", ".zip":
		return fmt.Errorf("--output is %s, which names a compressed file, and compressed files are not written: leave out %s, or name a .parquet file, which is compressed by itself", output, ext)
	case ".arrows", ".libsvm", ".svm", ".xls", ".xlsx", ".ods", ".json", ".jsonl", ".orc", ".avro":
		return fmt.Errorf("--output is %s, and %s files are not written: name a .csv, .tsv, .arrow, .feather or .parquet file", output, ext)
	}
	return nil
}

// WriteRows writes rows to the file at path. The ending of the name selects the form: Arrow,
// Parquet, or CSV for all other endings. A file with the ending .tsv has tabs between cells.
func WriteRows(rows *engine.Dataset, path string) {
	switch outputForm(path) {
	case arrowForm:
		operators.WriteArrow(rows, path, operators.ArrowWriteOptions{})
	case parquetForm:
		parquet.Write(rows, path, parquet.WriteOptions{})
	default:
		var o operators.CSVWriteOptions
		if strings.EqualFold(filepath.Ext(path), ".tsv") {
			o.Delimiter = '\t'
		}
		operators.WriteCSV(rows, path, o)
	}
}

// fits returns an error if schema lacks a column that the model reads, or if such a column has
// a type of another class.
func (a InputArgs) fits(path string, m model.Model, schema *arrow.Schema) error {
	var errs []error
	for _, in := range m.Inputs() {
		field, ok := schema.FieldsByName(in.Column)
		if problem := a.unreadable[columnOf{path, in.Column}]; problem != "" {
			errs = append(errs, fmt.Errorf("column %q of %s, which the model reads: %s", in.Column, path, problem))
			continue
		}
		if !ok {
			errs = append(errs, fmt.Errorf("%s has no column %q, which the model reads%s", path, in.Column, spelling.DidYouMean("; ", in.Column, names(schema))))
			continue
		}
		want := numbers
		switch {
		case in.Type == "utf8":
			want = texts
		case model.IsVector(in.Type):
			want = vectors
		case columnTypeOf(field[0].Type) == others:
			continue // dates: the model checks them itself
		}
		if got := columnTypeOf(field[0].Type); got != want {
			errs = append(errs, fmt.Errorf("column %q of %s is %s, the model was trained on %s", in.Column, path, got, want))
		}
	}
	return errors.Join(errs...)
}

// narrowed returns rows without the columns that the model does not read, except the columns
// named by but. It is needed because a file of predictions already has columns with the names
// of the columns that the model adds.
func narrowed(rows *engine.Dataset, m model.Model, but ...string) *engine.Dataset {
	var columns []string
	for _, name := range append(inputsOf(m), but...) {
		if name != "" && !slices.Contains(columns, name) {
			columns = append(columns, name)
		}
	}
	return operators.Select(rows, columns...)
}

// inputsOf returns the names of the columns that a model reads.
func inputsOf(m model.Model) []string {
	var columns []string
	for _, in := range m.Inputs() {
		columns = append(columns, in.Column)
	}
	return columns
}

// applied adds to rows the columns that a model computes. added has the names of the columns
// that the last stage of the model made.
func applied(m model.Model, rows *engine.Dataset) (made *engine.Dataset, added map[string]bool) {
	made, before := rows, rows
	for _, stage := range stagesOf(m) {
		before, made = made, stage.Transform(made)
	}
	added = map[string]bool{}
	if made.Poisoned() {
		return made, added
	}
	for _, n := range names(arrowrows.Arrow(made.Schema())) {
		if before.Schema().Index(n) < 0 {
			added[n] = true
		}
	}
	return made, added
}

// scoreColumns returns the columns by which splitScores replaces the vector of probabilities.
func scoreColumns(m model.Model) []string {
	adds := predictionOf(m)
	if adds.Scores == "" {
		return nil
	}
	labels := adds.Labels
	if adds.Margins && len(labels) == 2 {
		labels = labels[1:] // two classes have one margin, which belongs to the second class
	}
	columns := make([]string, len(labels))
	for i, l := range labels {
		columns[i] = adds.Scores + "_" + l
	}
	return columns
}

// splitScores replaces the vector of probabilities by a column for each class, named after the
// vector and the class.
func splitScores(rows *engine.Dataset, m model.Model) *engine.Dataset {
	columns := scoreColumns(m)
	at := arrowrows.Arrow(rows.Schema()).FieldIndices(predictionOf(m).Scores)
	if len(columns) == 0 || len(at) == 0 {
		return rows
	}
	fields := slices.Clone(arrowrows.Arrow(rows.Schema()).Fields())
	made := make([]arrow.Field, len(columns))
	for i, name := range columns {
		made[i] = arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Float64, Nullable: true}
	}
	schema := arrow.NewSchema(slices.Replace(fields, at[0], at[0]+1, made...), nil)
	return operators.MapBatch(rows, arrowrows.Schema(schema), func(c *engine.Context, in engine.Batch) (engine.Batch, error) {
		rec := arrowrows.Record(in)
		made, err := splitVector(c, rec, schema, at[0], len(columns))
		return arrowrows.Batch(made), err
	})
}

// splitVector replaces the vector column with index at by n columns.
func splitVector(c *engine.Context, rec arrow.Record, schema *arrow.Schema, at, n int) (arrow.Record, error) {
	layout := model.NewLayout(names(rec.Schema())...)
	cell, err := layout.Find(rec.ColumnName(at))
	if err != nil {
		return nil, err
	}
	reader, err := model.NewReader(arrowrows.Schema(rec.Schema()), layout)
	if err != nil {
		return nil, err
	}
	reader.Reset(arrowrows.Batch(rec))
	builders := make([]*array.Float64Builder, n)
	for j := range builders {
		builders[j] = array.NewFloat64Builder(c.Allocator)
		defer builders[j].Release()
	}
	row := layout.NewRow()
	for i := range int(rec.NumRows()) {
		reader.Read(i, row)
		values := row[cell].Values
		for j, b := range builders {
			if row[cell].Kind == model.NullCell || j >= len(values) {
				b.AppendNull()
			} else {
				b.Append(values[j])
			}
		}
	}
	columns := slices.Clone(rec.Columns())
	made := make([]arrow.Array, n)
	for j, b := range builders {
		made[j] = b.NewArray()
		defer made[j].Release()
	}
	return array.NewRecord(schema, slices.Replace(columns, at, at+1, made...), rec.NumRows()), nil
}

// skippedByModel is the end of the note about rows that a model leaves out. Models trained by
// programs can have that setting.
const skippedByModel = " left out, as the model was trained to do with missing and unknown values"

// predictedReport prints how many rows were predicted and where the predictions were written.
func predictedReport(w io.Writer, a PredictArgs, r *engine.Result) ([]string, error) {
	left := skippedFor(r, func(n *plan.Node) bool { return n.Sink })
	_, err := fmt.Fprintf(w, "predictions of %s written to %s\n", humanize.Count(rowsRead(r)-left, "row"), strings.TrimPrefix(a.Output, engine.ClientPath))
	notes := leftOut(left, skippedByModel)
	m, wrong := a.Model.model()
	if wrong != nil {
		return notes, errors.Join(err, wrong)
	}
	return slices.Concat(a.rememberedNotes(a.Input, a.Model.Reading), readingNotes(r, inputsOf(m), numbersIn(m)), surveyNotes(m, r, ""), notes, a.notes(a.Input, r)), err
}
