//go:build !unix

package operators

import "io/fs"

// fileID returns 0, which means that the ID is unknown. The ID is needed only after exchange,
// which these systems do not support.
func fileID(fs.FileInfo) uint64 { return 0 }
