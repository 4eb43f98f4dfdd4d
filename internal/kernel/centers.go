package kernel

import "math"

// Centers is a set of k centres in d dimensions, laid out for the searches of
// this package. It is built once, filled by [Centers.Set] before each round of
// searches, and then read by any number of goroutines.
type Centers struct {
	k, d   int
	rows   []float64 // k*d, row-major
	groups []group
	panels []float64 // for assembly, as in Packed, padded with NaN centres

	// reach[a] has the bits of a bound: if the computed squared distance of a row to centre a
	// is less than the bound, a is the nearest centre by computed distances. It is 0 if no
	// bound is known.
	reach []uint64

	// Work space of setReach.
	nearest, others []float64
}

// group holds up to eight centres, feature by feature. Of the fields lanes4 to lanes8, only the
// field for width is used.
type group struct {
	first  int32 // number of the first centre
	width  int
	lanes4 [][4]float64
	lanes5 [][5]float64
	lanes6 [][6]float64
	lanes7 [][7]float64
	lanes8 [][8]float64
}

// maxReach is the largest k for which Set computes the reach of the centres. For larger k the
// k*k distances that this takes would cost more than the search for a small block of rows.
const maxReach = 512

// NewCenters returns room for k centres in d dimensions; k is at least 1 and d at least 0. All
// memory is allocated here.
func NewCenters(k, d int) *Centers {
	c := &Centers{k: k, d: d, rows: make([]float64, k*d), reach: make([]uint64, k), nearest: make([]float64, k), others: make([]float64, k)}
	n := (k + 7) / 8
	for i := range n {
		lo, hi := i*k/n, (i+1)*k/n
		g := group{first: int32(lo), width: max(hi-lo, 4)}
		switch g.width {
		case 4:
			g.lanes4 = make([][4]float64, d)
		case 5:
			g.lanes5 = make([][5]float64, d)
		case 6:
			g.lanes6 = make([][6]float64, d)
		case 7:
			g.lanes7 = make([][7]float64, d)
		case 8:
			g.lanes8 = make([][8]float64, d)
		}
		c.groups = append(c.groups, g)
	}
	c.panels = newPanels[float64](k, d)
	for i := range c.panels {
		c.panels[i] = math.NaN()
	}
	c.Set(c.rows)
	return c
}

// K returns the number of centres.
func (c *Centers) K() int { return c.k }

// D returns the number of dimensions.
func (c *Centers) D() int { return c.d }

// Row returns centre j. The caller must not modify it.
func (c *Centers) Row(j int) []float64 { return c.rows[j*c.d : (j+1)*c.d] }

// Set copies the k*d values of centers, row-major, into the layout of the searches. It
// allocates nothing. It must not run concurrently with a search.
func (c *Centers) Set(centers []float64) {
	copy(c.rows, centers[:c.k*c.d])
	setPanels(c.panels, c.rows, c.k, c.d)
	for i := range c.groups {
		g := &c.groups[i]
		for j := range c.d {
			lane := g.lane(j)
			for l := range lane {
				lane[l] = math.NaN()
				if q := int(g.first) + l; q < c.k && (i+1 == len(c.groups) || q < int(c.groups[i+1].first)) {
					lane[l] = c.rows[q*c.d+j]
				}
			}
		}
	}
	c.setReach()
}

// lane returns the values of the group's centres in feature j.
func (g *group) lane(j int) []float64 {
	switch g.width {
	case 4:
		return g.lanes4[j][:]
	case 5:
		return g.lanes5[j][:]
	case 6:
		return g.lanes6[j][:]
	case 7:
		return g.lanes7[j][:]
	default:
		return g.lanes8[j][:]
	}
}

// setReach sets the reach of each centre a. Let h be half of the distance from a to the nearest
// other centre. By the triangle inequality, a is the nearest centre of every row that is closer
// to a than h (Elkan 2003, lemma 1).
//
// The test must hold for computed distances, as the nearest centre is defined by their bits.
// Write u = 2^-53 and e = (d+2)u, which bounds the relative error of a computed squared
// distance. Let D be the squared distance of the row to a and h the true half distance. The
// bound is reach = h²·(1-16(d+8)u), computed from an h² with a relative error of at most e.
// From D·(1-e) < reach follows √D < h(1-δ) with δ > 6(d+8)u. So every other centre is at least
// h(1+δ) away, and its squared distance exceeds D by the factor ((1+δ)/(1-δ))² > 1+4δ. That is
// more than the errors of the two computed distances, which are at most e each. Underflow and
// overflow cause absolute errors instead, so a bound outside [2^-900, 2^900] is not used.
func (c *Centers) setReach() {
	clear(c.reach)
	if c.k > maxReach || c.k == 1 {
		return
	}
	reaches(c.rows, c.k, c.d, c.panels, c.others, c.nearest)
	for a, v := range c.nearest {
		c.reach[a] = math.Float64bits(v)
	}
}

// reaches writes to out the reach of each of the k centres in rows. panels has the same centres
// as in Panels, and distances is work space for k values.
func reaches[T Float](rows []T, k, d int, panels, distances, out []T) {
	unit, least, most := 0x1p-24, 0x1p-90, 0x1p120
	if is64[T]() {
		unit, least, most = 0x1p-53, 0x1p-900, 0x1p900
	}
	slack := 1 - float64(16*float64(d+8)*unit)
	for a := range k {
		panelDistances(active, rows[a*d:(a+1)*d], panels, distances)
		nearest := T(math.Inf(1))
		for b, v := range distances {
			if v != v { // NaN: no bound is known
				nearest = v
				break
			}
			if b != a {
				nearest = min(nearest, v)
			}
		}
		h := float64(nearest) / 4
		if !(h >= least && h <= most) {
			h = 0
		}
		out[a] = T(h * slack)
	}
}
