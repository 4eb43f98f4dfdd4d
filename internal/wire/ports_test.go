package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPorts(t *testing.T) {
	for text, want := range map[string]Ports{"6200-6299": {6200, 6299}, "1-65535": {1, 65535}, "6200": {6200, 6200}} {
		p, err := ParsePorts(text)
		require.NoError(t, err)
		require.Equal(t, want, p)
		require.Equal(t, want.Last-want.First+1, p.Count())
		require.NoError(t, p.Check())
	}
	for text, says := range map[string]string{
		"": "is no range of ports", "a-b": `"a-b" is no range of ports, such as 6200-6299`, "6200-": "is no range", "-5": "is no range", "+6200-6210": "is no range",
		"6200-6100": "there is no range of ports 6200-6100", "0-5": "from 1 to 65535", "1-65536": "from 1 to 65535", "1-2-3": "is no range", "0": "there is no port 0",
	} {
		_, err := ParsePorts(text)
		require.ErrorContains(t, err, says)
	}
	require.NoError(t, Ports{}.Check())
	require.Zero(t, Ports{}.Count())
	require.Error(t, Ports{First: -1, Last: 5}.Check())
}
