package wire

import (
	"encoding/json"
	"math"
)

// MarshalJSON returns the value in JSON. NaN and infinities, which JSON cannot represent as
// numbers, are encoded as strings.
func (v ReportedValue) MarshalJSON() ([]byte, error) {
	o := struct {
		Name  string `json:"name"`
		Value any    `json:"value"`
	}{v.Name, v.Value}
	switch {
	case math.IsNaN(v.Value):
		o.Value = "NaN"
	case math.IsInf(v.Value, 1):
		o.Value = "Infinity"
	case math.IsInf(v.Value, -1):
		o.Value = "-Infinity"
	}
	return json.Marshal(o)
}
