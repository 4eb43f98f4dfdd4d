package copies_test

import (
	"context"
	"fmt"
	"iter"
	"log"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/internal/peerlink"
)

// Three workers, here in one process, share the state of a queue. One of them is lost. In the next
// attempt, a new worker gets the pieces of the lost one from another.
func Example() {
	ctx := context.Background()
	stores := []*copies.Store{{}, {}, {}}
	workers, end := attempt(1, stores, nil)
	state := copies.State{Queue: "means", Superstep: 1, Of: 4}
	for w, x := range workers {
		first, pieces := pieceOf(w)
		x.Share(state, first, pieces)
	}
	if err := workers[0].Await(ctx, "means"); err != nil {
		log.Fatal(err)
	}
	end()

	stores[1] = &copies.Store{} // worker 1 is lost, and with it what it held
	var held [][]copies.Held
	for _, s := range stores {
		held = append(held, s.Held())
	}
	choices := copies.Choose(held)
	workers, end = attempt(2, stores, choices)
	defer end()
	for _, c := range choices {
		pieces, err := workers[1].Fetch(ctx, c, []bool{true, false, true, false})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s, held by %v: %q\n", c.State, c.Holders, pieces)
	}
	// Output:
	// queue "means" after superstep 1, held by [[0] [0] [2] [2 0]]: ["head" "" "piece of subtask 1" ""]
}

// pieceOf returns the pieces of the state that a worker has: that of its subtask, and in worker 0
// also the head.
func pieceOf(worker int) (first int, pieces iter.Seq2[[]byte, error]) {
	first = worker + 1
	if worker == 0 {
		first = 0
	}
	return first, func(yield func([]byte, error) bool) {
		if worker > 0 || yield([]byte("head"), nil) {
			yield(fmt.Appendf(nil, "piece of subtask %d", worker), nil)
		}
	}
}

// attempt starts the workers of an attempt. The caller must call end.
func attempt(number uint32, stores []*copies.Store, from []copies.Choice) (workers []*copies.Exchange, end func()) {
	var ports []*peerlink.Port
	for range stores {
		port, err := peerlink.Listen(peerlink.Config{Job: "example", Secret: []byte("known to the workers of this attempt")})
		if err != nil {
			log.Fatal(err)
		}
		ports = append(ports, port)
	}
	for w, store := range stores {
		x, err := copies.New(copies.Config{
			Port: ports[w], Where: func(worker int) string { return ports[worker].Address() },
			Worker: w, Workers: len(stores), Attempt: number, Copies: 1, Store: store, From: from,
		})
		if err != nil {
			log.Fatal(err)
		}
		workers = append(workers, x)
	}
	return workers, func() {
		for w, x := range workers {
			x.Close()
			ports[w].Close()
		}
	}
}
