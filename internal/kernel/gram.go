package kernel

// Gram is the work space of [Gram.AddRows]. For 256 features or more, AddRows allocates half a
// megabyte at its first call and reuses this memory later. The zero value is ready to use. Only
// one goroutine at a time may use a Gram.
type Gram struct{ right []float64 }

// AddRows adds to out the weighted products of the features of the n rows of x, in row order:
// out[a*(a+1)/2+b] = out[a*(a+1)/2+b] + (h[i]*x[i*d+a])*x[i*d+b] for b ≤ a and i = 0, 1, …,
// n-1. The result is the Hessian of a linear model. out is the lower triangle row by row,
// d*(d+1)/2 values. A nil h means that every row has weight 1.
//
// With very many features, out does not fit in any cache, and there is one pass over it for
// every 256 rows. The caller should therefore pass at least 256 rows at a time.
func (g *Gram) AddRows(x []float64, n, d int, h, out []float64) {
	gramRows(active, g, x, n, d, h, out)
}

func gramRows(form dispatch, g *Gram, x []float64, n, d int, h, out []float64) {
	x = x[:n*d]
	out = out[:d*(d+1)/2]
	if h != nil {
		h = h[:n]
	}
	switch {
	case n == 0:
	case !form.avx2 || d < lanes:
		gramParts(form, x, n, d, h, out)
	case d < wideGram:
		gramTiles(form, x, n, d, h, out)
	default:
		gramPanels(form, g, x, n, d, h, out)
	}
}

// gramParts adds all rows of the data to gramPart consecutive outputs in a row of the triangle,
// and then continues with the next outputs. So the outputs stay in the first-level cache.
const gramPart = 512

// gramParts is the form of [Gram.AddRows] without assembly for matrix tiles.
func gramParts(form dispatch, x []float64, n, d int, h, out []float64) {
	for lo := 0; lo < d; lo += gramPart {
		for a := lo; a < d; a++ {
			hi := min(lo+gramPart, a+1)
			row := out[a*(a+1)/2+lo : a*(a+1)/2+hi]
			i := 0
			for ; i+4 <= n; i += 4 {
				r0, r1, r2, r3 := rows4(x, i, d)
				h0, h1, h2, h3 := 1.0, 1.0, 1.0, 1.0
				if h != nil {
					h0, h1, h2, h3 = h[i], h[i+1], h[i+2], h[i+3]
				}
				addScaled4(float64(h0*r0[a]), float64(h1*r1[a]), float64(h2*r2[a]), float64(h3*r3[a]),
					r0[lo:hi], r1[lo:hi], r2[lo:hi], r3[lo:hi], row)
			}
			for ; i < n; i++ {
				weight := 1.0
				if h != nil {
					weight = h[i]
				}
				r := x[i*d : i*d+d]
				axpy(form, float64(weight*r[a]), r[lo:hi], row)
			}
		}
	}
}

// gramTiles is the form of [Gram.AddRows] for d of at least eight. It writes the columns of the
// left factors of a tile, times h, to a panel. Then it multiplies the panel with all columns of
// the data up to the last column of the panel.
func gramTiles(form dispatch, x []float64, n, d int, h, out []float64) {
	var left [blockRows * wide]float64
	var weights [blockRows]float64
	fillWeights(weights[:], h, 0)
	for step, lo := rowBlock(d), 0; lo < n; lo += step {
		m := min(step, n-lo)
		block := x[lo*d : (lo+m)*d]
		fillWeights(weights[:m], h, lo)
		for first := 0; first < d; first += blockColumns {
			for a, rows := first, form.tileRows(); a < d; a += rows {
				if d-a <= quad {
					rows = quad
				}
				from := min(a, d-rows)
				scaleLeft(rows, weights[:], block[from:], d, m, left[:])
				for b := first; b < min(first+blockColumns, a+rows, d); b += lanes {
					gramTile(rows, &left[0], &block[min(b, d-lanes)], 8*d, m, d, from, a, b, out)
				}
			}
		}
	}
}

