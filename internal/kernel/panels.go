package kernel

// Panels is a k by d matrix of centres, in either precision, laid out for the squared distances
// of a row to all centres. Eight centres form a panel, feature by feature, so that eight
// distances are computed together. It is built once, filled by [Panels.Set], and then read by
// any number of goroutines.
//
// Unlike Panels, [Centers] also has the data for the search of the nearest centre.
type Panels[T Float] struct {
	k, d   int
	values []T
}

// NewPanels returns room for k centres in d dimensions, all 0. All memory is allocated here.
func NewPanels[T Float](k, d int) *Panels[T] {
	return &Panels[T]{k: k, d: d, values: newPanels[T](k, d)}
}

// K returns the number of centres.
func (p *Panels[T]) K() int { return p.k }

// D returns the number of dimensions.
func (p *Panels[T]) D() int { return p.d }

// Set copies the k*d values of centers, row-major. It allocates nothing. It must not run
// concurrently with To.
func (p *Panels[T]) Set(centers []T) { setPanels(p.values, centers, p.k, p.d) }

// To writes to out the squared distances of x to the k centres, each computed as by
// [SquaredDistance] but in the precision of T. x has at least d values, and out at least k.
func (p *Panels[T]) To(x, out []T) { p.to(active, x, out) }

func (p *Panels[T]) to(form dispatch, x, out []T) {
	panelDistances(form, x[:p.d], p.values, out[:p.k])
}

// panelDistances writes the squared distances of x to the first len(out)
// centres of panels.
func panelDistances[T Float](form dispatch, x, panels, out []T) {
	d := len(x)
	if form.avx2 && d > 0 {
		panelDistancesInAssembly(form, x, panels, out)
		return
	}
	for p := 0; p < len(out); p += lanes {
		panel := panels[p*d : (p+lanes)*d]
		var a0, a1, a2, a3, a4, a5, a6, a7 T
		for _, v := range x {
			c := (*[lanes]T)(panel)
			panel = panel[lanes:]
			t0 := v - c[0]
			a0 += T(t0 * t0)
			t1 := v - c[1]
			a1 += T(t1 * t1)
			t2 := v - c[2]
			a2 += T(t2 * t2)
			t3 := v - c[3]
			a3 += T(t3 * t3)
			t4 := v - c[4]
			a4 += T(t4 * t4)
			t5 := v - c[5]
			a5 += T(t5 * t5)
			t6 := v - c[6]
			a6 += T(t6 * t6)
			t7 := v - c[7]
			a7 += T(t7 * t7)
		}
		sums := [lanes]T{a0, a1, a2, a3, a4, a5, a6, a7}
		copy(out[p:], sums[:])
	}
}

// panelDistancesInAssembly is panelDistances in assembly. One call takes as many panels as fill
// the registers. The last panels go through a buffer if they have padding.
func panelDistancesInAssembly[T Float](form dispatch, x, panels, out []T) {
	d, k := len(x), len(out)
	var edge [8 * lanes]T
	for p := 0; p < k; {
		left := (k - p + lanes - 1) / lanes
		count := min(left, lanesOf[T]())
		if form.avx512 && left >= 8 {
			count = 8
		}
		for count&(count-1) != 0 {
			count &= count - 1 // clears low bits until the largest power of two is left
		}
		to := edge[:]
		if p+count*lanes <= k {
			to = out[p:]
		}
		panel := panels[p*d:]
		switch {
		case is64[T]() && count == 8:
			wideDistance8Panels(of64(x), d, of64(panel), of64(to))
		case is64[T]() && count == 4:
			distance4Panels64(of64(x), d, of64(panel), of64(to))
		case is64[T]() && count == 2:
			distance2Panels64(of64(x), d, of64(panel), of64(to))
		case is64[T]():
			distance1Panels64(of64(x), d, of64(panel), of64(to))
		case count == 8:
			distance8Panels32(of32(x), d, of32(panel), of32(to))
		case count == 4:
			distance4Panels32(of32(x), d, of32(panel), of32(to))
		case count == 2:
			distance2Panels32(of32(x), d, of32(panel), of32(to))
		default:
			distance1Panels32(of32(x), d, of32(panel), of32(to))
		}
		if p+count*lanes > k {
			copy(out[p:], edge[:])
		}
		p += count * lanes
	}
}

// OwnDistances writes to out the squared distance of each of the n rows of x to row near[i] of
// centers, which is row-major. Each is computed as by [SquaredDistance], but in the precision
// of T.
func OwnDistances[T Float](x []T, n, d int, centers []T, near []int32, out []T) {
	ownDistances(active, x, n, d, centers, near, out)
}

func ownDistances[T Float](form dispatch, x []T, n, d int, centers []T, near []int32, out []T) {
	x, near, out = x[:n*d], near[:n], out[:n]
	i := 0
	if form.avx2 && d > 0 && n >= 4 {
		checkRows(near, len(centers)/d)
		count := 16 // number of rows that a register holds
		if is64[T]() {
			count = 8
		}
		for step := rowsPerCall[T](d); n-i >= 4; {
			m := min(step, n-i) &^ 3
			if form.avx512 && m >= count {
				m &^= count - 1
			}
			switch {
			case form.avx512 && m >= count && is64[T]():
				wideOwnDistances64(of64(x[i*d:]), m, d, of64(centers), &near[i], of64(out[i:]))
			case form.avx512 && m >= count:
				wideOwnDistances32(of32(x[i*d:]), m, d, of32(centers), &near[i], of32(out[i:]))
			case is64[T]():
				ownDistances64(of64(x[i*d:]), m, d, of64(centers), &near[i], of64(out[i:]))
			default:
				ownDistances32(of32(x[i*d:]), m, d, of32(centers), &near[i], of32(out[i:]))
			}
			i += m
		}
	}
	for ; i+4 <= n; i += 4 {
		r0, r1, r2, r3 := rows4(x, i, d)
		own := func(r int) []T {
			at := int(near[i+r]) * d
			return centers[at : at+d][:len(r0)]
		}
		c0, c1, c2, c3 := own(0), own(1), own(2), own(3)
		var a0, a1, a2, a3 T
		for j, v := range r0 {
			t0, t1, t2, t3 := v-c0[j], r1[j]-c1[j], r2[j]-c2[j], r3[j]-c3[j]
			a0 += T(t0 * t0)
			a1 += T(t1 * t1)
			a2 += T(t2 * t2)
			a3 += T(t3 * t3)
		}
		q := (*[4]T)(out[i : i+4])
		q[0], q[1], q[2], q[3] = a0, a1, a2, a3
	}
	for ; i < n; i++ {
		at := int(near[i]) * d
		out[i] = squaredDistance(x[i*d:i*d+d], centers[at:at+d])
	}
}

// checkRows panics if a row number is not from 0 to k-1. The assembly does not check that; in
// the pure Go form indexing does.
func checkRows(rows []int32, k int) {
	var most uint32
	for _, a := range rows {
		most = max(most, uint32(a))
	}
	if int64(most) >= int64(k) {
		panic("kernel: the number of a centre is out of range")
	}
}
