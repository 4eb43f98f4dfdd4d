package kernel

// The functions of this file apply the assembly of tile_amd64.s to whole matrices. Tiles of
// four or eight rows of outputs by eight columns stay in registers during the innermost loop,
// which runs over rows of the data for outer products, and over features for inner products. At
// the edges of a matrix a full tile is computed, and the outputs outside of the matrix are
// dropped.

const (
	quad     = 4 // rows of a tile
	wide     = 8 // rows of a tile with AVX-512
	tileSize = wide * lanes

	// Tiles process at most blockRows rows of the data at a time. They process fewer rows if
	// blockRows rows take more than about blockBytes bytes, so that the rows stay in the
	// first-level cache. blockColumns is the number of columns that are combined with all other
	// columns before the next blockColumns columns.
	blockRows    = 128
	blockBytes   = 32 << 10
	blockColumns = 64
)

// rowBlock returns the number of rows of d columns that tiles process at a time.
func rowBlock(d int) int {
	return max(min(blockBytes/(8*min(d, blockColumns)), blockRows), quad)
}

// tileRows returns the number of rows of the largest tiles.
func (form dispatch) tileRows() int {
	if form.avx512 {
		return wide
	}
	return quad
}

// outerTileOf adds outer products to a tile. The tile has four or eight rows, whose addresses
// are in out.
func outerTileOf(rows int, left *float64, gs int, x *float64, xs, n int, out *[wide]*float64) {
	if rows == wide {
		wideOuterTile(left, gs, x, xs, n, out)
	} else {
		outerTile(left, gs, x, xs, n, out[0], out[1], out[2], out[3])
	}
}

// rowsAt returns the addresses of the rows of a tile in edge.
func rowsAt(edge *[tileSize]float64) (at [wide]*float64) {
	for r := range at {
		at[r] = &edge[r*lanes]
	}
	return at
}

// addOuterTiles is [AddOuterRows] in assembly. The outputs after the last full tile are
// computed row by row.
func addOuterTiles(form dispatch, x []float64, n, d int, coef []float64, k int, out []float64) {
	tiled := k &^ (quad - 1)
	if d < lanes {
		tiled = 0
	}
	var column [blockRows]float64
	for step, lo := rowBlock(max(d, 1)), 0; lo < n; lo += step {
		m := min(step, n-lo)
		block, c := x[lo*d:(lo+m)*d], coef[lo*k:(lo+m)*k]
		for b := 0; b < d && tiled > 0; b += lanes {
			for a, rows := 0, form.tileRows(); a < tiled; a += rows {
				if a+rows > tiled {
					rows = quad
				}
				addOuterTile(rows, c[a:], k, block, m, d, b, out[a*d:(a+rows)*d])
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

// addOuterTile computes one tile of addOuterTiles. The tile has the first rows of the matrix in
// to, and the columns from column b on.
func addOuterTile(rows int, coef []float64, k int, block []float64, m, d, b int, to []float64) {
	if b+lanes <= d {
		var at [wide]*float64
		for r := range rows {
			at[r] = &to[r*d+b]
		}
		outerTileOf(rows, &coef[0], 8*k, &block[b], 8*d, m, &at)
		return
	}
	from := d - lanes
	var edge [tileSize]float64
	for r := range rows {
		copy(edge[r*lanes+b-from:(r+1)*lanes], to[r*d+b:r*d+d])
	}
	at := rowsAt(&edge)
	outerTileOf(rows, &coef[0], 8*k, &block[from], 8*d, m, &at)
	for r := range rows {
		copy(to[r*d+b:r*d+d], edge[r*lanes+b-from:(r+1)*lanes])
	}
}

// innerTiles is [MulRows] in assembly for n of at least four. The last rows may be computed
// twice.
func innerTiles(form dispatch, x []float64, n, d int, panels []float64, k int, out []float64) {
	const block = 64
	for lo := 0; lo < n; lo += block {
		hi := min(lo+block, n)
		for p := 0; p < k; p += lanes {
			for i, rows := lo, form.tileRows(); i < hi; i += rows {
				if i+rows > hi {
					rows = quad
				}
				from := min(i, n-rows)
				innerTile(rows, x[from*d:], d, panels[p*d:], k-p, out[from*k+p:], k)
			}
		}
	}
}

// innerTile computes one tile of innerTiles. Row r of the tile begins at out[r*k]. If left is
// less than eight, only the first left columns are written.
func innerTile(rows int, x []float64, d int, panel []float64, left int, out []float64, k int) {
	var edge [tileSize]float64
	to, stride := &edge[0], lanes
	if lanes <= left {
		to, stride = &out[0], k
	}
	if rows == wide {
		wideMulTile(&x[0], 8*d, d, &panel[0], to, 8*stride)
	} else {
		mulTile(&x[0], 8*d, d, &panel[0], to, 8*stride)
	}
	if lanes > left {
		for r := range rows {
			copy(out[r*k:r*k+left], edge[r*lanes:])
		}
	}
}
