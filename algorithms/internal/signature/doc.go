// Package signature is the columns that models read and give. Of features it has what a
// model's file says of them and how prediction reads them cell by cell; of labels, the
// classes in the type of their column and the dataset that carries that type from training
// to prediction; of predictions, the operator and the cells that it adds.
//
//	m.inputs = signature.InputsOf(p.VectorCol, p.FeatureCols, schema, dim) // in training
//	...
//	in, err := m.inputs.Bind(layout, signature.Override{Skip: o.Skip}, m.Dim)
//	...
//	x, ok, err := in.Read(row) // for each row: a Point, dense or sparse
//
// Trees read with BindCoded: their features may be missing, or categories. Batches reads rows
// block by block for them.
//
// A classifier's training gives one row with two columns: model.Column holds the encoded
// model, and LabelColumn, which is null, has the type of the labels. Prediction is planned
// before there is a model, and so it is this column that tells the type of what it adds.
package signature
