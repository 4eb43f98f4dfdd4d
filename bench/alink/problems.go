package main

import (
	"fmt"
	"strconv"

	"github.com/superstep-ml/superstep/shared"
)

// A figure is what a model is worth on the rows that it was trained on.
type figure struct {
	name   string
	within float64 // relative difference from ours that is no other model
}

// problem is what a table is about. What both sides are to do alike stands here and, for Alink,
// in AlinkTraining.java.
type problem struct {
	Name       string `json:"problem"`
	Rows       int    `json:"rows"`
	Features   int    `json:"features"`
	Iterations int    `json:"iterations"` // of k-means updates of the centres, of boosting trees
	Labelled   bool   `json:"-"`          // rows have a class, 0 or 1

	rows    func(draw *shared.Random, features int) rowFunc
	figures []figure
	of      string   // what iterations are
	train   []string // what the command superstep trains, and how
	limit   string   // its flag for the number of iterations
}

var problems = []problem{
	{
		Name: "kmeans", Rows: 1_000_000, Features: 16, Iterations: 20, of: "updates of 10 centres", rows: mixture,
		figures: []figure{{"inertia", 0.02}}, // first centres differ
		train:   []string{"kmeans", "--k", "10", "--init", "random", "--tol", "0"}, limit: "--max-iter",
	},
	{
		Name: "logistic", Rows: 1_000_000, Features: 28, Iterations: 20, of: "iterations of L-BFGS", Labelled: true, rows: linear,
		figures: []figure{{"log-loss", 0.001}, {"AUC", 0.001}},
		train:   []string{"logistic", "--method", "lbfgs", "--tol", "0"}, limit: "--max-iter",
	},
	{
		Name: "gbdt", Rows: 100_000, Features: 28, Iterations: 20, of: "trees of depth 6", Labelled: true, rows: stepped,
		figures: []figure{{"log-loss", 0.01}, {"AUC", 0.01}}, // bins and ties differ
		train: []string{"gbdt", "--objective", "logistic", "--max-depth", "6", "--learning-rate", "0.1", "--max-bins", "128",
			"--lambda", "0", "--min-child-weight", "0", "--min-child-rows", "100"}, limit: "--rounds",
	},
}

// what says what is trained.
func (p *problem) what() string { return fmt.Sprintf("%d %s", p.Iterations, p.of) }

// arguments are those of the command superstep that trains.
func (p *problem) arguments(csv, model string) []string {
	all := append([]string{"train"}, p.train...)
	all = append(all, p.limit, strconv.Itoa(p.Iterations), "--input", csv, "--model", model, "--if-exists", "replace")
	if p.Labelled {
		all = append(all, "--label", labelColumn)
	}
	return all
}
