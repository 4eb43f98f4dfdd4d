package commands

import (
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/cmd/internal/builtin"
	"github.com/superstep-ml/superstep/internal/spelling"
)

// TrainCommand trains a model.
type TrainCommand struct {
	What []string `arg:"" passthrough:"" help:"An algorithm and its flags; \"train ALGORITHM --help\" lists them. --cluster HOST:PORT trains on a cluster; without, it trains here."`
}

// Help lists the algorithms.
func (c *TrainCommand) Help() string {
	return "Algorithms:\n\n  " + strings.Join(builtin.AboutAlgorithms(), "\n\n  ")
}

// Run trains a model and then ends the process.
func (c *TrainCommand) Run() error {
	name := c.What[0]
	if builtin.Train("superstep train", name, c.What[1:]) {
		return nil
	}
	err := fmt.Errorf("there is no algorithm %q: want one of %s", name, strings.Join(builtin.Algorithms(), ", "))
	if near := spelling.Near(name, builtin.Algorithms()); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, near[0])
	}
	return UsageError{err}
}

// completions returns text typed after the command -> words that may follow the text, for
// completion.
func (*TrainCommand) completions() map[string][]string { return builtin.Words("train") }

// PredictCommand applies a model.
type PredictCommand struct {
	Flags []string `arg:"" optional:"" help:"\"predict --help\" lists them."`
}

// Run predicts and then ends the process.
func (c *PredictCommand) Run() error {
	builtin.PredictMain("superstep predict", c.Flags)
	return nil
}

func (*PredictCommand) completions() map[string][]string { return builtin.Words("predict") }

// EvaluateCommand computes metrics of predictions.
type EvaluateCommand struct {
	Flags []string `arg:"" optional:"" help:"\"evaluate --help\" lists them."`
}

// Run computes the metrics and then ends the process.
func (c *EvaluateCommand) Run() error {
	builtin.EvaluateMain("superstep evaluate", c.Flags)
	return nil
}

func (*EvaluateCommand) completions() map[string][]string { return builtin.Words("evaluate") }

// InspectCommand prints, and optionally plots, the content of a model's file.
type InspectCommand struct {
	File   string     `arg:"" help:"File of a model of any kind."`
	Output outputForm `short:"o" enum:"text,json" default:"text" placeholder:"FORM" help:"text or json."`
	Rows   int        `default:"20" placeholder:"N" help:"Rows of each table to print as text; 0 prints all (default: ${default})."`
	Plot   string     `placeholder:"FILE" help:"PNG, SVG or PDF file to draw in what --plot-of says."`
	PlotOf string     `enum:"loss,coefficients,importance" default:"loss" placeholder:"WHAT" help:"loss, the curve of training (the default), coefficients, or importance, of features to trees."`
}

// Run prints the content of the file.
func (c *InspectCommand) Run(s *Streams) error {
	if c.Rows < 0 {
		return UsageError{fmt.Errorf("--rows is %d: want 0 or more", c.Rows)}
	}
	return builtin.Inspect(s.Out, c.File, c.Output == "json", c.Rows, c.Plot, c.PlotOf)
}
