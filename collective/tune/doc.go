// Package tune chooses how a collective is carried out: the program with the least
// simulated price on a network whose numbers were measured, or are presumed.
//
//	t := tune.Default()
//	d, err := t.Choose(ctx, tune.Query{
//		Collective: program.AllReduce, Params: algorithm.Params{P: 8}, Bytes: 1 << 20, Elem: 8,
//	})
//	fmt.Print(d.Explain())
//
// By default only programs that fold in the canonical tree compete for a reduction,
// so that neither the size of the data nor a different network changes a bit of the
// result. Rules, from a file, come before prices.
//
// Choices are pure: the same Tuner and Query give the same Decision, everywhere. What
// exchanges messages is Tuner.Calibrate alone, which measures a [Group] and returns a Tuner
// for what it found.
package tune
