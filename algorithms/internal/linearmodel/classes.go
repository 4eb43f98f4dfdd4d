package linearmodel

import "github.com/superstep-ml/superstep/algorithms/internal/signature"

// Classes are the classes of a classifier, in the order of their values, as text, and the
// type of the column that they are from.
type Classes = signature.Classes

// LabelColumn is the column of the dataset that training a classifier returns which has
// the type of the labels. It is null: what the model is stands in model.Column.
const LabelColumn = signature.LabelColumn
