package kernel

// lanes is the number of outputs in one panel of [Packed], [Panels] and [Centers].
const lanes = 8

// Packed is a k by d matrix laid out for products with rows. Eight of its rows form a panel,
// feature by feature, so that eight outputs are computed together. It is built once, filled by
// [Packed.Set], and then read by any number of goroutines.
type Packed struct {
	k, d   int
	panels []float64 // panels[(p*d+j)*8+l] is feature j of row 8p+l; padded with 0
}

// NewPacked returns room for k rows of d features, all 0. All memory is allocated here.
func NewPacked(k, d int) *Packed {
	return &Packed{k: k, d: d, panels: newPanels[float64](k, d)}
}

// K returns the number of rows, which is the number of outputs of [MulRows].
func (w *Packed) K() int { return w.k }

// D returns the number of features.
func (w *Packed) D() int { return w.d }

// Set copies the k*d values of rows, row-major. It allocates nothing. It must not run
// concurrently with a product.
func (w *Packed) Set(rows []float64) { setPanels(w.panels, rows, w.k, w.d) }

// newPanels returns the panels of k rows of d features, all 0.
func newPanels[T Float](k, d int) []T { return make([]T, (k+lanes-1)/lanes*lanes*d) }

// setPanels copies k rows of d features into panels and leaves the padding as it
// is.
func setPanels[T Float](panels, rows []T, k, d int) {
	for a := range k {
		row := rows[a*d : a*d+d]
		panel := panels[a/lanes*lanes*d:]
		for j, v := range row {
			panel[j*lanes+a%lanes] = v
		}
	}
}

// MulRows multiplies the n rows of x by the k rows of w: out[i*k+c] = [Dot](row i of x, row c
// of w), with the bits of Dot. out has n*k values.
func MulRows(x []float64, n int, w *Packed, out []float64) { mulRows(active, x, n, w, out) }

func mulRows(form dispatch, x []float64, n int, w *Packed, out []float64) {
	k, d := w.k, w.d
	x = x[:n*d]
	out = out[:n*k]
	if form.avx2 && n >= 4 && d > 0 {
		innerTiles(form, x, n, d, w.panels, k, out)
		return
	}
	for i := range n {
		row := x[i*d : i*d+d]
		to := out[i*k : i*k+k]
		for p := 0; p < k; p += lanes {
			acc := mulPanel(row, w.panels[p*d:(p+lanes)*d])
			copy(to[p:], acc[:])
		}
	}
}

// mulPanel returns the inner products of a row with the eight rows of a panel.
func mulPanel(row, panel []float64) (acc [lanes]float64) {
	var a0, a1, a2, a3, a4, a5, a6, a7 float64
	for _, v := range row {
		w := (*[lanes]float64)(panel)
		a0 += float64(v * w[0])
		a1 += float64(v * w[1])
		a2 += float64(v * w[2])
		a3 += float64(v * w[3])
		a4 += float64(v * w[4])
		a5 += float64(v * w[5])
		a6 += float64(v * w[6])
		a7 += float64(v * w[7])
		panel = panel[lanes:]
	}
	return [lanes]float64{a0, a1, a2, a3, a4, a5, a6, a7}
}
