package model

import "github.com/superstep-ml/superstep/engine"

// Column is the name of the column, of text, that holds an encoded model in the
// one-row datasets which training returns.
const Column = "model"

// Model is a trained model of any kind. It is immutable once trained or read, and safe
// for concurrent use.
type Model interface {
	// Kind names the algorithm, as in the file.
	Kind() string
	// Encode returns the model's file, the same bytes for the same model.
	Encode() ([]byte, error)
	// Inputs are the columns that the model reads.
	Inputs() []Input
	// Transform adds what the model computes to a dataset of the job: predictions, or
	// transformed columns.
	Transform(rows *engine.Dataset) *engine.Dataset
}

// Input is a column that a model reads.
type Input struct {
	Column string `json:"column"`
	Type   string `json:"type"` // as schemas print it
}

// Stage is a stage of a pipeline: something that can be trained on rows and then
// transforms rows. Estimators and preparations implement it by their parameters.
type Stage interface {
	// Kind names the algorithm.
	Kind() string
	// Fit adds training to the job and returns a dataset of one row, which has the encoded
	// model in Column.
	Fit(rows *engine.Dataset) *engine.Dataset
	// Apply adds to rows what the model that Fit returned computes.
	Apply(rows, model *engine.Dataset) *engine.Dataset
}

// Kind is how models of one kind are read.
type Kind struct {
	Name   string
	About  string // in a line
	Decode func(file []byte) (Model, error)
	// Estimator trains them, nil where none does.
	Estimator Estimator
}
