package kernel

import "math"

// CSR is a block of sparse rows: the entries of row i are Col[p] and Val[p] for p from
// RowPtr[i] to RowPtr[i+1]-1, with ascending columns. Results depend on the order of the
// entries. The caller must pass valid columns: a column that is outside of the other operand
// panics, like any index out of range.
type CSR struct {
	RowPtr []int64
	Col    []int32
	Val    []float64
	// OnDisk says that Col is in a memory-mapped file. Its contents may change when a page is
	// read from the disk again, so columns are checked before every use.
	OnDisk bool

	next  *CSR // the rows that are used after these, or nil; see Before
	below int  // if not 0, all columns are known to be less than below, and the rows to be ordered; see Checked
	seen  int  // the columns of the first seen rows are known to be less than limit; see CheckedRange
	limit int
}

// Rows returns the number of rows.
func (x CSR) Rows() int { return max(len(x.RowPtr)-1, 0) }

// Row returns the entries of row i, which must not be modified.
func (x CSR) Row(i int) (col []int32, val []float64) {
	lo, hi := x.RowPtr[i], x.RowPtr[i+1]
	return x.Col[lo:hi], x.Val[lo:hi]
}

// SparseCenters is a set of k dense centres in d dimensions, laid out for sparse rows. The
// values of all centres for one feature are adjacent, so that each entry of a row reads one
// contiguous range of memory. It is filled by [SparseCenters.Set] before each round of searches
// and then read by any number of goroutines.
type SparseCenters struct {
	k, d, groups int
	lanes        [][4]float64 // lanes[j*groups+g][l] is feature j of centre 4g+l
	norms        []float64    // squared norms, padded to 4*groups
	most         float64      // the largest of norms
	slack        float64      // bound of the relative error of a difference of scores
}

// NewSparseCenters returns room for k centres in d dimensions.
func NewSparseCenters(k, d int) *SparseCenters {
	groups := (k + 3) / 4
	return &SparseCenters{
		k: k, d: d, groups: groups,
		lanes: make([][4]float64, d*groups),
		norms: make([]float64, 4*groups),
		// A sum of n products has an error of at most n·2^-53 times the sum of their
		// magnitudes. A score consists of two such sums, and so does a distance. Two scores are
		// compared. The rest of the factor is a safety margin.
		slack: float64(d+16) * 0x1p-50,
	}
}

// K returns the number of centres.
func (c *SparseCenters) K() int { return c.k }

// D returns the number of dimensions.
func (c *SparseCenters) D() int { return c.d }

// Set copies the k*d values of centers, row-major. It allocates nothing. It must not run
// concurrently with a search. For the cosine functions the centres must have norm 1 or 0.
func (c *SparseCenters) Set(centers []float64) {
	c.most = 0
	for a := range c.k {
		row := centers[a*c.d : (a+1)*c.d]
		c.norms[a] = Dot(row, row)
		c.most = max(c.most, c.norms[a])
		for j, v := range row {
			c.lanes[j*c.groups+a/4][a%4] = v
		}
	}
}

// dots returns the inner products of a sparse row with the four centres of group g. Each is
// computed by the steps acc = acc + val*centre for the entries in order, with acc = 0 at the
// beginning.
func (c *SparseCenters) dots(col []int32, val []float64, g int) (a0, a1, a2, a3 float64) {
	col = col[:len(val)]
	for p, v := range val {
		lane := &c.lanes[int(col[p])*c.groups+g]
		a0 += float64(v * lane[0])
		a1 += float64(v * lane[1])
		a2 += float64(v * lane[2])
		a3 += float64(v * lane[3])
	}
	return a0, a1, a2, a3
}

// NearestSparse returns the index of the centre nearest to a sparse row, whose columns ascend,
// and the Euclidean distance to it. It is the centre that [Nearest] returns for the same row in
// dense form. A NaN distance is never the smallest; if all distances are NaN, NearestSparse
// returns -1 and NaN.
//
// Let x be the row, c a centre and p their inner product. The score |c|² - 2p orders centres
// like the distance, and takes time only for the entries of the row. But if rows and centres
// are close together compared with their norms, the score loses precision by cancellation. So
// scores decide only if the two least scores differ by more than their rounding errors.
// Otherwise the distances to the centres with scores in that range are computed feature by
// feature. The squared distance is |x|² + score. If this sum is small compared with |x|² and
// |c|², the squared distance is computed feature by feature, too.
func NearestSparse(col []int32, val []float64, c *SparseCenters) (int, float64) {
	best, second, near := math.Inf(1), math.Inf(1), -1
	for g := range c.groups {
		var p [4]float64
		p[0], p[1], p[2], p[3] = c.dots(col, val, g)
		for l, n := 0, min(4, c.k-4*g); l < n; l++ {
			s := c.norms[4*g+l] - float64(2*p[l])
			if s < best {
				best, second, near = s, best, 4*g+l
			} else {
				second = min(second, s) // NaN if s is NaN
			}
		}
	}
	norm := Dot(val, val)
	margin := float64((norm + c.most) * c.slack)
	if !(second-best > margin) {
		return c.nearestAmong(col, val, best+margin)
	}
	const exact = 0x1p-16 // above this share, the relative error of the squared distance is at most about 1e-11
	square := norm + best
	if !(square > exact*(norm+c.norms[near])) {
		square = c.squaredDistance(col, val, near)
	}
	return near, math.Sqrt(square)
}

