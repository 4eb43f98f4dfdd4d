package wire

import (
	"encoding/json"
	"math"
)

// MarshalJSON writes the value; JSON has no NaN and no infinities, so these are texts.
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
