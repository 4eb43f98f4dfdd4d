package evaluate

import (
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
)

// RegressionOptions are the options of Regression. LabelCol and PredictionCol are required. The
// zero values of the other fields are their defaults.
type RegressionOptions struct {
	// LabelCol and PredictionCol name number columns.
	LabelCol      string
	PredictionCol string
	// WeightCol names a column of row weights, numbers of 0 or more. Empty means that every row
	// has the weight 1. A row of weight 2 counts as two rows.
	WeightCol string
	// Quantile is the parameter of the pinball loss, in (0, 1): the factor of the error where
	// the label is above the prediction. 0 means 0.5.
	Quantile float64
	// Deviance selects the mean deviance to compute. The zero value computes none.
	Deviance Deviance
	// Power is the exponent of the variance function of TweedieDeviance: at most 0, or at least
	// 1.
	Power float64
	// NoMedian skips MedianAE, D2Absolute and D2Pinball, which saves sorting the rows twice.
	NoMedian bool
	// Skip leaves out rows that hold a null, a NaN or an infinity, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool
}

// Validate returns what is wrong with the options, without checking that the columns exist.
func (o RegressionOptions) Validate() error {
	switch {
	case !(o.Quantile >= 0 && o.Quantile < 1):
		return invalid("Quantile is %v: want more than 0 and less than 1, or 0 for 0.5", o.Quantile)
	case o.Deviance < NoDeviance || o.Deviance > TweedieDeviance:
		return fmt.Errorf("%v is not one of the package's constants", o.Deviance)
	case o.Power != 0 && o.Deviance != TweedieDeviance:
		return invalid("Power is %v but Deviance is %v: only that of Tweedie has a power", o.Power, o.Deviance)
	case math.IsNaN(o.Power) || math.IsInf(o.Power, 0) || o.Power > 0 && o.Power < 1:
		return invalid("Power is %v: want 0 or less, or 1 or more", o.Power)
	}
	return nil
}

func (o RegressionOptions) withDefaults() RegressionOptions {
	if o.Quantile == 0 {
		o.Quantile = 0.5
	}
	return o
}

// RegressionReport has measures of predicted numbers. A measure that is not defined is NaN, and
// Undefined gives the reason, except where the options did not request the measure.
type RegressionReport struct {
	Weight   float64 `json:"weight"` // the weight of all rows
	MSE      float64 `json:"mse"`
	RMSE     float64 `json:"rmse"`
	MAE      float64 `json:"mae"`
	MedianAE float64 `json:"median_ae"` // weighted median of |error|; the mean of two errors where it lies between them
	MaxError float64 `json:"max_error"` // the largest absolute error of a row of positive weight
	Bias     float64 `json:"bias"`      // the mean of prediction minus label
	// R2 is 1 - e/m, where e is the sum of squared errors, and m is the sum of squared errors
	// if the mean label is the prediction. ExplainedVariance is the same, except that e is the
	// sum of squared distances of the errors to their mean.
	R2                float64 `json:"r2"`
	ExplainedVariance float64 `json:"explained_variance"`
	// MAPE is the mean of |error| / max(|label|, 2^-52).
	MAPE float64 `json:"mape"`
	// Pinball is the mean, over all rows, of Quantile·|error| where the label is above the
	// prediction, and of (1-Quantile)·|error| elsewhere.
	Pinball  float64 `json:"pinball"`
	Quantile float64 `json:"quantile"`
	// D2Absolute and D2Pinball are 1 - loss/(loss of the best constant prediction), for the
	// absolute error and the pinball loss. D2Deviance is the same for the deviance, whose best
	// constant is the mean label.
	D2Absolute float64  `json:"d2_absolute"`
	D2Pinball  float64  `json:"d2_pinball"`
	Deviance   float64  `json:"deviance"` // mean deviance
	D2Deviance float64  `json:"d2_deviance"`
	Undefined  []string `json:"undefined"`
}

// MarshalJSON implements json.Marshaler; a NaN becomes null.
func (r RegressionReport) MarshalJSON() ([]byte, error) { return encodeReport(&r) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *RegressionReport) UnmarshalJSON(data []byte) error { return decodeReport(data, r) }

// String returns the numbers as a table.
func (r RegressionReport) String() string {
	var t text
	t.numbersOf(r)
	t.undefined(r.Undefined)
	return t.String()
}

// regressionState has the sums over the rows. Each operator sets only some of the fields.
type regressionState struct {
	Label, Error               moments // of label, and of label - prediction
	Absolute, Percent, Pinball sum
	MaxError                   float64
	Deviance                   devianceState
	// Errors is for the median of the absolute errors, Labels for the median of the labels, and
	// Quantile for the quantile of the labels that the options select.
	Errors, Labels, Quantile quantiles
}

