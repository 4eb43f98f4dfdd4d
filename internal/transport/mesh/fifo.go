package mesh

import (
	"math/bits"
	"sync"
)

// fifo is a queue that reuses its memory. It is a ring buffer whose size doubles when it is
// full.
type fifo[T any] struct {
	ring  []T
	first int
	n     int
}

func (q *fifo[T]) push(v T) {
	if q.n == len(q.ring) {
		ring := make([]T, max(4, 2*q.n))
		k := copy(ring, q.ring[q.first:])
		copy(ring[k:], q.ring[:q.first])
		q.ring, q.first = ring, 0
	}
	q.ring[(q.first+q.n)%len(q.ring)] = v
	q.n++
}

// pop removes and returns the oldest element. The queue must not be empty.
func (q *fifo[T]) pop() T {
	var none T
	v := q.ring[q.first]
	q.ring[q.first] = none
	q.first = (q.first + 1) % len(q.ring)
	q.n--
	return v
}

// last returns the newest element. The queue must not be empty.
func (q *fifo[T]) last() *T { return &q.ring[(q.first+q.n-1)%len(q.ring)] }

// block is memory from a pool. The holder of the pointer to a block owns the block.
type block struct {
	data  []byte
	class int
}

// pool has unused blocks whose sizes are powers of two. The garbage collector frees blocks that
// stay unused, so that an idle mesh holds no memory.
type pool struct {
	classes [32]sync.Pool
}

const smallestBlock = 8 // binary logarithm of the bytes of the smallest block

// get returns a block with n bytes of data, which are not zeroed.
func (p *pool) get(n int) *block {
	class := max(smallestBlock, bits.Len(uint(max(n, 1)-1)))
	if class >= len(p.classes) { // a message within the limits is never so long
		return &block{data: make([]byte, n), class: -1}
	}
	b, ok := p.classes[class].Get().(*block)
	if !ok {
		b = &block{data: make([]byte, 1<<class), class: class}
	}
	b.data = b.data[:n]
	return b
}

// put returns b, which may be nil, to the pool.
func (p *pool) put(b *block) {
	if b == nil || b.class < 0 {
		return
	}
	b.data = b.data[:cap(b.data)]
	p.classes[b.class].Put(b)
}