const (
	// wideGram is the smallest number of features for which gramPanels is used.
	wideGram = 256
	// gramPanels packs blocks of panelRows rows and panelColumns columns of the data. A block
	// fits in the second-level cache. The panel of the left factors and one panel of eight
	// columns fit in the first-level cache.
	panelRows, panelColumns = 256, 256
)

// gramPanels is the form of [Gram.AddRows] for wideGram features or more. Consecutive rows of
// the data are then so far apart that each step down a column would touch another memory page.
// So the columns are packed into panels of eight. The triangle is computed in strips of
// panelColumns columns.
func gramPanels(form dispatch, g *Gram, x []float64, n, d int, h, out []float64) {
	if g.right == nil {
		g.right = make([]float64, panelRows*panelColumns)
	}
	right := g.right
	var left [panelRows * wide]float64
	var weights [panelRows]float64
	fillWeights(weights[:], h, 0)
	for lo := 0; lo < n; lo += panelRows {
		m := min(panelRows, n-lo)
		block := x[lo*d : (lo+m)*d]
		fillWeights(weights[:m], h, lo)
		for first := 0; first < d; first += panelColumns {
			last := min(first+panelColumns, d)
			packPanels(block, m, d, first, last, right)
			for a, rows := first, form.tileRows(); a < d; a += rows {
				if d-a <= quad {
					rows = quad
				}
				from := min(a, d-rows)
				scaleLeft(rows, weights[:], block[from:], d, m, left[:])
				for b := first; b < min(last, a+rows); b += lanes {
					gramTile(rows, &left[0], &right[(b-first)*m], 8*lanes, m, d, from, a, b, out)
				}
			}
		}
	}
}

// packPanels copies the columns first to last-1 of the m rows of block to right, in panels of
// eight columns. A panel is row-major. If fewer than eight columns are left, the panel has the
// last eight columns of block.
func packPanels(block []float64, m, d, first, last int, right []float64) {
	for b := first; b < last; b += lanes {
		from := min(b, d-lanes)
		panel := right[(b-first)*m : (b-first+lanes)*m]
		for i := range m {
			*(*[lanes]float64)(panel[i*lanes:]) = *(*[lanes]float64)(block[i*d+from:])
		}
	}
}

// fillWeights copies h[lo:] to weights, or sets all weights to 1 if h is nil.
func fillWeights(weights, h []float64, lo int) {
	if h != nil {
		copy(weights, h[lo:])
		return
	}
	for i := range weights {
		weights[i] = 1
	}
}

// scaleLeft writes a panel to left. It has the first columns of each of the m rows of block,
// times the weight of the row. The argument rows, four or eight, is the number of these
// columns; each of them belongs to one row of a tile.
func scaleLeft(rows int, weights, block []float64, d, m int, left []float64) {
	if rows == wide {
		wideScalePanel(&weights[0], &block[0], 8*d, m, &left[0])
	} else {
		scalePanel(&weights[0], &block[0], 8*d, m, &left[0])
	}
}

// gramTile adds to one tile of the triangle. The tile has the rows r with from <= r <
// from+rows, and eight columns, the first of which is b. It leaves out the rows before row a,
// which another tile covers, and the elements to the right of the diagonal. The m rows of the
// data for these columns (or for the last eight columns of the data) begin at right and are
// stride bytes apart.
func gramTile(rows int, left, right *float64, stride, m, d, from, a, b int, out []float64) {
	if b+lanes <= a+1 && from == a {
		var at [wide]*float64
		for r := range rows {
			row := a + r
			at[r] = &out[row*(row+1)/2+b]
		}
		outerTileOf(rows, left, 8*rows, right, stride, m, &at)
		return
	}
	first := min(b, d-lanes)
	var edge [tileSize]float64
	for r := a - from; r < rows; r++ {
		row := from + r
		copy(edge[r*lanes+b-first:(r+1)*lanes], out[row*(row+1)/2+b:row*(row+1)/2+row+1])
	}
	at := rowsAt(&edge)
	outerTileOf(rows, left, 8*rows, right, stride, m, &at)
	for r := a - from; r < rows; r++ {
		row := from + r
		copy(out[row*(row+1)/2+b:row*(row+1)/2+row+1], edge[r*lanes+b-first:(r+1)*lanes])
	}
}