func (s *regressionState) merge(o *regressionState) {
	s.Label.merge(&o.Label)
	s.Error.merge(&o.Error)
	s.Absolute.merge(&o.Absolute)
	s.Percent.merge(&o.Percent)
	s.Pinball.merge(&o.Pinball)
	s.MaxError = max(s.MaxError, o.MaxError)
	s.Deviance.merge(&o.Deviance)
	s.Errors.merge(&o.Errors)
	s.Labels.merge(&o.Labels)
	s.Quantile.merge(&o.Quantile)
}

// add adds a row.
func (o RegressionOptions) add(s *regressionState, label, prediction, w float64) {
	e := label - prediction
	s.Label.add(w, label)
	s.Error.add(w, e)
	size := math.Abs(e)
	s.Absolute.addProduct(w, size)
	s.Percent.add(float64(w * (size / max(math.Abs(label), 0x1p-52))))
	share := o.Quantile
	if e < 0 {
		share = 1 - o.Quantile
	}
	s.Pinball.add(float64(w * float64(share*size)))
	if w > 0 {
		s.MaxError = max(s.MaxError, size)
	}
}

// Regression measures predicted numbers. It returns a dataset of one row with a
// RegressionReport; see ReportOf.
func Regression(rows *engine.Dataset, o RegressionOptions) *engine.Dataset {
	const op = "evaluate.Regression"
	in := newTable(o.Skip)
	label, prediction, weight := in.readNumber("LabelCol", o.LabelCol), in.readNumber("PredictionCol", o.PredictionCol), in.readWeight(o.WeightCol)
	if refused, ok := begin(op, rows, o.Validate(), &in); !ok {
		return refused
	}
	o = o.withDefaults()
	each := func(rec arrow.Record, f func(label, prediction, w float64)) {
		y, p := numbers(rec.Column(label), nil), numbers(rec.Column(prediction), nil)
		var w []float64
		if weight >= 0 {
			w = numbers(rec.Column(weight), nil)
		}
		for i := range y {
			f(y[i], p[i], weightOf(w, i))
		}
	}
	sums := foldSpec[regressionState]{
		op: "RegressionSums",
		in: in,
		add: func(s *regressionState, rec arrow.Record) error {
			each(rec, func(label, prediction, w float64) { o.add(s, label, prediction, w) })
			return nil
		},
	}.fold(rows)
	states := []*engine.Dataset{sums}
	if o.Deviance != NoDeviance {
		states = append(states, o.deviances(rows, sums, in, each))
	}
	if !o.NoMedian {
		states = append(states, o.orders(rows, in, each)...)
	}
	return reporting[regressionState, RegressionReport]{
		op: "Regression", merge: (*regressionState).merge, report: o.report,
	}.finish(operators.Union(states[0], states[1:]...))
}

// eachRow calls f with the label, prediction and weight of every row of a batch.
type eachRow func(rec arrow.Record, f func(label, prediction, w float64))

// deviances adds the second pass over the rows, which needs the mean label.
func (o RegressionOptions) deviances(rows, sums *engine.Dataset, in table, each eachRow) *engine.Dataset {
	return foldSpec[regressionState]{
		op:    "RegressionDeviance",
		in:    in.second(),
		sides: []*engine.Dataset{sums},
		open: func(c *engine.Context, s *regressionState) error {
			var all moments
			for _, rec := range c.Side(1) {
				if err := readStates(arrowrows.Record(rec), func(_ int, one *regressionState) { all.merge(&one.Label) }); err != nil {
					return err
				}
			}
			s.Deviance.mean = all.mean()
			return nil
		},
		add: func(s *regressionState, rec arrow.Record) error {
			each(rec, func(label, prediction, w float64) { s.Deviance.add(o, label, prediction, w) })
			return nil
		},
	}.fold(rows)
}

// orders adds the sweeps over absolute errors and over labels.
func (o RegressionOptions) orders(rows *engine.Dataset, in table, each eachRow) []*engine.Dataset {
	extract := func(value func(label, prediction float64) float64) func([]weighted, arrow.Record) ([]weighted, error) {
		return func(dst []weighted, rec arrow.Record) ([]weighted, error) {
			each(rec, func(label, prediction, w float64) {
				dst = append(dst, weighted{value(label, prediction), w, 0})
			})
			return dst, nil
		}
	}
	errors := grouper(rows, "RegressionErrors", in.second(), extract(absoluteError))
	labels := grouper(rows, "RegressionLabels", in.second(), extract(func(label, _ float64) float64 { return label + 0 }))
	return []*engine.Dataset{
		sweepGroups(errors, "RegressionErrorSweep", false, nil, visitErrors),
		sweepGroups(labels, "RegressionLabelSweep", false, []engine.Attr{{Key: "quantile", Value: numberText(o.Quantile)}}, o.visitLabels),
	}
}

func numberText(v float64) string { return string(appendFloat(nil, v, 64)) }

// absoluteError returns the absolute error as a finite number. Where the difference of label
// and prediction exceeds float64, it returns the largest float64; see medianError.
func absoluteError(label, prediction float64) float64 {
	return min(math.Abs(label-prediction), math.MaxFloat64)
}

