// Package simulate predicts the time of collective programs on networks that are described by
// numbers. The predicted time is called the price. The package also reports how much the ranks
// send, and for what they wait.
//
//	net, err := simulate.Preset("10gbe")
//	a, err := algorithm.Find(program.AllReduce, "ring")
//	r, err := simulate.Price(ctx, a, algorithm.Params{P: 4096}, 64<<20, 8, net, simulate.Options{})
//	fmt.Println(r.Time, r.Chain)
//
// # The model
//
// The simulation runs the same programs as executors, instruction by instruction. It has lanes
// with two halves that progress independently, messages in order on each channel, and the
// dependencies of the program. Messages are sent in segments. If an instruction depends on
// another instruction on the same chunks, segment k of the first waits only for segment k of
// the second. With any other dependency, an instruction waits until the whole other instruction
// is done.
//
// A segment of B bytes costs
//
//	sender's core     SendOverhead + SendCopy·B; after that, the sender can continue
//	sender's NIC      B / bandwidth, in the order in which segments are ready
//	rack's uplink     B / bandwidth of the uplink, only between racks
//	latency           of the class of link: host, rack or spine
//	rack's downlink   B / bandwidth of the downlink, only between racks
//	receiver's NIC    B / bandwidth, in the order of arrival
//	receiver's core   RecvOverhead + RecvCopy·B, and Gamma·B if the data is folded;
//	                  plus WakeUp, if the rank did nothing but wait
//
// NICs and links forward the beginning of a segment (its head) before its end (its tail) has
// arrived, so on an idle path B / bandwidth counts only once. Within a host, the host's memory
// takes the place of NICs and links. Folds and copies without a message take a core for Gamma
// or Copy per byte. The cores of a host serve all its ranks, in the order of requests: a host
// with more ranks than cores is slower accordingly. As in executors, each half of a lane may
// use its own core, except in runs of short messages, in which a rank does one thing at a time
// (Options.SerialLimit).
//
// Every resource serves requests in first-come-first-served order. Processor sharing is not
// modelled. Messages share a link segment by segment, like packets, so the times in the two
// disciplines differ by at most the transmission of the segments in the queue. When a segment
// is added to a first-come-first-served queue, the times of the other segments do not change.
// So the number of events per segment is small and does not depend on the number of competing
// segments. Segments that reach a busy NIC of a receiver wait in the switch, without loss: lost
// packets and the resulting collapse of throughput are not modelled.
//
// A channel holds up to Window bytes that its receiver has not received yet. If a segment would
// exceed the window, the sender waits. With a window of 0, every send waits until its data has
// been received (rendezvous).
//
// # Symmetry
//
// If all ranks run the same program up to a relabelling of ranks under which the network is
// invariant, all ranks are always at the same step. In this case, only one representative of
// each class of ranks is simulated. Representatives send to each other or to themselves. For a
// ring among 4,096 ranks, the simulation handles the events of one rank instead of the events
// of 33 million messages. See Symmetry.
//
// # Reproducibility
//
// Prices depend only on the arguments: ties are decided by rank and lane, and jitter is a
// function of seed, rank, lane and position.
package simulate
