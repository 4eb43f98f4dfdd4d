package wire

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValuesThatJSONDoesNotHave(t *testing.T) {
	data, err := json.Marshal(Progress{Queues: []QueueProgress{{Superstep: 2, Values: []ReportedValue{
		{"a", 1.5}, {"b", math.NaN()}, {"c", math.Inf(1)}, {"d", math.Inf(-1)},
	}}}})
	require.NoError(t, err)
	require.JSONEq(t, `{"vertices":null,"edges":null,"queues":[{"superstep":2,"ended":false,"compute":0,"communicate":0,
		"values":[{"name":"a","value":1.5},{"name":"b","value":"NaN"},{"name":"c","value":"Infinity"},{"name":"d","value":"-Infinity"}]}]}`, string(data))
}
