package evaluate

import (
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// MulticlassOptions are the options of Multiclass. LabelCol is required, and at least one of
// PredictionCol and ProbabilityCols. The zero values of the other fields are their defaults.
type MulticlassOptions struct {
	// LabelCol names the column of the true labels, of any scalar type.
	LabelCol string
	// PredictionCol names the column of the predicted labels. If the labels are numbers, the
	// predictions must be numbers too; otherwise both columns must have the same type. If
	// PredictionCol is empty, the prediction is the class with the largest probability; of
	// several such classes, it is the first in Classes.
	PredictionCol string
	// ProbabilityCols names the columns of the probabilities: one column for each of Classes,
	// or a single vector column with all of them. They are needed for LogLoss and TopKAccuracy.
	ProbabilityCols []string
	// Classes are the texts of the labels to which the probabilities belong, in the same order.
	// A label that is not listed has probability 0.
	Classes []string
	// WeightCol names a column of row weights, numbers of 0 or more. Empty means that every row
	// has the weight 1. A row of weight 2 counts as two rows.
	WeightCol string
	// TopK is the k of TopKAccuracy; 0 means that TopKAccuracy is not computed.
	TopK int
	// Skip leaves out rows that hold a null, a NaN or an infinity, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool
}

// Validate returns what is wrong with the options, without checking that the columns exist.
func (o MulticlassOptions) Validate() error {
	switch {
	case o.TopK < 0:
		return invalid("TopK is %d: want at least 1, or 0 for none", o.TopK)
	case o.TopK > 0 && len(o.Classes) == 0:
		return invalid("TopK is set, but there are no Classes of probabilities")
	}
	for i, c := range o.Classes {
		if slices.Index(o.Classes, c) != i {
			return invalid("Classes has %q twice", c)
		}
	}
	return nil
}

// validateColumns returns what is wrong with the names of the columns.
func (o MulticlassOptions) validateColumns() error {
	switch {
	case o.PredictionCol == "" && len(o.ProbabilityCols) == 0:
		return invalid("PredictionCol and ProbabilityCols are empty: name one of them")
	case len(o.ProbabilityCols) > 0 && len(o.Classes) == 0:
		return invalid("ProbabilityCols are set, but Classes are not: name the label of each probability")
	case len(o.ProbabilityCols) == 0 && len(o.Classes) > 0:
		return invalid("Classes are set, but ProbabilityCols are not")
	case len(o.ProbabilityCols) > 1 && len(o.ProbabilityCols) != len(o.Classes):
		return fmt.Errorf("there are %d ProbabilityCols for %d Classes", len(o.ProbabilityCols), len(o.Classes))
	}
	return o.Validate()
}

// MulticlassReport has measures of predicted classes. A measure that is not defined is NaN, and
// Undefined gives the reason, except where the options did not request the measure.
type MulticlassReport struct {
	Weight   float64 `json:"weight"` // the weight of all rows
	Accuracy float64 `json:"accuracy"`
	// Macro averages give every class the same weight. Weighted averages use the weights of the
	// rows of each class. Micro averages give every row its weight. The precision of a class
	// that is never predicted counts as 0, and so does the recall of a class that never occurs.
	PrecisionMacro    float64 `json:"precision_macro"`
	RecallMacro       float64 `json:"recall_macro"`
	F1Macro           float64 `json:"f1_macro"`
	PrecisionMicro    float64 `json:"precision_micro"`
	RecallMicro       float64 `json:"recall_micro"`
	F1Micro           float64 `json:"f1_micro"`
	PrecisionWeighted float64 `json:"precision_weighted"`
	RecallWeighted    float64 `json:"recall_weighted"`
	F1Weighted        float64 `json:"f1_weighted"`
	// Kappa is Cohen's kappa: agreement beyond chance.
	Kappa float64 `json:"kappa"`
	// LogLoss is the mean of -log(p), where p is the probability given to the true class.
	// Probabilities are clipped to [2^-52, 1-2^-52].
	LogLoss float64 `json:"log_loss"`
	// TopKAccuracy is the fraction of the rows whose true class is among the TopK classes with
	// the largest probabilities. Among equal probabilities, the class that is earlier in
	// Classes comes first.
	TopKAccuracy float64 `json:"top_k_accuracy"`
	// Classes are all labels that occur or are predicted. Numbers are ordered by value, text by
	// bytes. PerClass and Confusion have the same order. Confusion[t][p] is the weight of the
	// rows of class t for which p is predicted.
	Classes   []string      `json:"classes"`
	PerClass  []ClassReport `json:"per_class"`
	Confusion [][]float64   `json:"confusion"`
	Undefined []string      `json:"undefined"`
}

// ClassReport measures the predictions of one class.
type ClassReport struct {
	Class     string  `json:"class"`
	Weight    float64 `json:"weight"` // weight of the rows of the class
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// MarshalJSON implements json.Marshaler; a NaN becomes null.
func (r MulticlassReport) MarshalJSON() ([]byte, error) { return encodeReport(&r) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *MulticlassReport) UnmarshalJSON(data []byte) error { return decodeReport(data, r) }

// String returns tables with the numbers of the report, the numbers of each class, and the
// confusion matrix.
func (r MulticlassReport) String() string {
	var t text
	t.numbersOf(r)
	t.undefined(r.Undefined)
	list := [][]string{{"class", "weight", "precision", "recall", "f1"}}
	for _, c := range r.PerClass {
		list = append(list, []string{c.Class, shortNumber(c.Weight), shortNumber(c.Precision), shortNumber(c.Recall), shortNumber(c.F1)})
	}
	t.grid(list)
	matrix := [][]string{append([]string{"truth \\ predicted"}, r.Classes...)}
	for i, row := range r.Confusion {
		line := []string{r.Classes[i]}
		for _, w := range row {
			line = append(line, shortNumber(w))
		}
		matrix = append(matrix, line)
	}
	t.grid(matrix)
	return t.String()
}

// ConfusionCell is a cell of a confusion matrix as a row of a dataset.
type ConfusionCell struct {
	Truth     string  `column:"truth"`
	Predicted string  `column:"predicted"`
	Weight    float64 `column:"weight"`
}

// Confusion returns the confusion matrix in a report of Multiclass as a dataset with one row
// for each cell, ordered by truth and then by prediction. Cells of weight 0 are included.
func Confusion(report *engine.Dataset) *engine.Dataset {
	return partsOf("evaluate.Confusion", report, func(r *MulticlassReport) []ConfusionCell {
		var cells []ConfusionCell
		for t, row := range r.Confusion {
			for p, w := range row {
				cells = append(cells, ConfusionCell{r.Classes[t], r.Classes[p], w})
			}
		}
		return cells
	})
}

// multiState has the sums over the rows.
type multiState struct {
	Counts        contingency
	LogLoss       sum
	Top           sum
	NoProbability bool

	place        []int32 // number of a label -> position in o.Classes; -1 if the label is not listed there
	truth, given []int32
	row          []float64
	best         [][]byte
}

func (s *multiState) merge(o *multiState) {
	s.Counts.merge(&o.Counts)
	s.LogLoss.merge(&o.LogLoss)
	s.Top.merge(&o.Top)
	s.NoProbability = s.NoProbability || o.NoProbability
}

// Multiclass measures predictions of classes. It returns a dataset of one row with a
// MulticlassReport; see ReportOf. The function Confusion turns the report's matrix into rows.
func Multiclass(rows *engine.Dataset, o MulticlassOptions) *engine.Dataset {
	const op = "evaluate.Multiclass"
	in := newTable(o.Skip)
	label, weight := in.readLabels("LabelCol", o.LabelCol), in.readWeight(o.WeightCol)
	predicted := -1
	if o.PredictionCol != "" {
		predicted = in.readLabels("PredictionCol", o.PredictionCol)
	}
	columns, vector := o.readProbabilities(&in, rows)
	if refused, ok := begin(op, rows, o.validateColumns(), &in); !ok {
		return refused
	}
	byValue := ordered(in.Columns[label].As.Type)
	if predicted >= 0 {
		if l, p := in.Columns[label].As.Type, in.Columns[predicted].As.Type; byValue != ordered(p) || !byValue && l.ID() != p.ID() {
			return model.Refuse(rows.Builder(), op, fmt.Errorf("column %q is %s but column %q is %s: labels and predictions are of one type", o.LabelCol, batch.TypeName(l), o.PredictionCol, batch.TypeName(p)))
		}
	}
	states := foldSpec[multiState]{
		op: "MulticlassCounts",
		in: in,
		add: func(s *multiState, rec arrow.Record) error {
			s.truth = s.Counts.Classes.column(rec.Column(label), s.truth)
			var w []float64
			if weight >= 0 {
				w = numbers(rec.Column(weight), nil)
			}
			probability, err := o.probabilities(s, rec, columns, vector)
			if err != nil {
				return err
			}
			if predicted >= 0 {
				s.given = s.Counts.Classes.column(rec.Column(predicted), s.given)
			} else {
				s.given = o.argmax(s, probability, s.given)
			}
			return o.add(s, s.truth, s.given, probability, w)
		},
	}.fold(rows)
	return reporting[multiState, MulticlassReport]{
		op: "Multiclass", merge: (*multiState).merge,
		report: func(s *multiState) (*MulticlassReport, error) { return o.report(s, byValue) },
	}.finish(states)
}

// readProbabilities adds the columns of the probabilities: number columns, or one vector
// column.
func (o MulticlassOptions) readProbabilities(in *table, rows *engine.Dataset) (columns []int, vector bool) {
	if len(o.ProbabilityCols) == 1 {
		at, vector := in.readNumbers("ProbabilityCols", o.ProbabilityCols[0], rows)
		return []int{at}, vector
	}
	for _, name := range o.ProbabilityCols {
		columns = append(columns, in.readNumber("ProbabilityCols", name))
	}
	return columns, false
}

// probabilities returns the probabilities of a batch, row by row. It returns nil if
// ProbabilityCols is empty.
func (o MulticlassOptions) probabilities(s *multiState, rec arrow.Record, columns []int, vector bool) ([]float64, error) {
	if columns == nil {
		return nil, nil
	}
	n, k := int(rec.NumRows()), len(o.Classes)
	s.row = kernel.Sized(s.row, n*k)
	if vector {
		v, err := openVectors(rec.Column(columns[0]), k)
		if err != nil {
			return nil, err
		}
		for i := range n {
			row := v.at(i)
			if len(row) != k {
				return nil, &badRow{i, fmt.Errorf("column %q has %d components, but there are %d Classes", o.ProbabilityCols[0], len(row), k)}
			}
			copy(s.row[i*k:], row)
		}
		return s.row, nil
	}
	for j, c := range columns {
		for i, v := range numbers(rec.Column(c), nil) {
			s.row[i*k+j] = v
		}
	}
	return s.row, nil
}

// argmax returns, for each row, the number of the label with the largest probability.
func (o MulticlassOptions) argmax(s *multiState, probability []float64, dst []int32) []int32 {
	if s.best == nil {
		for _, c := range o.Classes {
			s.best = append(s.best, []byte(c))
		}
	}
	dst = dst[:0]
	for k := len(o.Classes); len(probability) > 0; probability = probability[k:] {
		dst = append(dst, s.Counts.Classes.id(s.best[kernel.Argmax(probability[:k])]))
	}
	return dst
}

// add adds rows. probability has len(Classes) values for each row, or is empty.
func (o MulticlassOptions) add(s *multiState, truth, given []int32, probability, w []float64) error {
	if err := s.Counts.add(truth, given, w); err != nil || probability == nil {
		return err
	}
	for i := len(s.place); i < len(s.Counts.Classes.Texts); i++ {
		s.place = append(s.place, int32(slices.Index(o.Classes, s.Counts.Classes.Texts[i])))
	}
	k := len(o.Classes)
	for i, t := range truth {
		row, at, own := probability[i*k:(i+1)*k], s.place[t], 0.0
		if at >= 0 {
			own = row[at]
		}
		before := 0
		for j, p := range row {
			s.NoProbability = s.NoProbability || p < 0 || p > 1
			if p > own || p == own && int32(j) < at {
				before++
			}
		}
		weight := weightOf(w, i)
		if at >= 0 && before < o.TopK {
			s.Top.add(weight)
		}
		const least = 0x1p-52
		s.LogLoss.add(float64(weight * -kernel.Log(min(max(own, least), 1-least))))
	}
	return nil
}

// MeasureMulticlass does what Multiclass does, for slices. truth and predicted have the labels.
// probability has a slice of len(o.Classes) values for each row. weight may be nil, and so may
// one of predicted and probability. The options that name columns are ignored.
func MeasureMulticlass[L Label](truth, predicted []L, probability [][]float64, weight []float64, o MulticlassOptions) (*MulticlassReport, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := checkSlices(len(truth), nil, weight); err != nil {
		return nil, err
	}
	if predicted == nil && probability == nil && len(truth) > 0 {
		return nil, fmt.Errorf("there are neither predictions nor probabilities")
	}
	if predicted != nil && len(predicted) != len(truth) {
		return nil, fmt.Errorf("there are %d predictions for %d labels", len(predicted), len(truth))
	}
	var flat []float64
	if probability != nil {
		flat = make([]float64, 0, len(truth)*len(o.Classes))
		if len(probability) != len(truth) {
			return nil, fmt.Errorf("there are %d rows of probabilities for %d labels", len(probability), len(truth))
		}
		for i, row := range probability {
			if len(row) != len(o.Classes) || len(row) == 0 {
				return nil, fmt.Errorf("row %d has %d probabilities, but there are %d Classes", i, len(row), len(o.Classes))
			}
			flat = append(flat, row...)
		}
		if err := checkSlices(len(flat), map[string][]float64{"probability": flat}, nil); err != nil {
			return nil, err
		}
	}
	var s multiState
	t, err := labelIDs(&s.Counts.Classes, truth, "label")
	if err != nil {
		return nil, err
	}
	var p []int32
	if predicted == nil {
		p = o.argmax(&s, flat, nil)
	} else if p, err = labelIDs(&s.Counts.Classes, predicted, "prediction"); err != nil {
		return nil, err
	}
	if err := o.add(&s, t, p, flat, weight); err != nil {
		return nil, err
	}
	return o.report(&s, isNumberLabel[L]())
}

// report returns the report for a state.
func (o MulticlassOptions) report(s *multiState, byValue bool) (*MulticlassReport, error) {
	if err := s.Counts.check(); err != nil {
		return nil, err
	}
	c := s.Counts.counts(byValue)
	r := &MulticlassReport{Weight: c.total, Classes: c.labels, LogLoss: math.NaN(), TopKAccuracy: math.NaN()}
	var u undefined
	if c.total == 0 {
		u.none("all", "there are no rows of positive weight")
	}
	var hits sum
	right := make([]float64, len(c.labels))
	for range c.labels {
		r.Confusion = append(r.Confusion, make([]float64, len(c.labels)))
	}
	for _, cell := range c.cells {
		r.Confusion[cell.truth][cell.given] = cell.weight
		if cell.truth == cell.given {
			right[cell.truth] = cell.weight
			hits.add(cell.weight)
		}
	}
	r.Accuracy = hits.value() / c.total
	r.PrecisionMicro, r.RecallMicro, r.F1Micro = r.Accuracy, r.Accuracy, r.Accuracy
	r.averages(c, right)
	var chance sum
	for i := range c.labels {
		chance.add(float64((c.truth[i] / c.total) * (c.given[i] / c.total)))
	}
	if expected := chance.value(); expected < 1 {
		r.Kappa = (r.Accuracy - expected) / (1 - expected)
	} else if r.Kappa = math.NaN(); c.total > 0 {
		r.Kappa = u.none("kappa", "labels and predictions are all of one class")
	}
	if c.total == 0 {
		r.Kappa = math.NaN()
	}
	if len(o.Classes) > 0 {
		r.LogLoss = s.LogLoss.value() / c.total
		if s.NoProbability {
			r.LogLoss = u.none("log_loss", "a probability is outside 0 to 1")
		}
		if o.TopK > 0 {
			r.TopKAccuracy = s.Top.value() / c.total
		}
	}
	asked := []string{
		"accuracy", "precision_macro", "recall_macro", "f1_macro", "precision_micro", "recall_micro", "f1_micro",
		"precision_weighted", "recall_weighted", "f1_weighted", "kappa",
	}
	if len(o.Classes) > 0 {
		asked = append(asked, "log_loss")
		if o.TopK > 0 {
			asked = append(asked, "top_k_accuracy")
		}
	}
	u.apply(r, c.total, asked...)
	r.Undefined = u
	return r, nil
}

// averages computes the measures of each class and their averages.
func (r *MulticlassReport) averages(c *counts, right []float64) {
	var macro, weighted [3]sum
	for i, name := range c.labels {
		one := ClassReport{Class: name, Weight: c.truth[i]}
		if right[i] > 0 {
			one.Precision, one.Recall = right[i]/c.given[i], right[i]/c.truth[i]
			one.F1 = f1(right[i], c.given[i], c.truth[i])
		}
		r.PerClass = append(r.PerClass, one)
		for j, v := range []float64{one.Precision, one.Recall, one.F1} {
			macro[j].add(v)
			weighted[j].add(float64(v * c.truth[i]))
		}
	}
	k := float64(len(c.labels))
	if c.total == 0 {
		k = 0
	}
	r.PrecisionMacro, r.RecallMacro, r.F1Macro = macro[0].value()/k, macro[1].value()/k, macro[2].value()/k
	r.PrecisionWeighted, r.RecallWeighted, r.F1Weighted = weighted[0].value()/c.total, weighted[1].value()/c.total, weighted[2].value()/c.total
}