// medianError returns the median of the absolute errors. It is infinite if it equals the
// largest float64, since that error may exceed float64.
func (s *regressionState) medianError() float64 {
	if math.IsInf(s.MaxError, 1) && max(s.Errors.Lower, s.Errors.Upper) == math.MaxFloat64 {
		return math.Inf(1)
	}
	return s.Errors.value()
}

func visitErrors(s *regressionState, t *step) { s.Errors.visit(0.5, t) }

func (o RegressionOptions) visitLabels(s *regressionState, t *step) {
	s.Labels.visit(0.5, t)
	s.Quantile.visit(o.Quantile, t)
}

// MeasureRegression does what Regression does, for slices. weight may be nil. The options that
// name columns are ignored.
func MeasureRegression(label, prediction, weight []float64, o RegressionOptions) (*RegressionReport, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := checkSlices(len(label), map[string][]float64{"label": label, "prediction": prediction}, weight); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	var s regressionState
	for i, y := range label {
		o.add(&s, y, prediction[i], weightOf(weight, i))
	}
	if o.Deviance != NoDeviance {
		s.Deviance.mean = s.Label.mean()
		for i, y := range label {
			s.Deviance.add(o, y, prediction[i], weightOf(weight, i))
		}
	}
	if !o.NoMedian {
		values := make([]weighted, len(label))
		for i, y := range label {
			values[i] = weighted{absoluteError(y, prediction[i]), weightOf(weight, i), 0}
		}
		sweepSlice(values, false, func(t *step) { visitErrors(&s, t) })
		for i, y := range label {
			values[i] = weighted{y + 0, weightOf(weight, i), 0}
		}
		sweepSlice(values, false, func(t *step) { o.visitLabels(&s, t) })
	}
	return o.report(&s)
}

// report returns the report for a state.
func (o RegressionOptions) report(s *regressionState) (*RegressionReport, error) {
	w := s.Label.Weight.value()
	nan := math.NaN()
	r := &RegressionReport{
		Weight: w, MaxError: s.MaxError, Quantile: o.Quantile,
		MedianAE: nan, D2Absolute: nan, D2Pinball: nan, Deviance: nan, D2Deviance: nan,
	}
	r.MSE = s.Error.Squares.value() / w
	r.RMSE = math.Sqrt(r.MSE)
	r.MAE = s.Absolute.value() / w
	r.Bias = 0 - s.Error.Total.value()/w
	r.MAPE = s.Percent.value() / w
	r.Pinball = s.Pinball.value() / w
	var u undefined
	if w == 0 {
		u.none("all", "there are no rows of positive weight")
		r.MaxError, r.R2, r.ExplainedVariance = nan, nan, nan
		r.Undefined = u
		return r, nil
	}
	const constant = "the labels of all rows are equal"
	all := s.Label.spread()
	r.R2 = 1 - u.ratio("r2", s.Error.Squares.value(), all, constant)
	r.ExplainedVariance = 1 - u.ratio("explained_variance", s.Error.spread(), all, constant)
	if !o.NoMedian {
		r.MedianAE = s.medianError()
		// For the best constant, the absolute error is twice the pinball loss at 0.5.
		r.D2Absolute = 1 - u.ratio("d2_absolute", s.Absolute.value(), 2*s.Labels.loss(0.5), constant)
		r.D2Pinball = 1 - u.ratio("d2_pinball", s.Pinball.value(), s.Quantile.loss(o.Quantile), constant)
	}
	if o.Deviance != NoDeviance {
		s.Deviance.report(r, &u, w)
	}
	asked := []string{"mse", "rmse", "mae", "max_error", "bias", "r2", "explained_variance", "mape", "pinball"}
	if !o.NoMedian {
		asked = append(asked, "median_ae", "d2_absolute", "d2_pinball")
	}
	if o.Deviance != NoDeviance {
		asked = append(asked, "deviance", "d2_deviance")
	}
	u.apply(r, w, asked...)
	r.Undefined = u
	return r, nil
}

// Deviance is a kind of deviance: a measure of error for labels whose variance grows with
// their mean.
type Deviance int

const (
	// NoDeviance computes no deviance.
	NoDeviance Deviance = iota
	// PoissonDeviance is for labels such as counts, whose variance is proportional to the mean.
	PoissonDeviance
	// GammaDeviance is for labels whose variance is proportional to the square of the mean.
	GammaDeviance
	// TweedieDeviance is for labels whose variance is proportional to mean^Power.
	TweedieDeviance
)

// String returns "none", "poisson", "gamma" or "tweedie".
func (d Deviance) String() string {
	if names := []string{"none", "poisson", "gamma", "tweedie"}; d >= 0 && int(d) < len(names) {
		return names[d]
	}
	return fmt.Sprintf("Deviance(%d)", int(d))
}
