package main

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
)

// Columns of predicted classes. probabilityColumn has the probability of class 1. detailColumn
// has a JSON object whose keys are the classes and whose values are the probabilities of the
// classes.
const (
	probabilityColumn = "probability_1"
	detailColumn      = "detail"
)

// quality makes contestant c predict the rows with its saved model. It returns the qualities of
// the predictions, in the order of w.problem.qualities.
func (w work) quality(c contestant) ([]float64, error) {
	if err := os.RemoveAll(w.output); err != nil {
		return nil, err
	}
	if err := run(c.predict(w)); err != nil {
		return nil, err
	}
	f, err := os.Open(w.output)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := readPredictions(bufio.NewReaderSize(f, 1<<20), c.columns(w.problem))
	if err != nil {
		return nil, fmt.Errorf("predictions: %w", err)
	}
	if n := len(p.distances) + len(p.probabilities); n != w.problem.Rows {
		return nil, fmt.Errorf("there are predictions of %d rows, not of %d", n, w.problem.Rows)
	}
	if !w.problem.Labelled {
		return []float64{p.inertia()}, nil
	}
	report, err := evaluate.MeasureBinary(p.labels, p.probabilities, nil, evaluate.BinaryOptions{})
	if err != nil {
		return nil, fmt.Errorf("predictions: %w", err)
	}
	return []float64{report.LogLoss, report.AUC}, nil
}

// predictions has a prediction for each row: either the distance to the nearest centre, or the
// probability of class 1 together with the true label.
type predictions struct {
	distances     []float64
	labels        []float64
	probabilities []float64
}

// readPredictions reads predictions in CSV format. columns has the names of the columns; if it
// is nil, the first line has them.
func readPredictions(from io.Reader, columns []string) (p predictions, err error) {
	lines := csv.NewReader(from)
	lines.ReuseRecord = true
	if columns == nil {
		first, err := lines.Read()
		if err != nil {
			return p, err
		}
		columns = slices.Clone(first)
	}
	label, distance := slices.Index(columns, labelColumn), slices.Index(columns, distanceColumn)
	probability, detail := slices.Index(columns, probabilityColumn), slices.Index(columns, detailColumn)
	if distance < 0 && (label < 0 || probability < 0 && detail < 0) {
		return p, fmt.Errorf("there are no predictions in columns %q", columns)
	}
	for {
		cells, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return p, err
		}
		number := func(text string) (v float64) {
			v, e := strconv.ParseFloat(text, 64)
			err = cmp.Or(err, e)
			return v
		}
		switch {
		case distance >= 0:
			p.distances = append(p.distances, number(cells[distance]))
		case probability >= 0:
			p.labels, p.probabilities = append(p.labels, number(cells[label])), append(p.probabilities, number(cells[probability]))
		default:
			var classes map[string]json.Number
			err = json.Unmarshal([]byte(cells[detail]), &classes)
			p.labels, p.probabilities = append(p.labels, number(cells[label])), append(p.probabilities, number(classes["1"].String()))
		}
		if err != nil {
			return p, err
		}
	}
}

// inertia returns the sum of the squared distances.
func (p predictions) inertia() (sum float64) {
	for _, d := range p.distances {
		sum += d * d
	}
	return sum
}
