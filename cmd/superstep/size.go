package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a number of bytes. On the command line it is written like 8, 32K, 64M or 1G, where K,
// M and G are powers of 1024.
type size int

// UnmarshalText sets s from text in the format of the command line.
func (s *size) UnmarshalText(text []byte) error {
	digits := strings.TrimSuffix(strings.ToUpper(string(text)), "B")
	shift := 0
	for k, unit := range []string{"K", "M", "G"} {
		if rest, ok := strings.CutSuffix(digits, unit); ok {
			digits, shift = rest, 10*(k+1)
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt>>(shift+1) {
		return fmt.Errorf("%q is no size: want 8, 32K, 64M", text)
	}
	*s = size(n << shift)
	return nil
}

// sizeText returns a size of n bytes as text for tables, with the largest unit that divides n.
func sizeText(n int) string {
	for _, u := range []struct {
		shift int
		unit  string
	}{{30, "G"}, {20, "M"}, {10, "K"}} {
		if n >= 1<<u.shift && n%(1<<u.shift) == 0 {
			return strconv.Itoa(n>>u.shift) + u.unit
		}
	}
	return strconv.Itoa(n)
}
