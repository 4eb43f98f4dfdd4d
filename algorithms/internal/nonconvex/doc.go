// Package nonconvex has the code that factorisation machines and neural networks share. Their
// losses are not convex, so training starts from randomly drawn parameters. They predict
// numbers or classes. Package optim minimises their losses.
//
//	nonconvex.Training{
//		Op: "fm.Train", Queue: "fm", Params: p.common(),
//		Open:   func(f *rows.Facts, sparse bool) (nonconvex.Loss, error) { ... },
//		Finish: func(l nonconvex.Loss, f nonconvex.Fit) model.Model { ... },
//	}.Add(b, rows)                                 // a dataset of one row, the encoded model
package nonconvex
