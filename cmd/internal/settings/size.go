package settings

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes. In text it has a unit. KB, MB, GB and TB are powers of 1000; KiB,
// MiB, GiB and TiB are powers of 1024.
type Size int64

var units = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3},
	{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"K", 1e3},
	{"B", 1}, {"", 1},
}

// UnmarshalText reads "512MiB", "4GB", "1.5g" or a plain number of bytes.
func (s *Size) UnmarshalText(text []byte) error {
	in := strings.TrimSpace(string(text))
	end := strings.LastIndexAny(in, "0123456789.") + 1
	number, err := strconv.ParseFloat(in[:end], 64)
	for _, u := range units {
		if err == nil && strings.EqualFold(u.name, strings.TrimSpace(in[end:])) {
			if bytes := number * float64(u.bytes); bytes >= 0 && bytes < math.MaxInt64 {
				*s = Size(bytes)
				return nil
			}
		}
	}
	return fmt.Errorf("%q is no size: want a number and a unit, such as 512MiB or 4GB", in)
}

// String returns the size as a whole number of the largest binary unit (TiB, GiB, MiB or KiB)
// that divides it. If no unit divides it, String returns the number of bytes.
func (s Size) String() string {
	for _, u := range units[:4] {
		if s != 0 && int64(s)%u.bytes == 0 {
			return fmt.Sprintf("%d%s", int64(s)/u.bytes, u.name)
		}
	}
	return fmt.Sprintf("%dB", int64(s))
}
