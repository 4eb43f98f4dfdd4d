package rows_test

import "github.com/superstep-ml/superstep/internal/testsize"

// classLimits are the cases of TestTooManyClasses, with all rows in one shard and in several
// shards.
var classLimits = testsize.Of(
	[]classLimit{{1, 1}},
	[]classLimit{{1, 1}, {1, 8}, {0, 1}, {0, 8}, {1_000_000, 8}},
)
