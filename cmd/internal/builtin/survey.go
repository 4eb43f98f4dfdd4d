package builtin

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/humanize"
)

// surveyResult is the name of the result of a survey.
const surveyResult = "survey"

// columnCounts counts the missing and the unseen values of one column in the rows of a shard.
type columnCounts struct {
	Column string
	Absent int64 // rows without a value
	Unseen int64 // rows with a value that did not occur in training
	// Example is the first value counted in Unseen.
	Example string
}

// survey collects, for each shard, how many of the values that a model reads are missing in
// rows, and how many are unknown to the model.
func survey(b *engine.Builder, m model.Model, rows *engine.Dataset) {
	if watched := surveyedColumns(m, arrowrows.Arrow(rows.Schema())); len(watched) > 0 {
		addSurvey(b, []engine.Port{{From: rows}}, func() *surveyOperator {
			return &surveyOperator{columns: watched, counts: make([]columnCounts, len(watched))}
		})
	}
}

// surveyTrained is survey for a model that the same job trains.
func surveyTrained(b *engine.Builder, trained, rows *engine.Dataset) {
	if trained.Poisoned() || rows.Poisoned() {
		return
	}
	schema := rows.Schema()
	addSurvey(b, []engine.Port{{From: rows}, {From: trained, Partitioner: engine.Broadcast, Side: true}}, func() *surveyOperator { return &surveyOperator{trained: arrowrows.Arrow(schema)} })
}

// addSurvey adds the operator that made returns, and collects its output under surveyResult.
func addSurvey(b *engine.Builder, inputs []engine.Port, made func() *surveyOperator) {
	text := arrow.BinaryTypes.String
	count := arrow.PrimitiveTypes.Int64
	engine.Collect(b.Add(engine.Spec{
		Op:       "Survey",
		Schema:   arrowrows.Schema(arrow.NewSchema([]arrow.Field{{Name: "column", Type: text}, {Name: "absent", Type: count}, {Name: "unseen", Type: count}, {Name: "example", Type: text}}, nil)),
		Inputs:   inputs,
		Operator: func() engine.Operator { return made() },
	}), surveyResult)
}

// surveyedColumns returns the columns of rows to survey for a model.
func surveyedColumns(m model.Model, schema *arrow.Schema) (watched []surveyedColumn) {
	known := categoriesOf(m)
	for _, in := range m.Inputs() {
		i := schema.FieldIndices(in.Column)
		if len(i) == 0 || columnTypeOf(schema.Field(i[0]).Type) == vectors {
			continue
		}
		w := surveyedColumn{column: in.Column, at: i[0]}
		if values, ok := known.Values[in.Column]; ok {
			w.known = map[string]bool{}
			for _, v := range values {
				w.known[v] = true
			}
		}
		if codes := known.Codes[in.Column]; codes != nil {
			w.codes = map[float64]bool{}
			for _, c := range codes {
				w.codes[float64(c)] = true
			}
		}
		watched = append(watched, w)
	}
	return watched
}

// surveyedColumn is a column that is surveyed.
type surveyedColumn struct {
	column string
	at     int
	known  map[string]bool  // values that occurred in training; nil if no value counts as unseen
	codes  map[float64]bool // the same as known, for categories that are numbers
}

// surveyOperator is the operator that survey adds.
type surveyOperator struct {
	engine.BaseOperator
	trained *arrow.Schema // schema of the rows if the model is a side input; nil if the model is known when the job is built
	columns []surveyedColumn
	counts  []columnCounts // counts[i] has the counts of columns[i] in this shard

	reader *model.Reader // reads categories that are numbers
	row    []model.Cell
}

// Open reads the model from the side input if the job trains it.
func (s *surveyOperator) Open(c *engine.Context) error {
	if s.trained == nil {
		return nil
	}
	file, err := model.Side(c, 1)
	if err != nil {
		return err
	}
	m, err := pipeline.DecodeAny(file)
	if err != nil {
		return err
	}
	s.columns = surveyedColumns(m, s.trained)
	s.counts = make([]columnCounts, len(s.columns))
	return nil
}

// bind sets reader, which reads categories that are numbers from columns of any numeric type.
func (s *surveyOperator) bind(schema *arrow.Schema) (err error) {
	layout := model.NewLayout(names(schema)...)
	for _, w := range s.columns {
		if w.codes == nil {
			continue
		}
		if _, err := layout.Find(w.column); err != nil {
			return err
		}
	}
	s.row = layout.NewRow()
	s.reader, err = model.NewReader(arrowrows.Schema(schema), layout)
	return err
}

