package kernel

import "unsafe"

// AccumulateCentroids adds each of the n rows of x, times its weight, to the sums of centre
// assign[i], in row order. sums[a*(d+1) : (a+1)*(d+1)] holds the d sums of centre a and then
// its weight: sum = sum + w*x[j], weight = weight + w. The sums are computed in float64 also
// for rows of float32. A nil w means that every row has weight 1. A row with assign[i] = -1 is
// skipped.
func AccumulateCentroids[T Float](x []T, n, d int, w []float64, assign []int32, sums []float64) {
	accumulateCentroids(active, x, n, d, w, assign, sums, 0)
}

// accumulateCentroids does the same as AccumulateCentroids. For each element of x, it also
// prefetches the element that is ahead elements later.
func accumulateCentroids[T Float](form dispatch, x []T, n, d int, w []float64, assign []int32, sums []float64, ahead int) {
	x, assign = x[:n*d], assign[:n]
	if w != nil {
		w = w[:n]
	}
	if form.avx2 && d > 0 && n > 0 {
		accumulateInAssembly(x, n, d, w, assign, sums, ahead)
		return
	}
	for i, a := range assign {
		if a < 0 {
			continue
		}
		s := sums[int(a)*(d+1) : int(a)*(d+1)+d+1]
		row := x[i*d : i*d+d]
		if w != nil {
			s[d] += w[i]
			for j, v := range row {
				s[j] += float64(w[i] * float64(v))
			}
			continue
		}
		s[d]++
		s = s[:d]
		for len(row) >= 8 && len(s) >= 8 {
			s[0] += float64(row[0])
			s[1] += float64(row[1])
			s[2] += float64(row[2])
			s[3] += float64(row[3])
			s[4] += float64(row[4])
			s[5] += float64(row[5])
			s[6] += float64(row[6])
			s[7] += float64(row[7])
			s, row = s[8:], row[8:]
		}
		for j, v := range row {
			s[j] += float64(v)
		}
	}
}

func accumulateInAssembly[T Float](x []T, n, d int, w []float64, assign []int32, sums []float64, ahead int) {
	most := int32(-1)
	for _, a := range assign {
		most = max(most, a)
	}
	if int(most) >= len(sums)/(d+1) {
		panic("kernel: the number of a centre is out of range")
	}
	var one T
	ahead *= int(unsafe.Sizeof(one))
	for step, i := rowsPerCall[T](d), 0; i < n; i += step {
		m := min(step, n-i)
		switch {
		case len(sums) == 0: // there is no centre, so no row is assigned
		case is64[T]() && w == nil:
			accumulate64(of64(x[i*d:]), m, d, &assign[i], &sums[0], ahead)
		case is64[T]():
			accumulateWeighted64(of64(x[i*d:]), m, d, &w[i], &assign[i], &sums[0], ahead)
		case w == nil:
			accumulate32(of32(x[i*d:]), m, d, &assign[i], &sums[0], ahead)
		default:
			accumulateWeighted32(of32(x[i*d:]), m, d, &w[i], &assign[i], &sums[0], ahead)
		}
	}
}

// Inertia returns inertia plus the sum of w[i]*dist[i]*dist[i] over the n rows, in row order:
// acc = acc + w*(dist*dist). A nil w means that every row has weight 1. The argument inertia is
// the result for the preceding blocks of the same shard, or 0 for the first block.
func Inertia(n int, w, dist []float64, inertia float64) float64 {
	if w == nil {
		for _, v := range dist[:n] {
			inertia += float64(v * v)
		}
		return inertia
	}
	w = w[:n]
	for i, v := range dist[:n] {
		inertia += float64(w[i] * float64(v*v))
	}
	return inertia
}
