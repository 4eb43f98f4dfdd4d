package evaluate

// moments are the exact weighted sums of a value and of its square.
type moments struct {
	Weight, Total, Squares sum
}

// add adds a value x of weight w. While w, x and w·x are below 1e150 in absolute value, only
// parts below the smallest float64 are lost.
func (m *moments) add(w, x float64) {
	m.Weight.add(w)
	p := float64(w * x)
	m.Total.add(p)
	m.Squares.addProduct(p, x)
	if e := productError(w, x, p); e != 0 {
		m.Total.add(e)
		m.Squares.addProduct(e, x)
	}
}

func (m *moments) merge(o *moments) {
	m.Weight.merge(&o.Weight)
	m.Total.merge(&o.Total)
	m.Squares.merge(&o.Squares)
}

// spread returns the weighted sum of the squared distances to the mean.
func (m *moments) spread() float64 { return spread(&m.Weight, &m.Total, &m.Squares) }

// mean returns the weighted mean of values.
func (m *moments) mean() float64 { return m.Total.value() / m.Weight.value() }
