package linearmodel

import "github.com/superstep-ml/superstep/algorithms/internal/signature"

// Classes are the classes of a classifier as texts, in the order of their values, and the type
// of the labels' column.
type Classes = signature.Classes

// LabelColumn names a column of the dataset that training a classifier returns. The column has
// the type of the labels. It is null, because the model is in model.Column.
const LabelColumn = signature.LabelColumn
