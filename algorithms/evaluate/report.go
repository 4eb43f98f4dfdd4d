package evaluate

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
)

// ReportColumn is the name of the text column with the whole report as JSON, in the one-row
// datasets that evaluations return. The other columns are the numbers of the report, named like
// its JSON fields.
const ReportColumn = "report"

// Report is the constraint for the types of reports.
type Report interface {
	BinaryReport | MulticlassReport | RegressionReport | ClusteringReport | RankingReport
}

// ReportOf returns a report from the result of a run. name is the name under which the dataset
// of the evaluation was collected.
func ReportOf[R Report](result *engine.Result, name string) (*R, error) {
	type row struct {
		Report string `column:"report"`
	}
	rows, err := engine.Rows[row](result, name)
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 {
		return nil, fmt.Errorf("result %q has %d rows: a report is one row, as the functions of package evaluate give it", name, len(rows))
	}
	r := new(R)
	if err := decodeReport([]byte(rows[0].Report), r); err != nil {
		return nil, fmt.Errorf("result %q: %w", name, err)
	}
	return r, nil
}

// metric is a number of a report that has its own column.
type metric struct {
	name  string
	index int
	kind  arrow.DataType
}

// metrics returns the numbers of a report of type t in the order of its fields.
func metrics(t reflect.Type) []metric {
	var list []metric
	for i := range t.NumField() {
		f := t.Field(i)
		switch f.Type.Kind() {
		case reflect.Float64:
			list = append(list, metric{jsonName(f), i, arrow.PrimitiveTypes.Float64})
		case reflect.Int64:
			list = append(list, metric{jsonName(f), i, arrow.PrimitiveTypes.Int64})
		}
	}
	return list
}

func jsonName(f reflect.StructField) string { return f.Tag.Get("json") }

// reportSchema returns the columns of the dataset of a report.
func reportSchema[R any]() *arrow.Schema {
	var fields []arrow.Field
	for _, m := range metrics(reflect.TypeFor[R]()) {
		fields = append(fields, arrow.Field{Name: m.name, Type: m.kind})
	}
	return arrow.NewSchema(append(fields, arrow.Field{Name: ReportColumn, Type: arrow.BinaryTypes.String}), nil)
}

// reportRecord returns the one row of a report. The caller owns it.
func reportRecord[R any](mem memory.Allocator, schema *arrow.Schema, report *R) (arrow.Record, error) {
	b, err := batch.NewRecordBuilder(mem, schema)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	v := reflect.ValueOf(report).Elem()
	for i, m := range metrics(v.Type()) {
		switch f := b.Field(i).(type) {
		case *array.Float64Builder:
			if n := v.Field(m.index).Float(); math.IsNaN(n) {
				f.Append(math.NaN()) // every NaN is written with the same bits
			} else {
				f.Append(n)
			}
		case *array.Int64Builder:
			f.Append(v.Field(m.index).Int())
		}
	}
	text, err := encodeReport(report)
	if err != nil {
		return nil, err
	}
	b.Field(schema.NumFields() - 1).(*array.StringBuilder).Append(string(text))
	return b.NewRecord()
}

// partsOf returns the rows of a part of a report as a dataset. Such parts are the points of a
// curve and the cells of a matrix.
func partsOf[R, T any](op string, report *engine.Dataset, parts func(r *R) []T) *engine.Dataset {
	b := model.BuilderOf(op, report)
	if report.Poisoned() {
		return report
	}
	if !report.Schema().Equal(arrowrows.Schema(reportSchema[R]())) {
		return model.Refuse(b, op, fmt.Errorf("the dataset is not a report of a %s", reflect.TypeFor[R]().Name()))
	}
	type row struct {
		Report string `column:"report"`
	}
	return operators.FlatMap(report, func(in row, emit func(T)) error {
		r := new(R)
		if err := decodeReport([]byte(in.Report), r); err != nil {
			return err
		}
		for _, part := range parts(r) {
			emit(part)
		}
		return nil
	})
}

// undefined collects the names of metrics that are not defined, with the reasons.
type undefined []string

// ratio returns a/b. If b is 0, it records that the metric is not defined, with the reason why,
// and returns NaN. It also returns NaN if a or b exceeds float64.
func (u *undefined) ratio(name string, a, b float64, why string) float64 {
	if b == 0 {
		return u.none(name, why)
	}
	if a-a != 0 || b-b != 0 {
		return u.none(name, beyondRange)
	}
	return a / b
}

// none records that a metric is not defined, and returns NaN.
func (u *undefined) none(name, why string) float64 {
	*u = append(*u, name+": "+why)
	return math.NaN()
}

// text is the readable form of a report: lines of a name and a value, aligned.
type text struct {
	out   strings.Builder
	width int
}

// numbersOf writes all numbers of a report.
func (t *text) numbersOf(report any) {
	v := reflect.ValueOf(report)
	list := metrics(v.Type())
	for _, m := range list {
		t.width = max(t.width, len(m.name))
	}
	for _, m := range list {
		value := fmt.Sprint(v.Field(m.index).Interface())
		if f := v.Field(m.index); f.Kind() == reflect.Float64 {
			value = shortNumber(f.Float())
		}
		t.line(m.name, value)
	}
}

func (t *text) line(name, value string) {
	fmt.Fprintf(&t.out, "%-*s  %s\n", t.width, name, value)
}

// undefined writes the reasons why metrics are not defined.
func (t *text) undefined(list []string) {
	for _, u := range list {
		t.line("undefined", u)
	}
}

// grid writes rows of cells as aligned columns. The first column is left-aligned.
func (t *text) grid(rows [][]string) {
	var widths []int
	for _, row := range rows {
		for j, cell := range row {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], len(cell))
		}
	}
	t.out.WriteByte('\n')
	for _, row := range rows {
		for j, cell := range row {
			if j == 0 {
				fmt.Fprintf(&t.out, "%-*s", widths[j], cell)
			} else {
				fmt.Fprintf(&t.out, "  %*s", widths[j], cell)
			}
		}
		t.out.WriteByte('\n')
	}
}

func (t *text) String() string { return t.out.String() }

// shortNumber writes a number with 6 significant digits.
func shortNumber(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