// nearestAmong is NearestSparse for the centres whose score is not above limit. It compares
// their squared distances, computed feature by feature.
func (c *SparseCenters) nearestAmong(col []int32, val []float64, limit float64) (int, float64) {
	best, near := math.Inf(1), -1
	for g := range c.groups {
		var p [4]float64
		p[0], p[1], p[2], p[3] = c.dots(col, val, g)
		for l, n := 0, min(4, c.k-4*g); l < n; l++ {
			a := 4*g + l
			if c.norms[a]-float64(2*p[l]) > limit {
				continue
			}
			if square := c.squaredDistance(col, val, a); square < best || near < 0 && square == best {
				best, near = square, a
			}
		}
	}
	if near < 0 {
		return -1, math.NaN()
	}
	return near, math.Sqrt(best)
}

// squaredDistance returns the [SquaredDistance] of a sparse row and centre a.
func (c *SparseCenters) squaredDistance(col []int32, val []float64, a int) float64 {
	g, l := a/4, a%4
	var acc float64
	p := 0
	for j := range c.d {
		x := 0.0
		if p < len(val) && int(col[p]) == j {
			x = val[p]
			p++
		}
		t := x - c.lanes[j*c.groups+g][l]
		acc += float64(t * t)
	}
	return acc
}

// NearestSparseCosine is [NearestCosine] for a sparse row. The inner products and the norm are
// sums over the entries of the row.
func NearestSparseCosine(col []int32, val []float64, c *SparseCenters) (int, float64) {
	near, dist, _, _ := c.nearestCosine(col, val)
	return near, dist
}

// nearestCosine returns the results of NearestSparseCosine, and pre and inv of direction(val).
func (c *SparseCenters) nearestCosine(col []int32, val []float64) (near int, dist, pre, inv float64) {
	pre, inv, ok := direction(val)
	if !ok {
		return -1, math.NaN(), pre, inv
	}
	best := math.Inf(-1)
	near = -1
	for g := range c.groups {
		var p [4]float64
		if pre == 1 {
			p[0], p[1], p[2], p[3] = c.dots(col, val, g)
		} else {
			for i, v := range val {
				for l, y := range c.lanes[int(col[i])*c.groups+g] {
					p[l] += float64(float64(v*pre) * y)
				}
			}
		}
		for l, n := 0, min(4, c.k-4*g); l < n; l++ {
			if p[l] > best {
				best, near = p[l], 4*g+l
			}
		}
	}
	return near, cosineDistance(near, best, inv), pre, inv
}

// AssignSparse writes to assign and dist the results of [NearestSparse] for each row of x.
func AssignSparse(x CSR, c *SparseCenters, assign []int32, dist []float64) {
	for i := range x.Rows() {
		col, val := x.Row(i)
		near, v := NearestSparse(col, val, c)
		assign[i], dist[i] = int32(near), v
	}
}

// AssignSparseCosine writes to assign and dist the results of [NearestSparseCosine] for each
// row of x.
func AssignSparseCosine(x CSR, c *SparseCenters, assign []int32, dist []float64) {
	for i := range x.Rows() {
		col, val := x.Row(i)
		near, v := NearestSparseCosine(col, val, c)
		assign[i], dist[i] = int32(near), v
	}
}

// addSparse adds w*((val*pre)*inv) for each entry to the sum of its column, and w to the last
// element of sum. If pre or inv is 1, the multiplication by it changes no bits.
func addSparse(col []int32, val []float64, pre, inv, w float64, sum []float64) {
	col = col[:len(val)]
	sum[len(sum)-1] += w
	sum = sum[:len(sum)-1]
	for p, v := range val {
		sum[col[p]] += float64(w * float64(float64(v*pre)*inv))
	}
}

// AssignAccumulateSparse does [AssignSparse], [AccumulateCentroids] and [Inertia] in one pass,
// with the same bits. The entries of each row are added in order, and an absent entry does not
// change a sum. If dist is nil, the distances are not written.
func AssignAccumulateSparse(x CSR, c *SparseCenters, w []float64, assign []int32, dist, sums []float64, inertia float64) float64 {
	for i := range x.Rows() {
		col, val := x.Row(i)
		near, v := NearestSparse(col, val, c)
		inertia = c.account(i, near, v, 1, 1, col, val, w, assign, dist, sums, inertia)
	}
	return inertia
}

// AssignAccumulateSparseCosine is [AssignAccumulateSparse] for the cosine distance. The rows
// are added as unit vectors, as in [AccumulateCosine].
func AssignAccumulateSparseCosine(x CSR, c *SparseCenters, w []float64, assign []int32, dist, sums []float64, inertia float64) float64 {
	for i := range x.Rows() {
		col, val := x.Row(i)
		near, v, pre, inv := c.nearestCosine(col, val)
		inertia = c.account(i, near, v, pre, inv, col, val, w, assign, dist, sums, inertia)
	}
	return inertia
}

// account records that centre near is the nearest to row i, at distance v: it sets assign[i]
// and dist[i], adds the row to the sums of the centre, and returns the inertia with the row.
func (c *SparseCenters) account(i, near int, v, pre, inv float64, col []int32, val []float64, w []float64, assign []int32, dist, sums []float64, inertia float64) float64 {
	assign[i] = int32(near)
	if dist != nil {
		dist[i] = v
	}
	weight := weight(w, i)
	if near >= 0 {
		addSparse(col, val, pre, inv, weight, sums[near*(c.d+1):near*(c.d+1)+c.d+1])
	}
	return inertia + float64(weight*float64(v*v))
}
