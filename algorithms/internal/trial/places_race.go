//go:build race && !soak

package trial

// places are one process and several, as the race detector makes each run slow and that
// bits are the same shows without it.
var places = []place{{2, 0, 7}, {3, 3, 1024}}
