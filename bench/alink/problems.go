package main

import (
	"fmt"
	"strconv"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// quality is a measure of a model on the rows that it was trained on.
type quality struct {
	name   string
	within float64 // largest relative difference from Superstep's figure that is accepted
}

// problem is a training for which a table is printed. AlinkTraining.java repeats its parameters
// for Alink; they must be the same in both places.
type problem struct {
	Name       string `json:"problem"`
	Rows       int    `json:"rows"`
	Features   int    `json:"features"`
	Iterations int    `json:"iterations"` // number of iterations of L-BFGS, of updates of the centres for k-means, or of trees for boosting
	Labelled   bool   `json:"-"`          // whether rows have a label, 0 or 1

	rows      func(draw *sharding.Random, features int) rowFunc
	qualities []quality
	of        string   // the unit of Iterations
	train     []string // arguments of superstep train
	limit     string   // flag of superstep train for the number of iterations
}

var problems = []problem{
	{
		Name: "kmeans", Rows: 1_000_000, Features: 16, Iterations: 20, of: "updates of 10 centres", rows: mixture,
		qualities: []quality{{"inertia", 0.02}}, // the contestants choose different initial centres
		train:     []string{"kmeans", "--k", "10", "--init", "random", "--tol", "0"}, limit: "--max-iter",
	},
	{
		Name: "logistic", Rows: 1_000_000, Features: 28, Iterations: 20, of: "iterations of L-BFGS", Labelled: true, rows: linear,
		qualities: []quality{{"log-loss", 0.001}, {"AUC", 0.001}},
		train:     []string{"logistic", "--method", "lbfgs", "--tol", "0"}, limit: "--max-iter",
	},
	{
		Name: "gbdt", Rows: 100_000, Features: 28, Iterations: 20, of: "trees of depth 6", Labelled: true, rows: stepped,
		qualities: []quality{{"log-loss", 0.01}, {"AUC", 0.01}}, // the libraries choose different bins and break ties differently
		train: []string{"gbdt", "--objective", "logistic", "--max-depth", "6", "--learning-rate", "0.1", "--max-bins", "128",
			"--lambda", "0", "--min-child-weight", "0", "--min-child-rows", "100"}, limit: "--rounds",
	},
}

// what returns a description of the length of the training, such as "20 trees of depth 6".
func (p *problem) what() string { return fmt.Sprintf("%d %s", p.Iterations, p.of) }

// arguments returns the arguments of the command superstep for training.
func (p *problem) arguments(csv, model string) []string {
	all := append([]string{"train"}, p.train...)
	all = append(all, p.limit, strconv.Itoa(p.Iterations), "--input", csv, "--model", model, "--if-exists", "replace")
	if p.Labelled {
		all = append(all, "--label", labelColumn)
	}
	return all
}
