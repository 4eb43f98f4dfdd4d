package linearmodel

import "github.com/superstep-ml/superstep/algorithms/internal/signature"

// Classes has the classes of a classifier as text, in the order of their values, and the type
// of the label column.
type Classes = signature.Classes

// LabelColumn is the name of a column of the dataset that the training of a classifier returns.
// The column's type is the type of the labels. Its value is null; the model is in model.Column.
const LabelColumn = signature.LabelColumn
