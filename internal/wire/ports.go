package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Ports is the range of ports from First to Last, inclusive. The zero value means any free
// port.
type Ports struct {
	First int `msgpack:"first"`
	Last  int `msgpack:"last"`
}

// ParsePorts parses a range such as "6200-6299", or a single port such as "6200".
func ParsePorts(text string) (p Ports, err error) {
	first, last, ranged := strings.Cut(text, "-")
	if !ranged {
		last = first
	}
	if p.First, err = strconv.Atoi(first); err == nil {
		p.Last, err = strconv.Atoi(last)
	}
	if err != nil || strings.ContainsAny(text, "+") {
		return Ports{}, fmt.Errorf("%q is no range of ports, such as 6200-6299", text)
	}
	if p == (Ports{}) {
		return p, errors.New("there is no port 0")
	}
	return p, p.Check()
}

// Check returns an error if the range is invalid. The zero value is valid.
func (p Ports) Check() error {
	if p != (Ports{}) && (p.First < 1 || p.Last > 65535 || p.Last < p.First) {
		return fmt.Errorf("there is no range of ports %s: they go from 1 to 65535, the first before the last", p)
	}
	return nil
}

// Count returns the number of ports in the range, or 0 if any free port may be used.
func (p Ports) Count() int {
	if p == (Ports{}) {
		return 0
	}
	return p.Last - p.First + 1
}

// String returns the range, such as "6200-6299".
func (p Ports) String() string { return fmt.Sprintf("%d-%d", p.First, p.Last) }
