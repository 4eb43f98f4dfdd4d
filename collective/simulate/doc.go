// Package simulate predicts the time of collective programs, their price, on networks that are
// described by numbers. It also reports what the ranks send and on what they wait.
//
//	net, err := simulate.Preset("10gbe")
//	a, err := algorithm.Find(program.AllReduce, "ring")
//	r, err := simulate.Price(ctx, a, algorithm.Params{P: 4096}, 64<<20, 8, net, simulate.Options{})
//	fmt.Println(r.Time, r.Chain)
//
// # The model
//
// The programs are those that executors run, instruction by instruction: lanes with two halves
// that progress independently, messages in order on each channel, and the dependencies of the
// program. Messages are sent in segments. If an instruction depends on another instruction on
// the same chunks, segment k of the one waits only for segment k of the other. For any other
// dependency it waits until the whole instruction is done.
//
// A segment of B bytes costs
//
//	sender's core     SendOverhead + SendCopy·B, then the sender may go on
//	sender's NIC      B / bandwidth, in the order in which segments are ready
//	rack's uplink     B / bandwidth of the uplink, only between racks
//	latency           of the class of link: host, rack or spine
//	rack's downlink   B / bandwidth of the downlink, only between racks
//	receiver's NIC    B / bandwidth, in the order of arrival
//	receiver's core   RecvOverhead + RecvCopy·B, and Gamma·B where it is folded;
//	                  plus WakeUp, if the rank did nothing but wait
//
// NICs and links forward the head of a segment before its tail has arrived, so an idle path
// costs B / bandwidth only once. Within a host, the host's memory takes the place of NICs and
// links. Folds and copies without a message take a core for Gamma or Copy per byte. The cores
// of a host serve all its ranks, in the order of requests: a host with more ranks than cores is
// slower accordingly. As in executors, each half of a lane may use its own core, except in runs
// of short messages, in which a rank does one thing at a time (Options.SerialLimit).
//
// Every resource is a queue with first-come-first-served order, not with processor sharing.
// Messages share a link segment by segment, like packets, so the two models differ by no more
// than the segments in the queue. A queue need not be recomputed when a segment joins it, so a
// segment costs the same few events however many segments compete. Segments that reach a busy
// NIC of a receiver wait in the switch, without loss: lost packets and the resulting collapse
// of throughput are not modelled.
//
// A channel holds up to Window bytes that its receiver has not received yet. Beyond that the
// sender waits. With a window of 0 every send waits until its data has been received
// (rendezvous).
//
// # Symmetry
//
// If all ranks run the same program up to a relabelling of ranks under which the network is
// invariant, all of them are always at the same step. Then only one representative of each
// class of ranks is simulated. Representatives send to each other or to themselves. So a ring
// among 4,096 ranks costs the events of one rank, not those of 33 million messages. See
// Symmetry.
//
// # Reproducibility
//
// Prices depend only on the arguments: ties are decided by rank and lane, and jitter is a
// function of seed, rank, lane and position.
package simulate
