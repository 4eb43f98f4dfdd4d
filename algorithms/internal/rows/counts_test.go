package rows_test

import "github.com/superstep-ml/superstep/internal/testsize"

// classLimits are the numbers of classes beyond the limit to try, in one shard and in several.
var classLimits = testsize.Of(
	[]classLimit{{1, 1}},
	[]classLimit{{1, 1}, {1, 8}, {0, 1}, {0, 8}, {1_000_000, 8}},
)
