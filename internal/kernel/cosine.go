package kernel

import "math"

// Cosine distance is 1 - cos of the angle between a row and a centre. Centres have norm 1 (or
// 0) when they are set. Rows have any norm; each row is divided by its norm when it is
// processed.

// direction returns the factors that turn row x into its unit vector: u[j] = (x[j]*pre)*inv.
// pre is a power of two: 1 unless the squares of x overflow, or lose precision by underflow.
// inv is the inverse of the norm of x*pre, or 0 for a row of zeros. ok is false if x holds a
// NaN or an infinity.
func direction(x []float64) (pre, inv float64, ok bool) {
	pre = 1
	s := Dot(x, x)
	if !(s >= 0x1p-900 && s <= 0x1p900) {
		var top float64
		for _, v := range x {
			top = max(top, math.Abs(v))
		}
		if top == 0 {
			return 1, 0, true
		}
		if !(top <= math.MaxFloat64) {
			return 1, 0, false
		}
		_, e := math.Frexp(top)
		pre = math.Ldexp(1, min(-e, 1023))
		s = 0
		for _, v := range x {
			t := v * pre
			s += float64(t * t)
		}
	}
	return pre, 1 / math.Sqrt(s), true
}

// NearestCosine returns the index of the centre nearest to x by cosine distance, and that
// distance. The nearest centre has the largest inner product with x ([Dot], of x scaled by a
// power of two if its squares overflow or underflow); of several such centres, it is the one
// with the lowest index. The distance is 1 - product*(1/norm of x), clipped to [0, 2]. A row of
// zeros has distance 1 to every centre. A NaN product is never the largest; if all products are
// NaN, or x holds a NaN or an infinity, NearestCosine returns -1 and NaN.
func NearestCosine(x []float64, c *Centers) (int, float64) {
	near, dist, _, _ := c.nearestCosine(x[:c.d])
	return near, dist
}

// nearestCosine returns the results of NearestCosine, and pre and inv of direction(x).
func (c *Centers) nearestCosine(x []float64) (near int, dist, pre, inv float64) {
	pre, inv, ok := direction(x)
	if !ok {
		return -1, math.NaN(), pre, inv
	}
	best := math.Inf(-1)
	near = -1
	if pre != 1 {
		for a := range c.k {
			if p := dotScaled(x, pre, c.Row(a)); p > best {
				best, near = p, a
			}
		}
	} else {
		var out [8]float64
		for i := range c.groups {
			g := &c.groups[i]
			g.dots(x, &out)
			for l, p := range out[:g.width] {
				if p > best {
					best, near = p, int(g.first)+l
				}
			}
		}
	}
	return near, cosineDistance(near, best, inv), pre, inv
}

// cosineDistance returns the cosine distance to centre near for the inner product best, or NaN
// if near is negative. inv is as in direction.
func cosineDistance(near int, best, inv float64) float64 {
	if near < 0 {
		return math.NaN()
	}
	return min(max(1-float64(best*inv), 0), 2)
}

// dotScaled returns Dot(x*pre, c).
func dotScaled(x []float64, pre float64, c []float64) float64 {
	c = c[:len(x)]
	var acc float64
	for j, v := range x {
		acc += float64(float64(v*pre) * c[j])
	}
	return acc
}

// AssignCosine writes to assign and dist what [NearestCosine] returns for each of the n rows of
// x. The values of assign on entry are ignored.
func AssignCosine(x []float64, n int, c *Centers, assign []int32, dist []float64) {
	d := c.d
	dist = dist[:n]
	for i := range assign[:n] {
		near, v, _, _ := c.nearestCosine(x[i*d : i*d+d])
		assign[i], dist[i] = int32(near), v
	}
}

// AccumulateCosine does [AccumulateCentroids] for the unit vectors of the rows: sum = sum +
// w*((x[j]*pre)*inv), with pre = 1 and inv = 1/norm for rows whose squares neither overflow nor
// underflow. A row of zeros adds only its weight.
func AccumulateCosine(x []float64, n, d int, w []float64, assign []int32, sums []float64) {
	for i, a := range assign[:n] {
		if a >= 0 {
			row := x[i*d : i*d+d]
			pre, inv, _ := direction(row)
			addDirection(row, pre, inv, weight(w, i), sums[int(a)*(d+1):int(a)*(d+1)+d+1])
		}
	}
}

// weight returns w[i], or 1 if w is nil.
func weight(w []float64, i int) float64 {
	if w == nil {
		return 1
	}
	return w[i]
}

