package evaluate

import (
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// BinaryOptions are the options of Binary. LabelCol and ScoreCol are required. The zero values
// of the other fields are their defaults.
type BinaryOptions struct {
	// LabelCol names the column of the true labels, of any scalar type.
	LabelCol string
	// ScoreCol names the column of scores. A row with a larger score is more likely to be
	// positive. Scores are probabilities unless Margins is set. The column has numbers, or
	// vectors with a number for each class, as classifiers write them.
	ScoreCol string
	// Component is the position of the score in a vector, counted from 1. 0 means the last
	// component, which classifiers use for the class 1 or true.
	Component int
	// WeightCol names a column of row weights, numbers of 0 or more. Empty means that every row
	// has the weight 1. A row of weight 2 counts as two rows.
	WeightCol string
	// Positive is the text of the positive label; all other labels are negative. If it is
	// empty, the positive label is true in a bool column, and 1 in a number column whose only
	// labels are 1 and 0, or 1 and -1. For a text column Positive is required.
	Positive string
	// Margins says that scores are not probabilities. Then LogLoss and Brier are not
	// computed.
	Margins bool
	// Threshold is the score above which a row is predicted to be positive. A row with exactly
	// this score is predicted to be negative, as by the classifiers of this module. 0 means
	// 0.5, or with Margins 0.
	Threshold float64
	// CurvePoints bounds the number of points of the curve; 0 means 200.
	CurvePoints int
	// Skip leaves out rows that hold a null, a NaN or an infinity, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool
}

// Validate returns what is wrong with the options, without checking that the columns exist.
func (o BinaryOptions) Validate() error {
	switch {
	case math.IsNaN(o.Threshold) || math.IsInf(o.Threshold, 0):
		return invalid("Threshold is %v: want a number", o.Threshold)
	case o.Component < 0:
		return invalid("Component is %d: want at least 1, or 0 for the last", o.Component)
	case o.CurvePoints < 0 || o.CurvePoints == 1 || o.CurvePoints > 1_000_000:
		return invalid("CurvePoints is %d: want 2 to 1000000, or 0 for 200", o.CurvePoints)
	}
	return nil
}

func (o BinaryOptions) withDefaults() BinaryOptions {
	if o.Threshold == 0 && !o.Margins {
		o.Threshold = 0.5
	}
	if o.CurvePoints == 0 {
		o.CurvePoints = 200
	}
	return o
}

// BinaryReport has measures of the scores of two classes. A measure that is not defined is NaN,
// and Undefined gives the reason.
type BinaryReport struct {
	// Weight is the weight of all rows; without a weight column, it is their number. Positive
	// and Negative are the weights of the two classes.
	Weight   float64 `json:"weight"`
	Positive float64 `json:"positive"`
	Negative float64 `json:"negative"`
	// AUC is the area under the ROC curve: the share of the pairs of a positive and a negative
	// row in which the positive row has the larger score. A pair counts with the product of the
	// weights of its rows, and half of that if the two scores are equal.
	AUC float64 `json:"auc"`
	// PRAUC is the average precision: the sum, over the distinct scores, of the precision times
	// the increase of the recall. There is no interpolation.
	PRAUC float64 `json:"pr_auc"`
	// LogLoss is the mean of -log(p), where p is the probability given to the true class.
	// Scores are clipped to [2^-52, 1-2^-52].
	LogLoss float64 `json:"log_loss"`
	// Brier is the mean squared difference of the score from 1 for positive rows, and from 0
	// for negative rows.
	Brier float64 `json:"brier"`
	// KS is the Kolmogorov–Smirnov statistic: the largest absolute difference of the true
	// positive rate and the false positive rate. KSScore is the score at which the difference
	// is largest; if there are several such scores, it is the largest of them.
	KS      float64 `json:"ks"`
	KSScore float64 `json:"ks_score"`
	// Threshold is the threshold for which the fields from TruePositive to MCC are computed: a
	// row with a score above the threshold is predicted to be positive.
	Threshold     float64 `json:"threshold"`
	TruePositive  float64 `json:"true_positive"`
	FalsePositive float64 `json:"false_positive"`
	TrueNegative  float64 `json:"true_negative"`
	FalseNegative float64 `json:"false_negative"`
	Accuracy      float64 `json:"accuracy"`
	Precision     float64 `json:"precision"`
	Recall        float64 `json:"recall"`
	Specificity   float64 `json:"specificity"`
	F1            float64 `json:"f1"`
	// MCC is the Matthews correlation coefficient. It is 0 where all predictions, or all
	// labels, are of one class.
	MCC float64 `json:"mcc"`
	// Curve has points of the ROC, precision-recall, lift and gain curves, in descending order
	// of scores. At the first point no row is predicted to be positive, and at the last point
	// all rows are. The other points are corners of the exact curves, about evenly spaced.
	Curve     []CurvePoint `json:"curve"`
	Undefined []string     `json:"undefined"`
}

// CurvePoint has the rates that result if all rows with a score of at least Score are predicted
// to be positive.
type CurvePoint struct {
	Score float64 `json:"score" column:"score"` // +Inf at the first point
	// Share is the fraction of all rows that are predicted to be positive.
	Share float64 `json:"share" column:"share"`
	// TPR is the fraction of the positive rows that are predicted to be positive, which is also
	// called recall or gain. FPR is the fraction of the negative rows that are predicted to be
	// positive.
	TPR float64 `json:"tpr" column:"tpr"`
	FPR float64 `json:"fpr" column:"fpr"`
	// Precision is the fraction of positive rows among the rows predicted to be positive; at
	// the first point it is 1. Lift is Precision divided by the fraction of positive rows among
	// all rows.
	Precision float64 `json:"precision" column:"precision"`
	Lift      float64 `json:"lift" column:"lift"`
}

// MarshalJSON implements json.Marshaler; a NaN becomes null.
func (r BinaryReport) MarshalJSON() ([]byte, error) { return encodeReport(&r) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *BinaryReport) UnmarshalJSON(data []byte) error { return decodeReport(data, r) }

// String returns the numbers as a table.
func (r BinaryReport) String() string {
	var t text
	t.numbersOf(r)
	t.undefined(r.Undefined)
	return t.String()
}

// Binary measures the scores of rows of two classes. It returns a dataset of one row with a
// BinaryReport; see ReportOf. The function Curve turns the report's curve into rows. Rows are
// grouped by score and sorted across the shards, so their number is not limited by memory.
func Binary(rows *engine.Dataset, o BinaryOptions) *engine.Dataset {
	const op = "evaluate.Binary"
	in := newTable(o.Skip)
	label := in.readLabels("LabelCol", o.LabelCol)
	score, vector := in.readNumbers("ScoreCol", o.ScoreCol, rows)
	weight := in.readWeight(o.WeightCol)
	if refused, ok := begin(op, rows, o.Validate(), &in); !ok {
		return refused
	}
	kind := in.Columns[label].As.Type
	if o.Positive == "" && !ordered(kind) && kind.ID() != arrow.BOOL {
		return model.Refuse(rows.Builder(), op, fmt.Errorf("column %q is %s: set Positive to the label that is the positive one", o.LabelCol, batch.TypeName(kind)))
	}
	o = o.withDefaults()
	grouped := grouper(rows, "BinaryScores", in, func(dst []weighted, rec arrow.Record) ([]weighted, error) {
		truth := newPositive(o.Positive)
		printer := batch.NewPrinter(rec.Column(label))
		scores, err := o.scores(rec.Column(score), vector)
		if err != nil {
			return nil, err
		}
		var w []float64
		if weight >= 0 {
			w = numbers(rec.Column(weight), nil)
		}
		for i, s := range scores {
			truth.text = printer.Append(truth.text[:0], i)
			positive, ok := truth.of(truth.text)
			if !ok {
				return nil, &badRow{i, fmt.Errorf("column %q: %s", o.LabelCol, truth.problem())}
			}
			dst = append(dst, scoreOf(s, positive, weightOf(w, i)))
		}
		return dst, nil
	})
	states := sweepGroups(grouped, "BinarySweep", true, nil, o.visit)
	return reporting[binaryState, BinaryReport]{
		op:     "Binary",
		merge:  (*binaryState).merge,
		report: o.report,
	}.finish(states)
}

// scores returns the scores of a column. vector says whether it is a vector column.
func (o BinaryOptions) scores(column arrow.Array, vector bool) ([]float64, error) {
	if !vector {
		return numbers(column, nil), nil
	}
	v, err := openVectors(column, 0)
	if err != nil {
		return nil, err
	}
	list := make([]float64, column.Len())
	for i := range list {
		row := v.at(i)
		at := o.Component - 1
		if at < 0 {
			at = len(row) - 1
		}
		if at < 0 || at >= len(row) {
			return nil, &badRow{i, fmt.Errorf("column %q has %d components, Component is %d", o.ScoreCol, len(row), o.Component)}
		}
		list[i] = row[at]
	}
	return list, nil
}

// MeasureBinary does what Binary does, for slices. truth has the labels and score the scores;
// weight may be nil. The options that name columns are ignored.
func MeasureBinary[L Label](truth []L, score, weight []float64, o BinaryOptions) (*BinaryReport, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := checkSlices(len(truth), map[string][]float64{"score": score}, weight); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	p := newPositive(o.Positive)
	values := make([]weighted, len(truth))
	for i, l := range truth {
		text, ok := appendLabel(p.text[:0], l)
		p.text = text
		positive := false
		if ok {
			positive, ok = p.of(text)
		}
		if !ok {
			return nil, fmt.Errorf("label %d: %s", i, p.problem())
		}
		values[i] = scoreOf(score[i], positive, weightOf(weight, i))
	}
	var s binaryState
	sweepSlice(values, true, func(t *step) { o.visit(&s, t) })
	return o.report(&s)
}

// Curve returns the points of the curve in a report of Binary as a dataset.
func Curve(report *engine.Dataset) *engine.Dataset {
	return partsOf("evaluate.Curve", report, func(r *BinaryReport) []CurvePoint { return r.Curve })
}

// scoreOf returns the value that groups sorts for a row with the given score, class and weight
// w.
func scoreOf(score float64, positive bool, w float64) weighted {
	if positive {
		return weighted{score + 0, w, 0} // adding 0 turns -0 into +0
	}
	return weighted{score + 0, 0, w}
}

// positive decides by the text of a label whether the label is positive or negative.
type positive struct {
	label string // empty if the default of BinaryOptions.Positive applies
	text  []byte
}

func newPositive(label string) *positive { return &positive{label: label} }

func (p *positive) of(text []byte) (positive, ok bool) {
	if p.label != "" {
		return string(text) == p.label, true
	}
	switch string(text) {
	case "1", "true":
		return true, true
	case "0", "-0", "-1", "false":
		return false, true
	}
	return false, false
}

func (p *positive) problem() string {
	return fmt.Sprintf("the label is %s: want 1, and 0 or -1; or set Positive to the label that is the positive one", p.text)
}

// binaryState has the sums of a sweep over the scores.
type binaryState struct {
	Total                         totals
	Pairs, Steps, LogLoss, Square sum
	KS, KSScore                   float64
	TP, FP                        float64
	NoProbability                 bool
	Points                        []CurvePoint
	Swept                         bool
}

func (s *binaryState) merge(o *binaryState) {
	s.Pairs.merge(&o.Pairs)
	s.Steps.merge(&o.Steps)
	s.LogLoss.merge(&o.LogLoss)
	s.Square.merge(&o.Square)
	if o.Swept && (!s.Swept || o.KS > s.KS) { // states are merged in descending order of scores
		s.KS, s.KSScore = o.KS, o.KSScore
	}
	s.TP, s.FP = max(s.TP, o.TP), max(s.FP, o.FP)
	s.NoProbability = s.NoProbability || o.NoProbability
	s.Points = append(s.Points, o.Points...)
	if o.Swept {
		s.Total, s.Swept = o.Total, true
	}
}

// visit adds one distinct score to the state. In t, a is the weight of the positive rows with
// that score, and b the weight of the negative rows with that score.
func (o BinaryOptions) visit(s *binaryState, t *step) {
	if !s.Swept {
		s.Swept, s.Total, s.KSScore = true, *t.total, t.value
	}
	p, n := t.total.a, t.total.b
	power := inUnits(max(p, n))
	s.Pairs.add(float64(scaled(t.b, power) * (scaled(t.beforeA, power) + float64(scaled(t.a, power)/2))))
	if t.afterA+t.afterB > 0 {
		s.Steps.add(float64(t.a * (t.afterA / (t.afterA + t.afterB))))
	}
	if t.value > o.Threshold {
		s.TP, s.FP = t.afterA, t.afterB
	}
	if p > 0 && n > 0 {
		if ks := math.Abs(t.afterA/p - t.afterB/n); ks > s.KS {
			s.KS, s.KSScore = ks, t.value
		}
	}
	if half := float64(o.CurvePoints / 2); bucketOf(half, t.beforeA, p) != bucketOf(half, t.afterA, p) || bucketOf(half, t.beforeB, n) != bucketOf(half, t.afterB, n) {
		s.Points = append(s.Points, o.point(t.value, t.afterA, t.afterB, p, n))
	}
	if o.Margins || s.NoProbability || t.value < 0 || t.value > 1 {
		s.NoProbability = true
		return
	}
	const least = 0x1p-52
	cut := min(max(t.value, least), 1-least)
	if t.a > 0 {
		s.LogLoss.add(float64(t.a * -kernel.Log(cut)))
		s.Square.add(float64(t.a * float64((1-t.value)*(1-t.value))))
	}
	if t.b > 0 {
		s.LogLoss.add(float64(t.b * -kernel.Log1p(-cut)))
		s.Square.add(float64(t.b * float64(t.value*t.value)))
	}
}

// bucketOf returns the index of the bucket in which the cumulative weight lies, if the range
// from 0 to total is divided into n equal buckets.
func bucketOf(n, weight, total float64) float64 {
	if total == 0 {
		return 0
	}
	return math.Floor(n * (weight / total))
}

// point returns the point of the curve at a score. a and b are the weights of the positive and
// of the negative rows with at least that score; p and n are the weights of all positive and of
// all negative rows.
func (o BinaryOptions) point(score, a, b, p, n float64) CurvePoint {
	point := CurvePoint{Score: score, Share: (a + b) / (p + n), TPR: a / p, FPR: b / n, Precision: 1}
	if a+b > 0 {
		point.Precision = a / (a + b)
	}
	point.Lift = math.NaN() // if no row is positive
	if share := p / (p + n); share > 0 {
		point.Lift = point.Precision / share
	}
	return point
}

// report returns the report for a state.
func (o BinaryOptions) report(s *binaryState) (*BinaryReport, error) {
	s.Total.round()
	p, n := s.Total.a, s.Total.b
	r := &BinaryReport{
		Weight: p + n, Positive: p, Negative: n, Threshold: o.Threshold,
		TruePositive: s.TP, FalsePositive: s.FP, TrueNegative: n - s.FP, FalseNegative: p - s.TP,
	}
	var u undefined
	switch {
	case p+n == 0:
		r.AUC, r.PRAUC, r.KS, r.KSScore = math.NaN(), math.NaN(), math.NaN(), math.NaN()
		u.none("all", "there are no rows of positive weight")
	case p == 0 || n == 0:
		class := "positive"
		if p == 0 {
			class = "negative"
		}
		r.AUC = u.none("auc", "every row is "+class)
		r.KS = u.none("ks", "every row is "+class)
		r.KSScore = math.NaN()
		if r.PRAUC = s.Steps.value() / p; p == 0 {
			r.PRAUC = u.none("pr_auc", "no row is positive")
		}
	default:
		power := inUnits(max(p, n))
		positive, negative := scaled(p, power), scaled(n, power)
		r.AUC = s.Pairs.value() / positive / negative
		if product := positive * negative; product > 0 {
			r.AUC = s.Pairs.value() / product
		}
		r.PRAUC = s.Steps.value() / p
		r.KS, r.KSScore = s.KS, s.KSScore
	}
	r.LogLoss, r.Brier = s.LogLoss.value()/(p+n), s.Square.value()/(p+n)
	if s.NoProbability && p+n > 0 {
		why := "a score is outside 0 to 1"
		if o.Margins {
			why = "scores are margins"
		}
		r.LogLoss, r.Brier = u.none("log_loss", why), u.none("brier", why)
	}
	r.confusion(&u)
	if p+n > 0 {
		r.Curve = append([]CurvePoint{o.point(math.Inf(1), 0, 0, p, n)}, s.Points...)
	}
	u.apply(r, p+n, "auc", "pr_auc", "log_loss", "brier", "ks", "accuracy", "precision", "recall", "specificity", "f1", "mcc")
	r.Undefined = u
	return r, nil
}

// confusion computes the measures that depend only on the weights of true and false positives
// and negatives at the threshold.
func (r *BinaryReport) confusion(u *undefined) {
	tp, fp, tn, fn := r.TruePositive, r.FalsePositive, r.TrueNegative, r.FalseNegative
	if r.Weight == 0 {
		u = new(undefined) // the reason is recorded already, so a second one is discarded
	}
	r.Accuracy = u.ratio("accuracy", tp+tn, r.Weight, "there are no rows")
	r.Precision = u.ratio("precision", tp, tp+fp, "no row is predicted to be positive")
	r.Recall = u.ratio("recall", tp, r.Positive, "no row is positive")
	r.Specificity = u.ratio("specificity", tn, r.Negative, "no row is negative")
	if r.F1 = f1(tp, tp+fp, tp+fn); (tp+fp)+(tp+fn) == 0 {
		r.F1 = u.none("f1", "no row is positive or predicted to be")
	}
	r.MCC = matthews(tp, fp, tn, fn)
	if r.Weight == 0 {
		r.MCC = math.NaN()
	}
}

// matthews returns the Matthews correlation coefficient from the weights of true positives,
// false positives, true negatives and false negatives.
func matthews(tp, fp, tn, fn float64) float64 {
	power := inUnits(max(tp, fp, tn, fn))
	tp, fp, tn, fn = scaled(tp, power), scaled(fp, power), scaled(tn, power), scaled(fn, power)
	root := math.Sqrt(tp+fp) * math.Sqrt(tp+fn) * math.Sqrt(tn+fp) * math.Sqrt(tn+fn)
	if root == 0 {
		return 0
	}
	return (float64(tp*tn) - float64(fp*fn)) / root
}
