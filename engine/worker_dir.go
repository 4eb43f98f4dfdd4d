package engine

import (
	"fmt"
	"os"
)

// enterDir changes to dir, the working directory of the client, so that relative paths of a
// job, also in user code, mean the same as on the client. If this machine does not have dir,
// relative paths must fail and not name other files. The process then makes a directory within
// scratch, changes to it and removes it: in a removed directory the system neither finds nor
// makes files. missing is then the error of changing to dir.
func enterDir(dir, scratch string) (missing, err error) {
	if missing = os.Chdir(dir); missing == nil {
		return nil, nil
	}
	nowhere, err := os.MkdirTemp(scratch, "nowhere-")
	if err != nil {
		return missing, fmt.Errorf("make a directory: %w", err)
	}
	if err := os.Chdir(nowhere); err != nil {
		return missing, fmt.Errorf("enter a directory: %w", err)
	}
	if err := os.Remove(nowhere); err != nil {
		return missing, fmt.Errorf("leave no directory: %w", err)
	}
	return missing, nil
}
