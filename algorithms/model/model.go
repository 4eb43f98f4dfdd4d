package model

import "github.com/superstep-ml/superstep/engine"

// Column names the text column that holds an encoded model. Training returns a dataset of one
// row with this column.
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

// Stage is a stage of a pipeline: it is trained on rows and then transforms rows. The
// parameters of estimators and preparations are stages.
type Stage interface {
	// Kind names the algorithm.
	Kind() string
	// Fit adds training to the job and returns a dataset of one row with the encoded model in
	// Column.
	Fit(rows *engine.Dataset) *engine.Dataset
	// Apply adds to rows the columns that a model from Fit computes.
	Apply(rows, model *engine.Dataset) *engine.Dataset
}

// Kind describes the models of one kind.
type Kind struct {
	Name   string
	About  string // in a line
	Decode func(file []byte) (Model, error)
	// Estimator trains them; nil where none does.
	Estimator Estimator
}
