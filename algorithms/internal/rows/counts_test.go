//go:build !soak

package rows_test

// classLimits are the numbers of classes beyond the limit to try, in one shard and in several.
var classLimits = []classLimit{{1, 1}}
