// Package signature handles the columns that models read and add. For features, it has the
// description of the columns in a model's file, and the Reader that reads features from the
// cells of a row. For labels, it has the classes as values of the label column's type, and the
// dataset that passes this type from training to prediction. For predictions, it adds the
// operator that predicts in a job, and the cells of predictions for single rows.
//
//	m.inputs = signature.InputsOf(p.VectorCol, p.FeatureCols, schema, dim) // in training
//	...
//	in, err := m.inputs.Bind(layout, o, m.Dim)
//	...
//	x, ok, err := in.Read(row) // for each row: a Point, dense or sparse
//
// Models of trees read features with BindCoded, since features of trees may be missing or
// categorical. Batches reads rows for such models block by block.
//
// The training of a classifier returns a dataset of one row with two columns: model.Column
// holds the encoded model, and LabelColumn, whose value is null, has the type of the labels.
// Prediction is planned before the model exists, so the plan takes the type of the predicted
// classes from LabelColumn.
package signature
