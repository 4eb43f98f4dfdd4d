package tree

import (
	"sync"
	"sync/atomic"
)

// split divides the numbers 0…n-1 into ranges and calls f for each range from threads
// goroutines, of which the caller's is one. The length of each range, except perhaps the last,
// is a multiple of block. A panic of f is passed on to the caller.
func split(n, block, threads int, f func(from, to int)) {
	blocks := (n + block - 1) / block
	threads = min(threads, blocks)
	if threads < 2 {
		if n > 0 {
			f(0, n)
		}
		return
	}
	share := max(1, min(blocks/(8*threads), 64)) * block
	var next atomic.Int64
	var fault atomic.Pointer[any]
	work := func() {
		defer func() {
			if p := recover(); p != nil {
				fault.CompareAndSwap(nil, &p)
			}
		}()
		for {
			to := int(next.Add(int64(share)))
			if to-share >= n {
				return
			}
			f(to-share, min(to, n))
		}
	}
	var others sync.WaitGroup
	for range threads - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	if p := fault.Load(); p != nil {
		panic(*p)
	}
}