// countUnseen counts the numbers that are not a category of the training. A number with a
// fractional part is truncated to a category first.
func (s *surveyOperator) countUnseen(rows arrow.Record) error {
	if s.reader == nil {
		if err := s.bind(rows.Schema()); err != nil {
			return err
		}
	}
	s.reader.Reset(arrowrows.Batch(rows))
	for i := range int(rows.NumRows()) {
		s.reader.Read(i, s.row)
		for k, w := range s.columns {
			v, ok := s.row[w.at].Number()
			if w.codes == nil || !ok || v != v || w.codes[math.Floor(v)] {
				continue
			}
			if f := &s.counts[k]; f.Unseen == 0 {
				f.Unseen, f.Example = 1, strconv.FormatFloat(v, 'f', -1, 64)
			} else {
				f.Unseen++
			}
		}
	}
	return nil
}

func (s *surveyOperator) Process(_ *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	if slices.ContainsFunc(s.columns, func(w surveyedColumn) bool { return w.codes != nil }) {
		if err := s.countUnseen(rows); err != nil {
			return err
		}
	}
	for k, w := range s.columns {
		f := &s.counts[k]
		switch column := rows.Column(w.at).(type) {
		case *array.Float64:
			for i, v := range column.Float64Values() {
				if v != v && column.IsValid(i) {
					f.Absent++
				}
			}
			f.Absent += int64(column.NullN())
		case *array.String:
			f.Absent += int64(column.NullN())
			for i := 0; w.known != nil && i < column.Len(); i++ {
				if column.IsNull(i) || w.known[column.Value(i)] {
					continue
				}
				if f.Unseen++; f.Unseen == 1 {
					f.Example = shortened(column.Value(i))
				}
			}
		default:
			f.Absent += int64(column.NullN())
		}
	}
	return nil
}

// shortened returns text as a quoted literal. A long text is shortened.
func shortened(text string) string {
	const most = 40
	if runes := []rune(text); len(runes) > most {
		return fmt.Sprintf("%q…", string(runes[:most]))
	}
	return fmt.Sprintf("%q", text)
}

// EndShard emits a row for each column that has missing or unseen values.
func (s *surveyOperator) EndShard(c *engine.Context, shard int, out engine.Output) error {
	columns, examples := array.NewStringBuilder(c.Allocator), array.NewStringBuilder(c.Allocator)
	absent, unseen := array.NewInt64Builder(c.Allocator), array.NewInt64Builder(c.Allocator)
	builders := []array.Builder{columns, absent, unseen, examples}
	defer func() {
		for _, b := range builders {
			b.Release()
		}
	}()
	for k, f := range s.counts {
		if f.Absent+f.Unseen == 0 {
			continue
		}
		columns.Append(s.columns[k].column)
		absent.Append(f.Absent)
		unseen.Append(f.Unseen)
		examples.Append(f.Example)
		s.counts[k] = columnCounts{}
	}
	if columns.Len() == 0 {
		return nil
	}
	var made []arrow.Array
	for _, b := range builders {
		column := b.NewArray()
		defer column.Release()
		made = append(made, column)
	}
	fields := []arrow.Field{{Name: "column", Type: made[0].DataType()}, {Name: "absent", Type: made[1].DataType()}, {Name: "unseen", Type: made[2].DataType()}, {Name: "example", Type: made[3].DataType()}}
	rec := array.NewRecord(arrow.NewSchema(fields, nil), made, int64(made[0].Len()))
	defer rec.Release()
	return out.Emit(shard, arrowrows.Batch(rec))
}

// surveyNotes returns notes on what a survey found in each column, in the order of the model's
// inputs. The parameter of is a text that names the files of the rows, such as " of a.csv".
func surveyNotes(m model.Model, r *engine.Result, of string) []string {
	rows, err := engine.Rows[columnCounts](r, surveyResult)
	if err != nil {
		return nil // the job had no survey
	}
	found := map[string]*columnCounts{}
	for _, row := range rows {
		f := found[row.Column]
		if f == nil {
			f = &columnCounts{}
			found[row.Column] = f
		}
		f.Absent += row.Absent
		f.Unseen += row.Unseen
		if f.Example == "" {
			f.Example = row.Example
		}
	}
	var notes []string
	for _, in := range m.Inputs() {
		f := found[in.Column]
		if f == nil {
			continue
		}
		if f.Absent > 0 {
			notes = append(notes, fmt.Sprintf("%s no value in column %q%s", humanize.CountOf(f.Absent, "row"+of+" has", "rows"+of+" have"), in.Column, missingText(m, in.Column, f.Absent)))
		}
		if f.Unseen > 0 {
			notes = append(notes, fmt.Sprintf("%s a value in column %q that training has not seen, such as %s%s",
				humanize.CountOf(f.Unseen, "row"+of+" has", "rows"+of+" have"), in.Column, f.Example, unseenText(m, in.Column, f.Unseen)))
		}
	}
	return notes
}

