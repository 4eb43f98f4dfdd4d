package objective

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// scaling converts parameters to coefficients of the unscaled features, and back.
type scaling struct {
	Shape
	d         int
	intercept bool
	centred   bool
	original  bool      // the penalty applies to the coefficients of the unscaled features
	mean      []float64 // nil if features are not centred
	inverse   []float64 // 1/scale of each feature; 0 if the feature has no influence
}

// scaling returns the scaling of l for the facts.
func (l Linear) scaling(f *rows.Facts) (scaling, error) {
	shape, err := l.shape(f)
	if err != nil {
		return scaling{}, err
	}
	s := scaling{Shape: shape, d: f.Dim(), intercept: !l.NoIntercept, original: l.NoStandardize, inverse: make([]float64, f.Dim())}
	s.centred = s.intercept && !l.Table.Sparse
	if s.centred {
		s.mean = f.Mean
	}
	for j, std := range f.Std {
		switch {
		case std > 0:
			s.inverse[j] = 1 / std
		case s.intercept || f.MaxAbs[j] == 0:
			// A constant feature is replaced by the intercept.
		default:
			s.inverse[j] = 1 / f.MaxAbs[j]
		}
	}
	return s, nil
}

// stride returns the number of parameters of a margin with coefficients.
func (s *scaling) stride() int {
	if s.intercept {
		return s.d + 1
	}
	return s.d
}

// parameters returns the number of all parameters.
func (s *scaling) parameters() int { return s.Margins*s.stride() + s.Constants }

// unscale converts the parameters v to coefficients of the unscaled features. It writes
// Margins×d coefficients to beta, and one addend for each margin to the slice add.
func (s *scaling) unscale(v, beta, add []float64) {
	for a := range s.Margins {
		own, b := v[a*s.stride():(a+1)*s.stride()], beta[a*s.d:(a+1)*s.d]
		copy(b, own[:s.d])
		kernel.ProdTo(b, s.inverse)
		add[a] = 0
		if s.intercept {
			add[a] = own[s.d]
		}
		if s.centred {
			add[a] -= kernel.Dot(b, s.mean)
		}
	}
	copy(add[s.Margins:], v[s.Margins*s.stride():])
}

// unscaleSome does what unscale does, for some features of rows that are not centred. It writes
// Margins×len(columns) coefficients to beta.
func (s *scaling) unscaleSome(v []float64, columns []int32, beta, add []float64) {
	for a := range s.Margins {
		own, b := v[a*s.stride():(a+1)*s.stride()], beta[a*len(columns):(a+1)*len(columns)]
		for u, j := range columns {
			b[u] = own[j] * s.inverse[j]
		}
		add[a] = 0
		if s.intercept {
			add[a] = own[s.d]
		}
	}
	copy(add[s.Margins:], v[s.Margins*s.stride():])
}

// PenaltyFactors returns the factor of each parameter in the penalty. The caller owns the
// result.
func (l Linear) PenaltyFactors(f *rows.Facts) ([]float64, error) {
	s, err := l.scaling(f)
	if err != nil {
		return nil, err
	}
	return s.factors(), nil
}

// factors returns the factors of the parameters in the penalty.
func (s *scaling) factors() []float64 {
	factors := make([]float64, s.parameters())
	for i := range factors {
		factors[i] = s.factor(i)
	}
	return factors
}

// factor returns the factor of a parameter in the penalty.
func (s *scaling) factor(parameter int) float64 {
	j := parameter % max(s.stride(), 1)
	switch {
	case parameter >= s.Margins*s.stride() || j == s.d:
		return 0
	case s.original && s.inverse[j] > 0:
		return s.inverse[j]
	}
	return 1
}

// Coefficients has the coefficients of the unscaled features, the intercepts and the constants.
type Coefficients struct {
	Margins, D int
	Weights    []float64 // Margins×D, row by row
	Intercepts []float64 // one for each margin; zeros if intercepts are omitted
	Constants  []float64 // constants of the loss
}