// addDirection adds w times the unit vector of row to the first len(row) elements of sum, and
// adds w to the next element.
func addDirection(row []float64, pre, inv, w float64, sum []float64) {
	sum[len(row)] += w
	sum = sum[:len(row)]
	for j, v := range row {
		sum[j] += float64(w * float64(float64(v*pre)*inv))
	}
}

// AssignAccumulateCosine does [AssignCosine], [AccumulateCosine] and [Inertia] in one pass,
// with the same bits. If dist is nil, the distances are not written.
func AssignAccumulateCosine(x []float64, n int, c *Centers, w []float64, assign []int32, dist, sums []float64, inertia float64) float64 {
	d := c.d
	for i := range assign[:n] {
		row := x[i*d : i*d+d]
		near, v, pre, inv := c.nearestCosine(row)
		assign[i] = int32(near)
		if dist != nil {
			dist[i] = v
		}
		weight := weight(w, i)
		if near >= 0 {
			addDirection(row, pre, inv, weight, sums[near*(d+1):near*(d+1)+d+1])
		}
		inertia += float64(weight * float64(v*v))
	}
	return inertia
}

// dots writes to out the inner products of x with the centres of g, each with the bits of
// [Dot].
func (g *group) dots(x []float64, out *[8]float64) {
	switch g.width {
	case 4:
		dots4(x, g.lanes4, out)
	case 5:
		dots5(x, g.lanes5, out)
	case 6:
		dots6(x, g.lanes6, out)
	case 7:
		dots7(x, g.lanes7, out)
	case 8:
		dots8(x, g.lanes8, out)
	}
}

func dots4(x []float64, lanes [][4]float64, out *[8]float64) {
	lanes = lanes[:len(x)]
	var a0, a1, a2, a3 float64
	for j, v := range x {
		c := &lanes[j]
		a0 += float64(v * c[0])
		a1 += float64(v * c[1])
		a2 += float64(v * c[2])
		a3 += float64(v * c[3])
	}
	out[0], out[1], out[2], out[3] = a0, a1, a2, a3
}

func dots5(x []float64, lanes [][5]float64, out *[8]float64) {
	lanes = lanes[:len(x)]
	var a0, a1, a2, a3, a4 float64
	for j, v := range x {
		c := &lanes[j]
		a0 += float64(v * c[0])
		a1 += float64(v * c[1])
		a2 += float64(v * c[2])
		a3 += float64(v * c[3])
		a4 += float64(v * c[4])
	}
	out[0], out[1], out[2], out[3], out[4] = a0, a1, a2, a3, a4
}

func dots6(x []float64, lanes [][6]float64, out *[8]float64) {
	lanes = lanes[:len(x)]
	var a0, a1, a2, a3, a4, a5 float64
	for j, v := range x {
		c := &lanes[j]
		a0 += float64(v * c[0])
		a1 += float64(v * c[1])
		a2 += float64(v * c[2])
		a3 += float64(v * c[3])
		a4 += float64(v * c[4])
		a5 += float64(v * c[5])
	}
	out[0], out[1], out[2], out[3], out[4], out[5] = a0, a1, a2, a3, a4, a5
}

func dots7(x []float64, lanes [][7]float64, out *[8]float64) {
	lanes = lanes[:len(x)]
	var a0, a1, a2, a3, a4, a5, a6 float64
	for j, v := range x {
		c := &lanes[j]
		a0 += float64(v * c[0])
		a1 += float64(v * c[1])
		a2 += float64(v * c[2])
		a3 += float64(v * c[3])
		a4 += float64(v * c[4])
		a5 += float64(v * c[5])
		a6 += float64(v * c[6])
	}
	out[0], out[1], out[2], out[3], out[4], out[5], out[6] = a0, a1, a2, a3, a4, a5, a6
}

func dots8(x []float64, lanes [][8]float64, out *[8]float64) {
	lanes = lanes[:len(x)]
	var a0, a1, a2, a3, a4, a5, a6, a7 float64
	for j, v := range x {
		c := &lanes[j]
		a0 += float64(v * c[0])
		a1 += float64(v * c[1])
		a2 += float64(v * c[2])
		a3 += float64(v * c[3])
		a4 += float64(v * c[4])
		a5 += float64(v * c[5])
		a6 += float64(v * c[6])
		a7 += float64(v * c[7])
	}
	out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7] = a0, a1, a2, a3, a4, a5, a6, a7
}
