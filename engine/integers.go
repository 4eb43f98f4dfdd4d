package engine

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// joinNegative joins negative numbers to the flags before them: "--n", "-1" becomes "--n=-1".
// Otherwise the parser would regard the numbers as flags with a one-letter name. own are the
// job's flags. If the short name of one of them is a digit, words are returned unchanged.
func joinNegative(words []string, own []*kong.Flag) []string {
	for _, f := range own {
		if f.Short >= '0' && f.Short <= '9' {
			return words
		}
	}
	joined := make([]string, 0, len(words))
	for i, word := range words {
		if word == "--" {
			return append(joined, words[i:]...) // no flags follow
		}
		if len(joined) == 0 || !negativeNumber(word) {
			joined = append(joined, word)
			continue
		}
		switch before := &joined[len(joined)-1]; {
		case strings.HasPrefix(*before, "--") && !strings.Contains(*before, "="):
			*before += "=" + word
		case len(*before) == 2 && (*before)[0] == '-' && !negativeNumber(*before):
			*before += word
		default:
			joined = append(joined, word)
		}
	}
	return joined
}

// negativeNumber reports whether a word begins as a negative number does.
func negativeNumber(word string) bool {
	digits, minus := strings.CutPrefix(word, "-")
	digits = strings.TrimPrefix(digits, ".")
	return minus && digits != "" && digits[0] >= '0' && digits[0] <= '9'
}

// integers returns an option with which the parser reads flags of integer types by
// readInteger, whose errors say which values are valid.
func integers() kong.Option {
	return kong.OptionFunc(func(k *kong.Kong) error {
		for kind := reflect.Int; kind <= reflect.Uint64; kind++ {
			if err := kong.KindMapper(kind, kong.MapperFunc(readInteger)).Apply(k); err != nil {
				return err
			}
		}
		return nil
	})
}

// readInteger reads the value of a flag of an integer type. The value is decimal, or
// has one of Go's prefixes, such as 0x.
func readInteger(ctx *kong.DecodeContext, target reflect.Value) error {
	token := ctx.Scan.Peek()
	switch {
	case token.IsEOL():
		return errors.New("want a whole number, but no value is given")
	case !token.IsValue() && !negativeNumber(fmt.Sprint(token.Value)): // negative elements of lists are not joined
		return fmt.Errorf("want a whole number, but got %q", token)
	}
	ctx.Scan.Pop()
	text := fmt.Sprint(token.Value)
	n, ok := new(big.Int).SetString(text, 0)
	if !ok {
		return fmt.Errorf("want a whole number, but got %q", text)
	}
	lowest, highest := bounds(target.Type())
	if n.Cmp(lowest) < 0 || n.Cmp(highest) > 0 {
		return fmt.Errorf("want a whole number from %d to %d, but got %s", lowest, highest, text)
	}
	if target.CanUint() {
		target.SetUint(n.Uint64())
	} else {
		target.SetInt(n.Int64())
	}
	return nil
}

// bounds returns the least and the greatest value of an integer type.
func bounds(t reflect.Type) (lowest, highest *big.Int) {
	bits := uint(t.Bits())
	if t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64 {
		return new(big.Int), new(big.Int).SetUint64(math.MaxUint64 >> (64 - bits))
	}
	highest = big.NewInt(math.MaxInt64 >> (64 - bits))
	return new(big.Int).Not(highest), highest
}
