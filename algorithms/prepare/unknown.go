package prepare

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/enum"
)

// Unknown says what happens to a row with an unknown value: one that training did not have,
// null, or NaN.
type Unknown int

const (
	// Refuse fails the run, or the scoring of the row, and names column and value.
	Refuse Unknown = iota
	// Keep gives such values a place of their own, which each preparation documents.
	Keep
	// Skip leaves the row out. Scoring a single row returns model.ErrSkip.
	Skip
	// Zeros, of OneHotEncoder only, makes all components 0.
	Zeros
	// Shares, of OneHotEncoder only, averages over the values of training: each component is
	// the share of training rows with its value.
	Shares
)

var unknowns = enum.Names[Unknown]{Type: "Unknown", What: "policy for unknown values", Names: []string{"refuse", "keep", "skip", "zeros", "shares"}}

// String returns "refuse", "keep", "skip", "zeros" or "shares".
func (u Unknown) String() string { return unknowns.String(u) }

// MarshalText implements encoding.TextMarshaler.
func (u Unknown) MarshalText() ([]byte, error) { return unknowns.Text(u) }

// UnmarshalText implements encoding.TextUnmarshaler: it reads what String returns.
func (u *Unknown) UnmarshalText(text []byte) error { return unknowns.Parse(u, text) }

// encoders returns an error for a policy that only OneHotEncoder has.
func (u Unknown) encoders() error {
	if u == Zeros || u == Shares {
		return fmt.Errorf("Unknown is %s, which only OneHotEncoder has", u)
	}
	return nil
}

// skips reports whether a preparation, or its model, may leave rows out.
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