// takesMissing reports whether a model accepts missing values without replacing them, as trees
// do.
func takesMissing(m model.Model) bool {
	missing, _ := treatmentBy(lastOf(m), "")
	return missing == model.Taken
}

// treatmentBy returns how a model treats missing values of a column, and values of the column
// that did not occur in training.
func treatmentBy(m model.Model, column string) (missing, unseen model.Treatment) {
	if t, ok := m.(model.Treater); ok {
		return t.Treats(column)
	}
	return model.Untold, model.Untold
}

// missingText returns a text that says what happens to the given number of rows without a value
// in a column.
func missingText(m model.Model, column string, rows int64) string {
	leave, without := ", and are left out", ": they are without a prediction"
	if rows == 1 {
		leave, without = ", and is left out", ": it is without a prediction"
	}
	stages := stagesOf(m)
	for _, s := range stages {
		switch missing, _ := treatmentBy(s, column); missing {
		case model.FilledIn:
			return ": it is filled in as in training"
		case model.LeftOut:
			return leave
		case model.Unpredicted:
			return without
		}
	}
	if len(stages) == 1 && !takesMissing(m) {
		return without
	}
	return ""
}

// unseenText returns a text that says what happens to the given number of rows whose value in a
// column did not occur in training.
func unseenText(m model.Model, column string, rows int64) string {
	end, count, leave := "they go", "they count", "are left out"
	if rows == 1 {
		end, count, leave = "it goes", "it counts", "is left out"
	}
	if _, unseen := treatmentBy(lastOf(m), column); unseen == model.LikeMissing {
		return ": " + end + " where missing values go"
	}
	for _, s := range stagesOf(m) {
		for _, name := range aliasesOf(m, column) {
			switch _, unseen := treatmentBy(s, name); unseen {
			case model.LikeAverage:
				return ": " + count + " as the average of those it has"
			case model.LikeNone:
				return ": " + count + " as none of those it has"
			case model.LeftOut:
				return ", and " + leave
			}
		}
	}
	return ""
}

// categoriesOf returns the categories of text columns that a model stores from its training.
// The result also has the number of training rows, which is 0 if it is unknown.
func categoriesOf(m model.Model) model.Categories {
	known := model.Categories{Values: map[string][]string{}, Codes: map[string][]int32{}}
	for _, s := range stagesOf(m) {
		k, ok := s.(model.Categorizer)
		if !ok {
			continue
		}
		of := k.Categories()
		known.Rows = cmp.Or(known.Rows, of.Rows)
		for column, values := range of.Values {
			known.Values[sourceOf(m, column)] = values
		}
		for column, codes := range of.Codes {
			known.Codes[sourceOf(m, column)] = codes
		}
	}
	return known
}

// fills returns the columns in which a stage replaces missing values, and the names of the
// resulting columns. Column from[i] becomes made[i].
func fills(stage model.Model) (from, made []string) {
	if d, ok := stage.(model.Deriver); ok {
		from, made = d.Derives()
		if missing, _ := treatmentBy(stage, from[0]); missing == model.FilledIn {
			return from, made
		}
	}
	return nil, nil
}

// sourceOf returns the name of the column of rows from which column comes. The stages have at
// most replaced missing values in that column.
func sourceOf(m model.Model, column string) string {
	for _, s := range slices.Backward(stagesOf(m)) {
		from, made := fills(s)
		if i := slices.Index(made, column); i >= 0 {
			column = from[i]
		}
	}
	return column
}

// aliasesOf returns the name of a column of rows and the names that the stages give to it after
// replacing missing values.
func aliasesOf(m model.Model, column string) []string {
	all := []string{column}
	for _, s := range stagesOf(m) {
		from, made := fills(s)
		for i, c := range from {
			if slices.Contains(all, c) {
				all = append(all, made[i])
			}
		}
	}
	return all
}

// categoryNotes returns notes about text columns in which nearly every row has a different
// value, such as names, or numbers in an unusual format.
func categoryNotes(m model.Model) []string {
	if m == nil {
		return nil
	}
	known := categoriesOf(m)
	var notes []string
	for _, in := range m.Inputs() {
		n := int64(len(known.Values[in.Column]))
		if in.Type == "utf8" && n >= 10 && (2*n > known.Rows || n > 1000) {
			notes = append(notes, fmt.Sprintf("column %q is text with %d different values in %d rows, each of which is a category: numbers must be written as 1234.5 is; "+
				"leave out a column that names rows by giving --features", in.Column, n, known.Rows))
		}
	}
	return notes
}
