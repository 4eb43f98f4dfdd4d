// Package signature handles the columns that models read and add. For features it has their
// description in a model's file, and the reader that prediction uses cell by cell. For labels
// it has the classes in the type of their column, and the dataset that carries this type from
// training to prediction. For predictions it has the operator and the cells that it adds.
//
//	m.inputs = signature.InputsOf(p.VectorCol, p.FeatureCols, schema, dim) // in training
//	...
//	in, err := m.inputs.Bind(layout, signature.Override{Skip: o.Skip}, m.Dim)
//	...
//	x, ok, err := in.Read(row) // for each row: a Point, dense or sparse
//
// Trees read with BindCoded, since their features may be missing values or categories. For them
// Batches reads rows block by block.
//
// A classifier's training gives one row with two columns: model.Column holds the encoded model,
// and LabelColumn, which is null, has the type of the labels. Prediction is planned before
// there is a model, so this column tells the type of the predictions.
package signature