// Coefficients converts the parameters of a training to coefficients of the unscaled features.
func (l Linear) Coefficients(f *rows.Facts, parameters []float64) (Coefficients, error) {
	s, err := l.scaling(f)
	if err != nil {
		return Coefficients{}, err
	}
	if len(parameters) != s.parameters() {
		return Coefficients{}, fmt.Errorf("there are %d parameters, want %d", len(parameters), s.parameters())
	}
	c := Coefficients{Margins: s.Margins, D: s.d, Weights: make([]float64, s.Margins*s.d), Intercepts: make([]float64, s.Total())}
	s.unscale(parameters, c.Weights, c.Intercepts)
	c.Intercepts, c.Constants = c.Intercepts[:s.Margins:s.Margins], c.Intercepts[s.Margins:]
	return c, nil
}

// Parameters converts coefficients of unscaled features to parameters, for a warm start. If
// there is an intercept, a constant feature has no influence, and its coefficient becomes part
// of the intercept. The coefficient of a feature that is always 0 is lost.
func (l Linear) Parameters(f *rows.Facts, c Coefficients) ([]float64, error) {
	s, err := l.scaling(f)
	if err != nil {
		return nil, err
	}
	if c.Margins != s.Margins || c.D != s.d || len(c.Weights) != s.Margins*s.d || len(c.Intercepts) != s.Margins || len(c.Constants) != s.Constants {
		return nil, fmt.Errorf("there are coefficients of %d features for %d margins, and %d constants; want %d, %d and %d",
			c.D, c.Margins, len(c.Constants), s.d, s.Margins, s.Constants)
	}
	v := make([]float64, s.parameters())
	for a := range s.Margins {
		own, beta := v[a*s.stride():(a+1)*s.stride()], c.Weights[a*s.d:(a+1)*s.d]
		shift := c.Intercepts[a]
		for j, inverse := range s.inverse {
			switch {
			case inverse > 0:
				own[j] = beta[j] / inverse
				if s.centred {
					shift += float64(beta[j] * s.mean[j])
				}
			case s.intercept:
				shift += float64(beta[j] * f.Mean[j])
			}
		}
		if s.intercept {
			own[s.d] = shift
		}
	}
	copy(v[s.Margins*s.stride():], c.Constants)
	return v, nil
}

// Covariance converts a covariance of parameters to the covariance of the coefficients of the
// unscaled features. Both are lower triangles, row by row, in the order of the parameters.
func (l Linear) Covariance(f *rows.Facts, covariance []float64) ([]float64, error) {
	s, err := l.scaling(f)
	if err != nil {
		return nil, err
	}
	n := s.parameters()
	if len(covariance) != n*(n+1)/2 {
		return nil, fmt.Errorf("the covariance has %d values, want %d", len(covariance), n*(n+1)/2)
	}
	full := make([]float64, n*n)
	for a := range n {
		for b := range a + 1 {
			full[a*n+b] = covariance[a*(a+1)/2+b]
			full[b*n+a] = full[a*n+b]
		}
	}
	// Let J be the matrix of the linear map that unscale computes, so that the coefficients are
	// J·v. With the covariance C of the parameters, the result is J·C·Jᵀ, computed first by
	// rows and then by columns.
	row := make([]float64, n)
	for a := range n {
		s.linear(full[a*n:(a+1)*n], row)
		copy(full[a*n:(a+1)*n], row)
	}
	column := make([]float64, n)
	for b := range n {
		for a := range n {
			column[a] = full[a*n+b]
		}
		s.linear(column, row)
		for a := range n {
			full[a*n+b] = row[a]
		}
	}
	out := make([]float64, len(covariance))
	for a := range n {
		copy(out[a*(a+1)/2:], full[a*n:a*n+a+1])
	}
	return out, nil
}

// linear writes the coefficients for the parameters v to the slice to, in the order of the
// parameters.
func (s *scaling) linear(v, to []float64) {
	copy(to, v)
	for a := range s.Margins {
		own := to[a*s.stride() : (a+1)*s.stride()]
		for j, inverse := range s.inverse {
			own[j] *= inverse
		}
		if s.centred {
			own[s.d] -= kernel.Dot(own[:s.d], s.mean)
		}
	}
}
