// Package tune chooses the algorithm for a collective: the algorithm with the least price. The
// price is the time that package simulate predicts for a network. The costs of the network are
// measured or presumed.
//
//	t := tune.Default()
//	d, err := t.Choose(ctx, tune.Query{
//		Collective: program.AllReduce, Params: algorithm.Params{P: 8}, Bytes: 1 << 20, Elem: 8,
//	})
//	fmt.Print(d.Explain())
//
// By default only algorithms that fold in the canonical tree compete for a reduction, so that
// neither the size of the data nor a different network changes a bit of the result. Rules,
// which can be read from a file, take precedence over prices.
//
// A choice is a pure function: the same Tuner and Query give the same Decision on every
// machine. Only Tuner.Calibrate exchanges messages. It measures a [Group] and returns a Tuner
// that uses the measurements.
package tune
