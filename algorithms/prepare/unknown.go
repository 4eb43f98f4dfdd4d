package prepare

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/enum"
)

// Unknown is the rule for rows that have an unknown value. Unknown values are null, NaN, and
// values that did not occur in training.
type Unknown int

const (
	// Refuse makes an unknown value an error that names column and value. The error ends the
	// run, or is returned by the step that scores the row.
	Refuse Unknown = iota
	// Keep represents unknown values by a number or component that no known value has. The
	// documentation of each preparation says which number or component that is.
	Keep
	// Skip leaves the row out. A step that scores a single row returns model.ErrSkip.
	Skip
	// Zeros makes all components 0. It is for OneHotEncoder only.
	Zeros
	// Shares sets each component to the share of training rows that have the value of the
	// component. It is for OneHotEncoder only.
	Shares
)

var unknowns = enum.Names[Unknown]{Type: "Unknown", What: "policy for unknown values", Names: []string{"refuse", "keep", "skip", "zeros", "shares"}}

// String returns "refuse", "keep", "skip", "zeros" or "shares".
func (u Unknown) String() string { return unknowns.String(u) }

// MarshalText implements encoding.TextMarshaler.
func (u Unknown) MarshalText() ([]byte, error) { return unknowns.Text(u) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (u *Unknown) UnmarshalText(text []byte) error { return unknowns.Parse(u, text) }

// encoders returns an error for Zeros and Shares, which only OneHotEncoder supports.
func (u Unknown) encoders() error {
	if u == Zeros || u == Shares {
		return fmt.Errorf("Unknown is %s, which only OneHotEncoder has", u)
	}
	return nil
}

// skips reports whether p may leave rows out. p is a preparation or a model.
func skips(p any) bool {
	has, ok := p.(interface{ unknown() Unknown })
	return ok && has.unknown() == Skip
}

func (p VectorAssembler) unknown() Unknown     { return p.Unknown }
func (p StringIndexer) unknown() Unknown       { return p.Unknown }
func (p OneHotEncoder) unknown() Unknown       { return p.Unknown }
func (p Bucketizer) unknown() Unknown          { return p.Unknown }
func (p QuantileDiscretizer) unknown() Unknown { return p.Unknown }
func (m *AssemblerModel) unknown() Unknown     { return m.Params.Unknown }
func (m *IndexerModel) unknown() Unknown       { return m.Params.Unknown }
func (m *OneHotModel) unknown() Unknown        { return m.Params.Unknown }
func (m *BucketModel) unknown() Unknown        { return m.Unknown }
