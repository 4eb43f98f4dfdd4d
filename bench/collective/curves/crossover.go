package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/internal/benchresult"
)

// sizeRange is a range of sizes in which one algorithm is the cheapest.
type sizeRange struct {
	name string
	upTo int // the first size in bytes at which the next algorithm is cheaper; 0 for the last range
}

// lead is the hysteresis of the table: another algorithm replaces the current algorithm only if
// its price is below lead times the price of the current algorithm. Without hysteresis, the
// table would be full of changes where two curves are close to each other.
const lead = 0.97

// crossovers returns the cheapest algorithms for sizes from 8 bytes to most bytes, in order of
// size. It considers the algorithms for which takes returns true, or all algorithms if takes is
// nil. If the cheapest algorithm changes between two powers of two, bisection finds the size of
// the change to 2 per cent. An algorithm that is the cheapest only for some sizes between two
// neighbouring powers of two may be missed.
func (p *pricer) crossovers(ranks, most int, takes func(a *algorithm.Algorithm, ranks int) bool) ([]sizeRange, error) {
	var found []sizeRange
	last, err := p.cheapest(ranks, elem, takes, "")
	if err != nil {
		return nil, err
	}
	for bytes := 2 * elem; bytes <= most; bytes *= 2 {
		next, err := p.cheapest(ranks, bytes, takes, last)
		if err != nil {
			return nil, err
		}
		lo := bytes / 2
		for last != next {
			hi := bytes
			first := next // the cheapest algorithm at hi
			for hi-lo > max(elem, lo/50) {
				mid := (lo + hi) / 2 / elem * elem
				at, err := p.cheapest(ranks, mid, takes, last)
				if err != nil {
					return nil, err
				}
				if at == last {
					lo = mid
				} else {
					hi, first = mid, at
				}
			}
			found = append(found, sizeRange{last, hi})
			lo, last = hi, first
			if next, err = p.cheapest(ranks, bytes, takes, last); err != nil {
				return nil, err
			}
		}
	}
	return append(found, sizeRange{name: last}), nil
}

// cheapest returns the name of the algorithm with the lowest price. If several algorithms have
// that price, it returns the algorithm that was registered first. It assumes that more bytes
// never cost less, so it does not price an algorithm whose price for fewer bytes was clearly
// above the lowest price. holder is the cheapest algorithm for fewer bytes, or empty. cheapest
// returns holder unless the lowest price is at most lead times the price of holder.
func (p *pricer) cheapest(ranks, bytes int, takes func(*algorithm.Algorithm, int) bool, holder string) (string, error) {
	type candidate struct {
		a     *algorithm.Algorithm
		place int
		floor float64
	}
	var all []candidate
	for i, a := range allReduces() {
		if takes == nil || takes(a, ranks) {
			all = append(all, candidate{a, i, p.floor(a.Name, ranks, bytes)})
		}
	}
	slices.SortStableFunc(all, func(x, y candidate) int { return cmp.Compare(x.floor, y.floor) })
	best, place, least, held := "", 0, 0.0, math.Inf(1)
	for _, c := range all {
		if best != "" && c.floor > 1.1*least {
			break
		}
		t, ok, err := p.price(c.a, ranks, bytes)
		if err != nil {
			return "", err
		}
		if ok && c.a.Name == holder {
			held = t
		}
		if ok && (best == "" || t < least || t == least && c.place < place) {
			best, place, least = c.a.Name, c.place, t
		}
	}
	if least > lead*held && held < math.Inf(1) {
		best = holder
	}
	return best, nil
}

// floor returns the highest known price of an algorithm for at most the given number of bytes.
func (p *pricer) floor(name string, ranks, bytes int) float64 {
	floor := 0.0
	for _, k := range p.prices[series{name, ranks}] {
		if k.bytes <= bytes {
			floor = max(floor, k.seconds)
		}
	}
	return floor
}

// printCrossovers prints two tables of the cheapest algorithms on a network: one among all
// algorithms, and one among the algorithms that fold in the canonical order.
func (p *pricer) printCrossovers(out io.Writer, ranks []int, most int) error {
	for _, table := range []struct {
		title string
		takes func(*algorithm.Algorithm, int) bool
	}{{"all algorithms", nil}, {"canonical order only", canonical}} {
		fmt.Fprintf(out, "%s, %s:\n\n| ranks | cheapest AllReduce of 8 B to %s |\n|---:|---|\n", p.net.Name, table.title, benchresult.Size(most))
		for _, r := range ranks {
			found, err := p.crossovers(r, most, table.takes)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "| %d | %s |\n", r, sentence(found))
		}
		fmt.Fprintln(out)
	}
	return nil
}

// sentence returns ranges as text, such as "recursive-doubling to 11 KiB, then direct".
func sentence(found []sizeRange) string {
	var b strings.Builder
	for i, s := range found {
		switch {
		case i == 0:
		case s.upTo == 0:
			b.WriteString(", then ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(s.name)
		if s.upTo > 0 {
			b.WriteString(" to " + benchresult.Size(s.upTo))
		}
	}
	return b.String()
}
