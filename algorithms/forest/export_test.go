package forest

// Tried is for tests.
func Tried(p Params, d int) int {
	n, _ := p.tried(d)
	return n
}
