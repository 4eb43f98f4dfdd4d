// Package nonconvex has what factorisation machines and networks share. Their losses are not
// convex, so that training begins from drawn parameters. They predict numbers or classes, and
// package optim minimises their losses.
//
//	nonconvex.Training{
//		Op: "fm.Train", Queue: "fm", Params: p.common(),
//		Open:   func(f *rows.Facts, sparse bool) (nonconvex.Loss, error) { ... },
//		Finish: func(l nonconvex.Loss, f nonconvex.Fit) model.Model { ... },
//	}.Add(b, rows)                                 // one row: the encoded model
package nonconvex
