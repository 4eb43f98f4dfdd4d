package settings

import (
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/internal/humanize"
)

// Size is a number of bytes. In text it has a unit. KB, MB, GB and TB are powers of 1000; KiB,
// MiB, GiB and TiB are powers of 1024.
type Size int64

// UnmarshalText reads "512MiB", "4GB", "1.5g" or a plain number of bytes.
func (s *Size) UnmarshalText(text []byte) error {
	n, ok := humanize.ParseBytes(string(text))
	if !ok {
		return fmt.Errorf("%q is no size: want a number and a unit, such as 512MiB or 4GB", strings.TrimSpace(string(text)))
	}
	*s = Size(n)
	return nil
}

// String returns the size as a whole number of the largest binary unit (TiB, GiB, MiB or KiB)
// that divides it. If no unit divides it, String returns the number of bytes.
func (s Size) String() string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB"}
	k := 0
	for s != 0 && s%1024 == 0 && k < len(units)-1 {
		s, k = s/1024, k+1
	}
	return fmt.Sprintf("%d%s", int64(s), units[k])
}
