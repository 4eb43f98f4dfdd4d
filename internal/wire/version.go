package wire

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"google.golang.org/grpc/codes"
)

// module is the path of Superstep's module, which is a program's own or a dependency.
const module = "github.com/superstep-ml/superstep"

// CheckVersion compares the protocol version of the other side with ours, and returns an error
// that says which side to upgrade. who names the other side: "the job manager at
// localhost:6123".
func CheckVersion(theirs int, who string) error {
	return CheckVersions(theirs, who, "this program")
}

// CheckVersions is CheckVersion for an error that is read on the other side, so that our side
// needs a name too:
//
//	wire.CheckVersions(req.Version, "the client", "the job manager")
func CheckVersions(theirs int, who, us string) error {
	older := who
	switch {
	case theirs == Version:
		return nil
	case theirs > Version:
		older = us
	}
	return Error(codes.FailedPrecondition, "%s speaks version %d of the protocol and %s version %d: upgrade %s", who, theirs, us, Version, older)
}

// Build is the version of Superstep in this binary, for people, such as "v0.3.1 (linux/amd64,
// go1.26.0)"; a build from a checkout has its commit.
func Build() string {
	info, _ := debug.ReadBuildInfo()
	return describe(info, Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}, runtime.Version())
}

// BuildOf is Build for another binary, from the build information that the toolchain wrote into
// it.
func BuildOf(info *debug.BuildInfo, on Platform) string { return describe(info, on, info.GoVersion) }

func describe(info *debug.BuildInfo, on Platform, toolchain string) string {
	return fmt.Sprintf("%s (%s, %s)", version(info), on, strings.TrimPrefix(toolchain, "devel "))
}

// version finds the version of Superstep in the build information of a binary.
func version(info *debug.BuildInfo) string {
	if info == nil {
		return "devel"
	}
	if info.Main.Path != module {
		for _, dep := range info.Deps {
			if dep.Path == module && dep.Replace == nil {
				return dep.Version
			}
		}
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	commit, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = "-" + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+modified"
		}
	}
	return "devel" + commit + modified
}
