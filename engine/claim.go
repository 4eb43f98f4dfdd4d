package engine

import (
	"fmt"
	"path/filepath"
	"strings"
)

// outputClaim is the path of an output, and the source line of the sink that writes it.
type outputClaim struct{ path, site string }

// asidePrefix begins the names of the temporary files and directories to which outputs are first
// written. They are in the same directory as the output.
const asidePrefix = ".superstep"

// ClaimOutput records the path of an output, which may begin with ClientPath. It returns an
// error if another sink of the job writes to the same path, to a directory above it or to a path
// within it, or if the name begins with the prefix of temporary outputs.
func (b *Builder) ClaimOutput(path string) error {
	b.MustBuild("an operator that writes files", aDataset)
	rest, atClient := strings.CutPrefix(path, ClientPath)
	clean := filepath.Clean(rest)
	if strings.HasPrefix(filepath.Base(clean), asidePrefix) {
		return fmt.Errorf("the output path %s has a name that begins with %q: outputs are written aside under such names; choose another one", path, asidePrefix)
	}
	if atClient {
		clean = ClientPath + clean
	}
	within := func(a, b string) bool {
		return strings.HasPrefix(a, strings.TrimSuffix(b, string(filepath.Separator))+string(filepath.Separator))
	}
	for _, c := range b.claims {
		switch {
		case c.path == clean:
			return fmt.Errorf("the output path %s is taken by the sink added at %s; each sink needs a path of its own", clean, c.site)
		case within(clean, c.path):
			return fmt.Errorf("the output path %s is within %s, the output of the sink added at %s; outputs cannot lie within each other", clean, c.path, c.site)
		case within(c.path, clean):
			return fmt.Errorf("the output %s of the sink added at %s would lie within the output path %s; outputs cannot lie within each other", c.path, c.site, clean)
		}
	}
	b.claims = append(b.claims, outputClaim{clean, userSite()})
	return nil
}
