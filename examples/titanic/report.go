package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/engine"
)

// report prints the results, and writes the model and the plot if --model and --plot are given.
func report(a args, r *engine.Result) error {
	m, err := pipeline.ModelOf(r, "model")
	if err != nil {
		return err
	}
	printCoefficients(m)
	seen, err := evaluate.ReportOf[evaluate.BinaryReport](r, "seen")
	if err != nil {
		return err
	}
	unseen, err := evaluate.ReportOf[evaluate.BinaryReport](r, "unseen")
	if err != nil {
		return err
	}
	fmt.Printf("passengers seen in training: %.0f, accuracy %.3f, area under the ROC curve %.3f\n", seen.Weight, seen.Accuracy, seen.AUC)
	fmt.Printf("others:                      %.0f, accuracy %.3f, area under the ROC curve %.3f\n", unseen.Weight, unseen.Accuracy, unseen.AUC)
	if err := predictOne(m); err != nil {
		return err
	}
	if a.Model != "" {
		if err := m.Save(a.Model); err != nil {
			return err
		}
		fmt.Printf("model written to %s\n", a.Model)
	}
	if a.Plot != "" {
		if err := drawROC(a.Plot, unseen); err != nil {
			return err
		}
		fmt.Printf("plot written to %s\n", a.Plot)
	}
	return nil
}

// printCoefficients prints a table of the coefficients: by how much each feature changes the log
// odds of survival.
func printCoefficients(m *pipeline.Model) {
	var names []string
	var encoder *prepare.OneHotModel
	for _, s := range m.Stages() {
		switch s := s.(type) {
		case *prepare.OneHotModel:
			encoder = s
		case *prepare.AssemblerModel: // the columns of numbers come first, then the values of each column of text
			names = append(names, s.Params.Columns[:len(s.Params.Columns)-len(encoder.Values)]...)
			for i, values := range encoder.Values {
				for _, v := range values[:encoder.Size(i)] {
					names = append(names, encoder.Params.Columns[i]+" = "+v)
				}
			}
		case *logistic.Model:
			table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			for k, w := range s.Coefficients[0] {
				fmt.Fprintf(table, "%s\t%+.3f\n", names[k], w)
			}
			fmt.Fprintf(table, "intercept\t%+.3f\n", s.Intercepts[0])
			table.Flush()
		}
	}
}

// predictOne applies the model to one passenger without running a job, as a server would. The
// result has the same bits as the result of a job.
func predictOne(m *pipeline.Model) error {
	s, err := m.Scorer("age", "fare", "sibsp", "parch", "sex", "class", "embarked")
	if err != nil {
		return err
	}
	row := s.NewRow()
	row.Input(0).SetFloat(29)
	row.Input(1).SetFloat(80)
	row.Input(2).SetInt(0)
	row.Input(3).SetInt(0)
	row.Input(4).SetText("female")
	row.Input(5).SetText("First")
	row.Input(6).SetText("C")
	if err := s.Score(row); err != nil {
		return err
	}
	fmt.Printf("a woman of 29, first class, from Cherbourg, survives with probability %.3f\n", row.Cell("probability").Values[1])
	return nil
}
