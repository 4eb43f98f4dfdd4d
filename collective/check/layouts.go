package check

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/collective/program"
)

// Counts returns numbers of elements that reveal most errors in computing lengths for p ranks:
// 0, 1, p − 1, p, p + 1, and a prime that no number of chunks divides.
func Counts(p int) []int {
	prime := 8*p + 89
	for !isPrime(prime) {
		prime++
	}
	n := []int{0, 1, p - 1, p, p + 1, prime}
	slices.Sort(n)
	return slices.Compact(n)
}

func isPrime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return n > 1
}

// EvenLayouts returns layouts that divide each number of elements in Counts evenly into the
// program's chunks. An AllToAll gets equal blocks, and a Barrier gets no elements.
func EvenLayouts(p *program.Program) []Layouts {
	switch p.Collective {
	case program.Barrier:
		return []Layouts{{program.Even(0, p.Chunks)}}
	case program.AllToAll:
		var all []Layouts
		for _, block := range []int{0, 1, 13} {
			all = append(all, Layouts{program.Even(block*p.Chunks, p.Chunks)})
		}
		return all
	}
	var all []Layouts
	for _, n := range Counts(p.P) {
		all = append(all, Layouts{program.Even(n, p.Chunks)})
	}
	return all
}

// UnevenLayouts returns layouts with chunks of different lengths: layouts in which some chunks
// are empty, in which all lengths are different, and in which one chunk has all elements. In an
// AllToAll the blocks between all pairs of ranks have different lengths.
func UnevenLayouts(p *program.Program) []Layouts {
	switch p.Collective {
	case program.Barrier:
		return nil
	case program.AllToAll:
		return []Layouts{exchange(p.P, 7), exchange(p.P, 40)}
	}
	n := p.Chunks
	some, different, one := make([]int, n), make([]int, n), make([]int, n)
	for c := range n {
		some[c] = max(0, scatter(c, 0, 11)-4)
		different[c] = 3*n - 2*c
	}
	one[n-1] = 5
	return []Layouts{{program.Blocks(some)}, {program.Blocks(different)}, {program.Blocks(one)}}
}

// exchange returns the layouts of an AllToAll with pseudo-random block lengths. A block is
// empty with probability 3/maxElements.
func exchange(p, maxElements int) Layouts {
	length := func(from, to int) int { return max(0, scatter(from, to, maxElements)-2) }
	all := make(Layouts, p)
	for r := range all {
		send, recv := make([]int, p), make([]int, p)
		for peer := range p {
			send[peer], recv[peer] = length(r, peer), length(peer, r)
		}
		all[r] = program.Exchange(send, recv)
	}
	return all
}

// scatter returns a pseudo-random number below maxElements that depends on i and j.
func scatter(i, j, maxElements int) int {
	x := uint64(i)<<32 ^ uint64(j) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int((x ^ x>>31) % uint64(maxElements))
}

// checkLayouts returns an error unless the layouts of all ranks are consistent with each other.
func (c *checker) checkLayouts(l Layouts) error {
	p := len(c.programs)
	if len(l) != 1 && len(l) != p {
		return fmt.Errorf("%d layouts for %d ranks: want one for all or one each", len(l), p)
	}
	for r := range l {
		if err := l[r].Check(c.programs[0].Chunks); err != nil {
			return fmt.Errorf("layout of rank %d: %w", r, err)
		}
		if c.collective != program.AllToAll && !(slices.Equal(l[r].In, l[0].Out) && slices.Equal(l[r].Out, l[0].Out)) {
			return fmt.Errorf("rank %d has another layout than rank 0's output, which only an AllToAll may", r)
		}
	}
	if c.collective == program.AllToAll {
		for from := range p {
			for to := range p {
				sent, got := l.forRank(from).Len(program.Chunk(program.In, 0, to)), l.forRank(to).Len(program.Chunk(program.Out, 0, from))
				if sent != got {
					return fmt.Errorf("rank %d has %d elements for rank %d, which expects %d", from, sent, to, got)
				}
			}
		}
	}
	return nil
}

// sameLengths reports whether reference a of rank rankA and reference b of rank rankB have the
// same number of chunks, with the same lengths.
func (c *checker) sameLengths(rankA int, a program.Ref, rankB int, b program.Ref) bool {
	if a.Chunks.Len() != b.Chunks.Len() {
		return false
	}
	if c.collective != program.AllToAll {
		return true // all ranks have the same layout
	}
	for _, layouts := range c.layouts {
		la, lb := layouts.forRank(rankA), layouts.forRank(rankB)
		for i := range a.Chunks.Len() {
			if la.Len(program.Chunk(a.Buffer, a.Slot, a.Chunks.Lo+i)) != lb.Len(program.Chunk(b.Buffer, b.Slot, b.Chunks.Lo+i)) {
				return false
			}
		}
	}
	return true
}
