package simulate

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Symmetry describes a set of relabellings of ranks under which programs and network are
// invariant. Rank r is at place r mod Block of block r div Block. The number of the block is
// written in digits with the radices Dims; the first radix is for the least significant digit.
// A relabelling adds a number to each digit, modulo the radix of the digit. For example,
// {Block: 1, Dims: [p]} is the rotation of a ring, {1, [X Y]} is the rotation of a torus, {1,
// [2 2 2 ...]} is the exclusive or of a butterfly, and {k, [p/k]} is the rotation of groups of
// k ranks.
//
// Ranks at the same place of their blocks form a class. All ranks of a class do the same at the
// same time: the programs of a class are equal up to the relabelling, and all blocks are
// equivalent for the network, since no two blocks share a host (or, if there are several racks,
// a rack).
type Symmetry struct {
	Block int
	Dims  []int

	// Checked is the number of ranks whose programs were generated and compared. In small
	// groups these are all ranks. In large groups, generating all programs would take longer
	// than the simulation, so only a sample of ranks is checked. The sample always has the
	// ranks next to powers of two, where algorithms change their behaviour.
	Checked int
}

// String returns, for example, "rotation by 1", "exclusive or", "rotation by 32", "rotation in
// 64 x 64".
func (s *Symmetry) String() string {
	rotation := "rotation"
	if s.Block > 1 || len(s.Dims) == 1 {
		rotation += " by " + strconv.Itoa(s.Block)
	}
	switch {
	case len(s.Dims) == 1:
		return rotation
	case !slices.ContainsFunc(s.Dims, func(d int) bool { return d != 2 }):
		if s.Block == 1 {
			return "exclusive or"
		}
		return fmt.Sprintf("exclusive or of blocks of %d", s.Block)
	}
	texts := make([]string, len(s.Dims))
	for i, d := range s.Dims {
		texts[i] = strconv.Itoa(d)
	}
	return rotation + " in " + strings.Join(texts, " x ")
}

// move returns the new number of a rank under the relabelling that moves block 0 to the block
// with number to, or under its inverse if back is set.
func (s *Symmetry) move(rank, to int, back bool) int {
	block, moved, stride := rank/s.Block, 0, 1
	for _, d := range s.Dims {
		digit := to % d
		if back {
			digit = d - digit
		}
		moved += (block + digit) % d * stride
		block, to, stride = block/d, to/d, stride*d
	}
	return moved*s.Block + rank%s.Block
}

// A symmetry is checked on all ranks if there are at most maxChecked ranks and maxCheckedSteps
// instructions.
const (
	maxChecked      = 512
	maxCheckedSteps = 1 << 20
)

// part is the compiled program of one rank.
type part struct {
	shape *shape
	peers peers
}

// findSymmetry returns a symmetry of p ranks with the smallest possible block, or nil if there
// is no symmetry. partOf compiles the program of a rank. unit is the size of the smallest block
// that the network allows, or 0 if it allows no block. hint has radices to try.
func findSymmetry(p, unit int, hint []int, partOf func(rank int) (*part, error)) (*Symmetry, error) {
	if unit == 0 {
		return nil, nil
	}
	for block := unit; block <= p/2; block += unit {
		if p%block != 0 {
			continue
		}
		for _, dims := range radices(p/block, hint) {
			s := &Symmetry{Block: block, Dims: dims}
			ok, err := s.holds(p, partOf)
			if ok || err != nil {
				return s, err
			}
		}
	}
	return nil, nil
}

// radices returns the radices to try for the numbers of q blocks: a single digit, bits, the
// radices in hint, and two digits.
func radices(q int, hint []int) [][]int {
	all := [][]int{{q}}
	if q&(q-1) == 0 && q > 2 {
		twos := make([]int, bits.Len(uint(q))-1)
		for i := range twos {
			twos[i] = 2
		}
		all = append(all, twos)
	}
	product := 1
	for _, d := range hint {
		if d < 1 || product > q {
			return all
		}
		product *= d
	}
	if product == q && len(hint) > 1 {
		all = append(all, hint)
	}
	for x := 2; x <= q/2; x++ {
		if q%x == 0 {
			all = append(all, []int{x, q / x})
		}
	}
	return all
}

// holds reports whether the program of each checked rank equals the program that the symmetry
// maps to that rank.
func (s *Symmetry) holds(p int, partOf func(rank int) (*part, error)) (bool, error) {
	for _, r := range sampled(p, p, s.Block) { // few ranks are checked first, since most candidates fail
		if ok, err := s.holdsFor(r, partOf); !ok || err != nil {
			return false, err
		}
	}
	first, err := partOf(0)
	if err != nil {
		return false, err
	}
	ranks := sampled(p, len(first.shape.steps), s.Block)
	for _, r := range ranks {
		if ok, err := s.holdsFor(r, partOf); !ok || err != nil {
			return false, err
		}
	}
	s.Checked = len(ranks)
	return true, nil
}

// holdsFor reports whether the program of rank r equals the relabelled program of the rank at
// the same place in block 0.
func (s *Symmetry) holdsFor(r int, partOf func(rank int) (*part, error)) (bool, error) {
	model, err := partOf(r % s.Block)
	if err != nil {
		return false, err
	}
	is, err := partOf(r)
	if err != nil {
		return false, err
	}
	if is.shape != model.shape || !slices.Equal(is.peers.channel, model.peers.channel) {
		return false, nil
	}
	to := r / s.Block
	same := func(is, model []int32) bool {
		for i, m := range model {
			if m < 0 && is[i] != m || m >= 0 && int(is[i]) != s.move(int(m), to, false) {
				return false
			}
		}
		return true
	}
	return same(is.peers.send, model.peers.send) && same(is.peers.recv, model.peers.recv), nil
}

// sampled returns the ranks to compare. If comparing all ranks would be expensive, these are
// the first and the last min(block, 64) ranks, the ranks and blocks next to powers of two, and
// 16 ranks in between.
func sampled(p, steps, block int) []int {
	var ranks []int
	if p <= maxChecked && p*steps <= maxCheckedSteps {
		for r := range p {
			ranks = append(ranks, r)
		}
		return ranks
	}
	take := func(r int) {
		if r >= 0 && r < p {
			ranks = append(ranks, r)
		}
	}
	for r := range min(block, 64) {
		take(r)
		take(p - 1 - r)
	}
	for power := 1; power < p; power *= 2 {
		take(power)
		take(power - 1)
		take(block * power)
		take(block*power - 1)
	}
	for k := range 16 { // the fractional parts of multiples of the golden ratio are spread evenly
		take(int(uint64(k+1) * 0x9E3779B97F4A7C15 >> 32 * uint64(p) >> 32))
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}
