package kernel

// The functions of this file lead the assembly of tile_amd64.s over whole
// matrices: four rows of outputs by eight columns stay in registers while the
// innermost loop runs, over rows of the data for outer products, over features
// for inner products. What is left at the edges is computed in full tiles whose
// surplus is dropped.

const (
	tileRows = 4
	tileSize = tileRows * lanes

	// blockRows is the most rows of data that tiles go over at a time, blockBytes
	// what of them should stay in the first-level cache, and blockColumns the
	// columns that are used against all others before the next come.
	blockRows    = 128
	blockBytes   = 32 << 10
	blockColumns = 64
)

// rowBlock returns the number of rows of d columns that tiles take at a time.
func rowBlock(d int) int {
	return max(min(blockBytes/(8*min(d, blockColumns)), blockRows), tileRows)
}

// addOuterTiles is [AddOuterRows]. The outputs that do not fill tiles go row by
// row.
func addOuterTiles(x []float64, n, d int, coef []float64, k int, out []float64) {
	tiled := k &^ (tileRows - 1)
	if d < lanes {
		tiled = 0
	}
	var column [blockRows]float64
	for step, lo := rowBlock(max(d, 1)), 0; lo < n; lo += step {
		m := min(step, n-lo)
		block, c := x[lo*d:(lo+m)*d], coef[lo*k:(lo+m)*k]
		for b := 0; b < d && tiled > 0; b += lanes {
			for a := 0; a < tiled; a += tileRows {
				to := out[a*d : (a+tileRows)*d]
				if b+lanes <= d {
					outerTile(&c[a], 8*k, &block[b], 8*d, m, &to[b], &to[d+b], &to[2*d+b], &to[3*d+b])
					continue
				}
				from := d - lanes
				var edge [tileSize]float64
				for r := range tileRows {
					copy(edge[r*lanes+b-from:(r+1)*lanes], to[r*d+b:r*d+d])
				}
				outerTile(&c[a], 8*k, &block[from], 8*d, m, &edge[0], &edge[lanes], &edge[2*lanes], &edge[3*lanes])
				for r := range tileRows {
					copy(to[r*d+b:r*d+d], edge[r*lanes+b-from:(r+1)*lanes])
				}
			}
		}
		for a := tiled; a < k && d > 0; a++ {
			for i := range m {
				column[i] = c[i*k+a]
			}
			addScaledRows64(&block[0], m, d, &column[0], &out[a*d])
		}
	}
}

// gramTiles is [GramRows] for d of at least eight. The left side of the products
// is scaled by h into a panel of four columns, which then meets all columns up
// to its own.
func gramTiles(x []float64, n, d int, h, out []float64) {
	var left [blockRows * tileRows]float64
	var weights [blockRows]float64
	for i := range weights {
		weights[i] = 1
	}
	step := rowBlock(d)
	for lo := 0; lo < n; lo += step {
		m := min(step, n-lo)
		block := x[lo*d : (lo+m)*d]
		if h != nil {
			copy(weights[:], h[lo:lo+m])
		}
		for first := 0; first < d; first += blockColumns {
			for a := first; a < d; a += tileRows {
				from := min(a, d-tileRows)
				scalePanel(&weights[0], &block[from], 8*d, m, &left[0])
				for b := first; b < min(first+blockColumns, a+tileRows, d); b += lanes {
					if b+lanes <= a+1 && from == a {
						o := out[a*(a+1)/2+b:]
						outerTile(&left[0], 8*tileRows, &block[b], 8*d, m, &o[0], &o[a+1], &o[2*a+3], &o[3*a+6])
						continue
					}
					gramEdge(block, m, d, &left, from, a, b, out)
				}
			}
		}
	}
}

// gramEdge is a tile at the diagonal or at the end of the columns: rows from..
// of which those before a are done, columns from b, of which none is beyond its
// row.
func gramEdge(block []float64, m, d int, left *[blockRows * tileRows]float64, from, a, b int, out []float64) {
	at := min(b, d-lanes)
	var edge [tileSize]float64
	for r := a - from; r < tileRows; r++ {
		row := from + r
		copy(edge[r*lanes+b-at:(r+1)*lanes], out[row*(row+1)/2+b:row*(row+1)/2+row+1])
	}
	outerTile(&left[0], 8*tileRows, &block[at], 8*d, m, &edge[0], &edge[lanes], &edge[2*lanes], &edge[3*lanes])
	for r := a - from; r < tileRows; r++ {
		row := from + r
		copy(out[row*(row+1)/2+b:row*(row+1)/2+row+1], edge[r*lanes+b-at:(r+1)*lanes])
	}
}

// innerTiles is [MulRows], or [SquaredDistanceRows], for n of at least four. The
// last rows may be computed twice.
func innerTiles(x []float64, n, d int, panels []float64, k int, out []float64, distance bool) {
	const block = 64
	for lo := 0; lo < n; lo += block {
		hi := min(lo+block, n)
		for p := 0; p < k; p += lanes {
			panel := &panels[p*d]
			for i := lo; i < hi; i += tileRows {
				i := min(i, n-tileRows)
				var edge [tileSize]float64
				to, stride := &edge[0], lanes
				if p+lanes <= k {
					to, stride = &out[i*k+p], k
				}
				if distance {
					distanceTile(&x[i*d], 8*d, d, panel, to, 8*stride)
				} else {
					mulTile(&x[i*d], 8*d, d, panel, to, 8*stride)
				}
				if p+lanes > k {
					for r := range tileRows {
						copy(out[(i+r)*k+p:(i+r)*k+k], edge[r*lanes:])
					}
				}
			}
		}
	}
}
