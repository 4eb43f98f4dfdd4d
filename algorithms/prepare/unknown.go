package prepare

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/enum"
)

// Unknown says what becomes of a row with a value that a preparation has no place for: one
// that was not there in training, null, or NaN.
type Unknown int

const (
	// Refuse fails the run, or the scoring of the row, naming column and value.
	Refuse Unknown = iota
	// Keep gives such values a place of their own; see the preparation for which.
	Keep
	// Skip leaves the row out; a single row is answered with model.ErrSkip.
	Skip
	// Zeros, of OneHotEncoder only, makes all components 0.
	Zeros
	// Shares, of OneHotEncoder only, puts a row between the values of training: each component
	// is the share of the rows of training that have its value.
	Shares
)

var unknowns = enum.Names[Unknown]{Type: "Unknown", What: "policy for unknown values", Names: []string{"refuse", "keep", "skip", "zeros", "shares"}}

// String returns "refuse", "keep", "skip", "zeros" or "shares".
func (u Unknown) String() string { return unknowns.String(u) }

// MarshalText implements encoding.TextMarshaler.
func (u Unknown) MarshalText() ([]byte, error) { return unknowns.Text(u) }

// UnmarshalText implements encoding.TextUnmarshaler: it reads what String returns.
func (u *Unknown) UnmarshalText(text []byte) error { return unknowns.Parse(u, text) }

// encoders tells that a policy is one that OneHotEncoder alone has.
func (u Unknown) encoders() error {
	if u == Zeros || u == Shares {
		return fmt.Errorf("Unknown is %s, which only OneHotEncoder has", u)
	}
	return nil
}

// skips says that a preparation, or the model of one, may leave rows out.
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
