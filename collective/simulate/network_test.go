package simulate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPresetsAreValidAndSurviveJSON(t *testing.T) {
	for _, name := range Presets() {
		n, err := Preset(name)
		require.NoError(t, err)
		require.Equal(t, name, n.Name)
		text, err := json.Marshal(n)
		require.NoError(t, err)
		back, err := Read(strings.NewReader(string(text)))
		require.NoError(t, err)
		require.Equal(t, n, back)
		require.Equal(t, n, n.Clone())
	}
	_, err := Preset("infiniband")
	require.EqualError(t, err, `no network "infiniband": there are 10gbe, loopback, two-tier`)
}

func TestReadNamesTheField(t *testing.T) {
	for text, want := range map[string]string{
		`{"rack": {"latency": -1}}`:                "network: rack.latency is -1: want seconds from 0 on",
		`{"spine": {"bandwidth": -2e9}}`:           "network: spine.bandwidth is -2e+09: want bytes per second, 1 to 1e+18, or 0 (unlimited)",
		`{"host": {"speed": 1}}`:                   `unknown field "speed"`,
		`{"ranks_per_host": -1}`:                   "network: ranks_per_host is -1: want a number from 0 (one rank a host) to 1048576",
		`{"hosts_per_rack": -1}`:                   "network: hosts_per_rack is -1",
		`{"cores": -1}`:                            "network: cores is -1",
		`{"window": -1}`:                           "network: window is -1",
		`{"oversubscription": 0.5}`:                "network: oversubscription is 0.5: want a factor from 1 on",
		`{"send_overhead": -1}`:                    "network: send_overhead is -1",
		`{"recv_overhead": -1}`:                    "network: recv_overhead is -1",
		`{"wake_up": -1}`:                          "network: wake_up is -1",
		`{"send_copy": -1}`:                        "network: send_copy is -1",
		`{"recv_copy": -1}`:                        "network: recv_copy is -1",
		`{"copy": -1}`:                             "network: copy is -1",
		`{"gamma": -1}`:                            "network: gamma is -1",
		`{"hosts_per_rack": 2000000}`:              "network: hosts_per_rack is 2000000",
		`{"rack": {"bandwidth": 1e-9}}`:            "network: rack.bandwidth is 1e-09",
		`{"gamma": 1e300}`:                         "network: gamma is 1e+300",
		`{"jitter": -1}`:                           "network: jitter is -1",
		`{"placement": [0, -3]}`:                   "network: placement puts rank 1 on host -3",
		`{"placement": [99999999]}`:                "network: placement puts rank 0 on host 99999999",
		`{"stragglers": {"3": 0.5}}`:               "network: stragglers[3] is 0.5: want a factor from 1 on",
		`{"stragglers": {"-3": 2}}`:                "network: stragglers names rank -3",
		`{"gamma": 1e999}`:                         "gamma",
		`{} {}`:                                    "something follows the closing brace",
		`{"cores": -1, "host": {"bandwidth": -1}}`: "host.bandwidth is -1",
		`[`: "network: ",

		"{\n \"rack\": {\"speed\": 1}}": `line 2, column 11: json: unknown field "speed"`,
		"{\n \"cores\": \"two\"}":       "line 2, column 15: ",
		"{\n \"name\": \"é\" x}":        "line 2, column 14: invalid character 'x'",
		"{\n\"cores\": 2":               "line 2, column 11: unexpected EOF",
		"{}\n\n {}":                     "line 3, column 2: something follows",
		"":                              "line 1, column 1: EOF",
	} {
		_, err := Read(strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range Presets() {
		n, _ := Preset(name)
		text, _ := json.Marshal(n)
		f.Add(string(text))
	}
	f.Add(`{"placement": [0, 0, 1], "stragglers": {"1": 2}, "jitter": 0.1}`)
	f.Fuzz(func(t *testing.T, text string) {
		n, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		r, err := Run(t.Context(), work(3, 300, ring), n, Options{})
		if err != nil {
			return
		}
		if !(r.Time >= 0) {
			t.Fatalf("the time must not be negative or NaN: %v", r.Time)
		}
	})
}
