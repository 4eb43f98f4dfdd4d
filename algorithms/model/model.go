package model

import (
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/engine"
)

// Column is the name of the text column that holds an encoded model. Training returns a dataset
// of one row with this column.
const Column = "model"

// Model is a trained model of any kind. It is immutable after training or reading, and safe for
// concurrent use.
type Model interface {
	// Kind returns the name of the algorithm, as in the file.
	Kind() string
	// Encode returns the content of the model's file. The same model gives the same bytes. It
	// returns an error if the model is not valid.
	Encode() ([]byte, error)
	// Inputs returns the columns that the model reads.
	Inputs() []Input
	// Transform adds the columns that the model computes to a dataset of the job: predictions,
	// or transformed columns.
	Transform(rows *engine.Dataset) *engine.Dataset
}

// Input is a column that a model reads.
type Input struct {
	Column string `json:"column"`
	Type   string `json:"type"` // the type, as schemas print it
}

// IsVector reports whether kind, which is the Type of an Input, is a type of vectors, such as
// vector[3] or sparse.
func IsVector(kind string) bool {
	return strings.HasPrefix(kind, "vector") || strings.HasPrefix(kind, "sparse")
}

// VectorDim returns the number of components of the vectors of kind, which is the Type of an
// Input. It returns 0 for vectors of any number of components, and for scalars.
func VectorDim(kind string) int {
	_, dim, _ := strings.Cut(strings.TrimSuffix(kind, "]"), "[")
	if n, err := strconv.Atoi(dim); err == nil && IsVector(kind) {
		return n
	}
	return 0
}

// Stage is a stage of a pipeline: it is trained on rows and then transforms rows. The parameter
// types of estimators and preparations implement Stage.
type Stage interface {
	// Kind returns the name of the algorithm.
	Kind() string
	// Fit adds training to the job and returns a dataset of one row with the encoded model in
	// Column.
	Fit(rows *engine.Dataset) *engine.Dataset
	// Apply adds columns to rows. They are computed by model, which is a dataset that Fit
	// returned.
	Apply(rows, model *engine.Dataset) *engine.Dataset
}

// Kind describes the models of one kind.
type Kind struct {
	Name   string
	About  string // a description in one line
	Decode func(file []byte) (Model, error)
	// Estimator trains models of this kind. It is nil for kinds without an Estimator, such as
	// preparations.
	Estimator Estimator
}
