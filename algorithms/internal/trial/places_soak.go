//go:build soak

package trial

var places = []place{{1, 0, 1024}, {2, 0, 7}, {3, 3, 1024}, {8, 0, 1}}
