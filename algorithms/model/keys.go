package model

import (
	"encoding/json"
	"fmt"
)

// checkKeys returns an error if an object at any depth has a key twice; encoding/json would
// accept such an object and use the last value. The text must be valid JSON without white
// space. checkKeys scans the text once, byte by byte, without decoding values, since payloads
// are mostly long arrays of numbers.
func checkKeys(text []byte) error {
	var open []map[string]bool // for each open bracket, the keys of its object; nil for an array
	key := false               // whether the next string is a key
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			open, key = append(open, map[string]bool{}), true
		case '[':
			open, key = append(open, nil), false
		case '}', ']':
			open, key = open[:len(open)-1], false
		case ',':
			key = open[len(open)-1] != nil
		case '"':
			end, escaped := stringEnd(text, i)
			if key {
				name := string(text[i+1 : end])
				if escaped {
					if err := json.Unmarshal(text[i:end+1], &name); err != nil {
						return err
					}
				}
				keys := open[len(open)-1]
				if keys[name] {
					return fmt.Errorf("an object has the key %q twice", name)
				}
				keys[name] = true
				key = false
			}
			i = end
		}
	}
	return nil
}

// stringEnd returns the index of the closing quote of the string whose opening quote has the
// index begin. escaped reports whether the string has escape sequences.
func stringEnd(text []byte, begin int) (end int, escaped bool) {
	for i := begin + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			return i, escaped
		}
	}
	return len(text) - 1, escaped
}
