package copies

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkShare shares states of four workers, each of which has one piece. It reports the bytes
// that are copied from worker to worker, and counts the allocations of all workers together.
func BenchmarkShare(b *testing.B) {
	const workers = 4
	for _, copies := range []int{1, 2} {
		for _, size := range []int{8 << 10, 8 << 20} {
			b.Run(fmt.Sprintf("copies=%d/piece=%dKiB", copies, size>>10), func(b *testing.B) {
				g := newGroup(b, workers, func(_ int, c *Config) { c.Copies = copies })
				s := State{Queue: "means", Of: 1 + workers}
				piece := content(s, 0, size)
				pieces := make([]func(yield func([]byte, error) bool), workers)
				for w := range pieces {
					pieces[w] = func(yield func([]byte, error) bool) {
						if w == 0 && !yield(piece[:1], nil) {
							return
						}
						yield(piece, nil)
					}
				}
				share := func() {
					s.Superstep++
					for w, x := range g.xs {
						first, _ := numbersOf(s, w, workers)
						x.Share(s, first, pieces[w])
					}
					if err := g.xs[0].Await(context.Background(), s.Queue); err != nil {
						b.Fatal(err)
					}
				}
				for range 3 {
					share() // connects, and takes memory for two states
				}
				b.SetBytes(int64(workers * copies * size))
				b.ReportAllocs()
				for b.Loop() {
					share()
				}
			})
		}
	}
}

// BenchmarkPut puts pieces of 8 MiB into a Store.
func BenchmarkPut(b *testing.B) {
	s := &Store{}
	st := State{Queue: "means", Of: 1}
	piece := content(st, 0, 8<<20)
	b.SetBytes(int64(len(piece)))
	b.ReportAllocs()
	for b.Loop() {
		st.Superstep++
		if err := s.Put(st, 0, piece); err != nil {
			b.Fatal(err)
		}
		s.Complete(st)
	}
}
