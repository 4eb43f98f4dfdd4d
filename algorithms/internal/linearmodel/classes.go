package linearmodel

import "github.com/superstep-ml/superstep/algorithms/internal/signature"

// Classes has the classes of a classifier as text, in the order of their values, and the type
// of the label column.
type Classes = signature.Classes

// LabelColumn is the name of a column of the dataset that the training of a classifier returns.
// The column has the type of the labels, and its value is null. The model itself is in
// model.Column.
const LabelColumn = signature.LabelColumn
