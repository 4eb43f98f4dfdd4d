// Package humanize writes sizes, numbers of things and lists as text for people, and reads sizes
// as people write them.
package humanize

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Bytes returns a number of bytes with a binary unit, such as "96 B", "64 MiB" or "1.5 GiB". A
// decimal place follows unless the number is a multiple of the unit. It is rounded down, so
// that a number below a limit is never shown as the limit.
func Bytes[N ~int | ~int64](n N) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	k := (bits.Len64(uint64(n)) - 1) / 10
	unit := "KMGTPE"[k-1]
	whole, rest := uint64(n)>>(10*k), uint64(n)&(1<<(10*k)-1)
	if rest == 0 {
		return fmt.Sprintf("%d %ciB", whole, unit)
	}
	return fmt.Sprintf("%d.%d %ciB", whole, rest*10>>(10*k), unit)
}

// byteUnits are the units that ParseBytes knows, in lower case.
var byteUnits = map[string]float64{
	"": 1, "b": 1,
	"k": 1e3, "kb": 1e3, "kib": 1 << 10,
	"m": 1e6, "mb": 1e6, "mib": 1 << 20,
	"g": 1e9, "gb": 1e9, "gib": 1 << 30,
	"t": 1e12, "tb": 1e12, "tib": 1 << 40,
}

// ParseBytes reads a number of bytes such as "512MiB", "4GB", "1.5g" or "100". Units are powers
// of 1000, or of 1024 if they have an i; case does not matter. The result is rounded down. ok is
// false if text is not such a number, or if it is negative or does not fit in an int64.
func ParseBytes(text string) (n int64, ok bool) {
	text = strings.TrimSpace(text)
	end := strings.LastIndexAny(text, "0123456789.") + 1
	unit, known := byteUnits[strings.ToLower(strings.TrimSpace(text[end:]))]
	number, err := strconv.ParseFloat(text[:end], 64)
	bytes := number * unit
	if err != nil || !known || !(bytes >= 0 && bytes < math.MaxInt64) {
		return 0, false
	}
	return int64(bytes), true
}

// Count returns a number of things, such as "1 slot" or "2 slots". The plural of the noun must
// be formed with an s.
func Count[N ~int | ~int64](n N, noun string) string { return CountOf(n, noun, noun+"s") }

// CountOf returns a number followed by one if the number is 1, and by many otherwise, such as "1
// vertex" or "2 vertices".
func CountOf[N ~int | ~int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// List returns at most most of the items, separated by separator, and the number of the others,
// such as "a, b and 7 more".
func List(items []string, separator string, most int) string {
	if more := len(items) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:most], separator), more)
	}
	return strings.Join(items, separator)
}

// Quoted returns a List of at most a dozen names in quotes.
func Quoted(names []string, separator string) string {
	const most = 12
	items := make([]string, len(names))
	for i, name := range names[:min(len(names), most)] {
		items[i] = strconv.Quote(name)
	}
	return List(items, separator, most)
}
